"""What `pawl sim` refuses, and what it says of an invariant that is no yes or no."""

import json
import re

import pytest

from tests.cli.sim_kit import ONCE, PASSED_BY, TWICE, sim, written

pytestmark = pytest.mark.timeout(600)  # minutes of work, if the machine is busy


@pytest.mark.req("R210")
@pytest.mark.parametrize(
    ("invariant", "place", "said"),
    [
        ("state == 'completed' ||", "1:24", "expected a value"),
        ("stat == 'completed'", "1:1", "did you mean 'state'?"),
        ("executed('chrge') <= 1", "1:10", "did you mean 'charge'?"),
        ("executed(state) <= 1", "1:1", "takes the name of a step"),
        ("1 == 1 && steps.chrge.state == ''", "1:17", "'chrge' is not a step"),
        ("state == 'a' || exectd('charge')", "1:17", "there is no function 'exectd'"),
    ],
)
def test_an_invariant_that_cannot_be_used_is_refused_with_its_place(
    tmp_path, invariant, place, said
):
    """Before anything runs, with 2; the same in a file, by its line and column."""
    written(tmp_path, TWICE)
    (tmp_path / "rules.txt").write_text(f"# fine\n{ONCE}\n\n  {invariant}\n")
    _, column = place.split(":")

    typed = sim(tmp_path, "shop.yaml", "--invariant", invariant)
    filed = sim(tmp_path, "shop.yaml", "--invariants", "rules.txt", "--json")

    assert (typed.returncode, typed.stdout) == (2, "")
    assert f"--invariant:{place}: error: " in typed.stderr
    assert said in typed.stderr
    assert filed.returncode == 2
    message = json.loads(filed.stdout)["error"]["message"]
    assert message.startswith(f"rules.txt:4:{int(column) + 2}: ")


def test_an_invariant_that_has_no_truth_is_broken(tmp_path):
    """One that cannot be evaluated, or is no yes or no, says so with what it read."""
    written(tmp_path, TWICE)

    typed = sim(tmp_path, "shop.yaml", "--seed", "0", "--invariant", "output.total > 3")
    number = sim(tmp_path, "shop.yaml", "--seed", "0", "--invariant", "executed('charge')")

    assert (typed.returncode, number.returncode) == (1, 1)
    assert "it cannot be evaluated" in typed.stdout
    assert "output.total = null" in typed.stdout
    assert re.search(r"it is \d, int", number.stdout)


@pytest.mark.parametrize(
    ("arguments", "exit_code", "said"),
    [
        (("shop.yaml", "--faults", "bos"), 2, "did you mean 'bus'?"),
        (("shop.yaml", "--seeds", "many"), 2, "neither a number nor FIRST:END"),
        (("shop.yaml", "--seeds", "5:5"), 2, "are none"),
        (("shop.yaml", "--input", "{"), 2, "this is no JSON"),
        (("shop.yaml", "--signal", "paid"), 2, "is not EVENT=JSON"),
        (("shop.yaml", "--idempotent", "chrge"), 2, "did you mean 'charge'?"),
        (("shop.yaml", "--tape", "shop.yaml"), 2, "is no tape of `pawl sim`"),
        (("shop.yaml", "--invariant", "os:no_such"), 2, "no function 'no_such'"),
        (("shop.yaml", "--invariant", "no_such:f"), 2, "no module 'no_such'"),
        (("no_such:order",), 2, "no module 'no_such'"),
        (("wrong.yaml",), 3, "[step.unknown]"),
        (("schema.yaml", "--input", "{}"), 3, "does not fit the workflow"),
        ((), 2, "name a workflow"),
    ],
)
def test_what_cannot_be_run_is_refused(tmp_path, arguments, exit_code, said):
    """With the exit code of its kind, and the way out."""
    written(tmp_path, TWICE)
    written(tmp_path, TWICE.replace("[charge]", "[chrge]"), "wrong.yaml")
    written(tmp_path, PASSED_BY, "schema.yaml")

    done = sim(tmp_path, *arguments)

    assert done.returncode == exit_code, done.stderr
    assert said in done.stderr
