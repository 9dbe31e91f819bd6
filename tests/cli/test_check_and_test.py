"""`pawl check`, `test` and `journal`: what they find, and how they say it."""

import json

import pytest

from tests.cli.kit import SCENARIO, changed, pawl


def test_check_says_how_much_was_fine(shop):
    """Exit 0, and one line that sums up."""
    result = pawl("check", shop)

    assert result.exit_code == 0
    assert result.output == "2 files: 1 workflow, 1 scenario, 0 errors, 0 warnings\n"


@pytest.mark.req("R63", "R64")
def test_check_points_at_what_is_wrong(shop):
    """File, line, column, the source line with a caret, the code and a hint; exit 3."""
    path = changed(shop, "dependsOn: [charge]", "dependsOn: [chrage]", "order.yaml")

    result = pawl("check", path)

    assert result.exit_code == 3
    assert (
        f"{path}:8:{path.read_text().splitlines()[7].index('chrage') + 1}: error: " in result.output
    )
    assert "    8 |     - {name: ship, run: parcel.send, dependsOn: [chrage]" in result.output
    caret = next(line for line in result.output.splitlines() if line.endswith("^"))
    source = next(line for line in result.output.splitlines() if "| " in line and "ship" in line)
    assert source[caret.index("^") :].startswith("chrage")
    assert "charge" in result.output.split("hint")[1]


def test_check_as_json_has_the_promised_fields(shop):
    """A list of findings, nothing else on standard output."""
    path = changed(shop, "timeout: 30s", "timeout: 30x", "order.yaml")

    result = pawl("check", path, "--json")

    (found,) = json.loads(result.stdout)
    assert set(found) == {"file", "line", "column", "severity", "code", "message", "hint"}
    assert (found["line"], found["severity"], found["code"]) == (7, "error", "duration.bad")
    assert result.exit_code == 3


def test_strict_makes_errors_of_warnings(shop):
    """A workflow without a timeout passes, but not with --strict."""
    path = changed(shop, "  timeout: 1h\n", "", "order.yaml")

    assert pawl("check", path).exit_code == 0
    assert pawl("check", path, "--strict").exit_code == 3
    (found,) = json.loads(pawl("check", "--strict", path, "--json").stdout)
    assert (found["severity"], found["code"]) == ("error", "lint.timeout")


def test_advice_stays_advice_under_strict(shop):
    """Two steps side by side are sound, even if nothing joins them."""
    path = changed(shop, ", dependsOn: [charge]", "", "order.yaml")

    result = pawl("check", path, "--strict", "--json")

    (found,) = json.loads(result.stdout)
    assert (found["severity"], found["code"]) == ("warning", "lint.disconnected")
    assert result.exit_code == 0


def test_test_runs_scenarios_and_says_so(shop):
    """A line per scenario, then a line that counts."""
    result = pawl("test", shop)

    assert result.exit_code == 0
    assert result.output == "PASS an order is shipped (3 turns)\n1 passed, 0 failed\n"


def test_test_as_json_holds_everything_there_is_to_know(shop):
    """`actual` is complete, whatever was expected; options stand before or after the verb."""
    result = pawl("--json", "test", shop)

    told = json.loads(result.stdout)
    assert (told["passed"], told["failed"]) == (1, 0)
    (scenario,) = told["scenarios"]
    assert scenario["passed"] is True
    assert scenario["failures"] == []
    assert set(scenario["actual"]) == {
        *("state", "rollback", "steps", "undo", "attempts", "order", "events", "lens"),
        *("elapsed_ms", "output", "error", "feedback", "params", "spent"),
    }
    assert scenario["actual"]["elapsed_ms"] == 90_000
    assert scenario["actual"]["output"] == {"done": True}


@pytest.mark.parametrize(
    ("expect", "said"),
    [
        ("state: failed", "state: expected failed, got completed"),
        ("rollback: full", "rollback: expected full, got none"),
        ("steps: {ship: skipped}", "steps.ship: expected skipped, got succeeded"),
        ("undo: {ship: done}", "undo.ship: expected done, got none"),
        ("attempts: {ship: 2}", "attempts.ship: expected 2, got 1"),
        ("lens: {ioa: failed}", "lens.ioa: expected failed, got completed"),
        ("elapsed: 2m", "elapsed: expected 2m, got 1m30s"),
        ("error: ship", "error: expected ship, got null"),
        ("output: {done: false}", 'output: expected {"done":false}, got {"done":true}'),
        ("feedback: {ship: 1}", "feedback.ship: expected 1, got 0"),
        ("params: {ship: {to: ann}}", 'params.ship#1: expected {"to":"ann"}, got {}'),
        ("params: {ship#2: {}}", "params.ship#2: there was no such attempt"),
        ("order: [ship#1, charge#1]", "order: charge#1 does not come after ship#1"),
        ("order: [ship#2]", "order: ship#2 never came"),
        ("events: [WorkflowInstanceFailed]", "events: WorkflowInstanceFailed never came"),
    ],
)
def test_a_mistake_in_an_expectation_is_shown_against_what_was(shop, expect, said):
    """Exit 1, with the field, what was expected and what came instead."""
    path = changed(shop, "    state: completed\n    elapsed: 1m30s\n", f"    {expect}\n")

    result = pawl("test", path)

    assert result.exit_code == 1
    assert said in result.output
    assert f"FAIL an order is shipped (3 turns)\n  {path}\n" in result.output
    assert result.output.endswith("0 passed, 1 failed\n")
    assert json.loads(pawl("test", path, "--json").stdout)["scenarios"][0]["failures"]


def test_a_run_that_got_stuck_says_where(shop):
    """The open steps are named, so that the missing stub or script is found."""
    changed(shop, "{ok: {}, after: 90s}", "{hang: true}")
    changed(shop, ", timeout: 10m", "", "order.yaml")
    changed(shop, "  timeout: 1h\n", "", "order.yaml")

    result = pawl("test", shop / "shipped.yaml")

    assert result.exit_code == 1
    assert "the run ended with open steps: ship running" in result.output


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        ("  stubs:", "  stubbs:", "field.unknown"),
        ("    ship: [", "    shop: [", "step.unknown"),
        ("state: completed", "state: complete", "field.value"),
        ("state: completed", "steps: {shop: failed}", "step.unknown"),
        ("state: completed", "params: {shop#1: {}}", "step.unknown"),
        ("state: completed", "params: {ship#x: {}}", "name.bad"),
        ("state: completed", "params: [ship]", "field.type"),
        ("./order.yaml", "./other.yaml", "scenario.workflow"),
    ],
)
def test_a_scenario_that_is_wrong_is_not_run(shop, before, after, code):
    """Unknown fields and steps: exit 3, with code and place, and nothing was run."""
    path = changed(shop, before, after)

    result = pawl("test", path)

    assert result.exit_code == 3
    assert f"[{code}]" in result.output
    assert "nothing was run" in result.output
    findings = json.loads(pawl("test", path, "--json").stdout)["findings"]
    assert code in [found["code"] for found in findings]


SCRIPTED = "  script:\n    - {at: ATs, cancel: {by: ann}, refused: REFUSED}\n  expect:\n"


def test_a_script_entry_may_expect_to_be_refused(shop):
    """What the engine says is held against it; what is never reached makes the file invalid."""
    path = changed(shop, "  expect:\n", SCRIPTED.replace("AT", "10").replace("REFUSED", "true"))
    result = pawl("test", path)
    assert result.exit_code == 1
    assert "script: cancel at 10s (line 9): expected refused, was accepted" in result.output

    changed(shop, "at: 10s", "at: 100s")
    result = pawl("test", path)
    assert result.exit_code == 3
    assert f"{path}:9:" in result.output
    assert "[scenario.unreached]" in result.output
    assert json.loads(pawl("test", path, "--json").stdout)["findings"]


def test_a_failed_scenario_says_why_its_instance_ended(shop):
    """The reason the journal holds, and what was refused of the script without being expected."""
    changed(shop, "{ok: {}, after: 90s}", "{fail: terminal, message: it fell off the truck}")
    changed(shop, "  expect:\n", "  script: [{at: 0s, resume: {step: ship, by: ann}}]\n  expect:\n")

    result = pawl("test", shop / "shipped.yaml")

    assert "ended because of ship: it fell off the truck [effect.failed]" in result.output
    (told,) = json.loads(pawl("test", shop / "shipped.yaml", "--json").stdout)["scenarios"]
    assert told["failure"]["step"] == "ship"
    assert told["refused"] == []

    changed(shop, "{fail: terminal, message: it fell off the truck}", "{ok: {}, after: 1s}")
    noted = pawl("test", shop / "shipped.yaml")
    assert "note: script: resume at 0s (line 8) was refused (step.not_escalated)" in noted.output


def test_one_scenario_that_cannot_run_does_not_hide_the_others(shop):
    """The rest is run and told; the exit code still says invalid."""
    later = SCRIPTED.replace("AT", "100").replace("REFUSED", "false")
    (shop / "unreached.yaml").write_text(SCENARIO.replace("  expect:\n", later))

    result = pawl("test", shop)

    assert result.exit_code == 3
    assert "PASS an order is shipped" in result.output
    assert "1 scenario could not be run" in result.output


def test_an_input_that_does_not_fit_is_named(shop):
    """The workflow's schema is asked before the start."""
    changed(shop, "  timeout: 1h\n", "  timeout: 1h\n  input: {required: [n]}\n", "order.yaml")
    changed(shop, "  stubs:", "  input: {m: 1}\n  stubs:")

    result = pawl("test", shop / "shipped.yaml")

    assert result.exit_code == 3
    assert '"n" is a required property' in result.output
    assert "shipped.yaml:6:3: error" in result.output


def test_crash_everywhere_counts_its_crashes(shop):
    """Before and after each commit; the outcome is the same."""
    result = pawl("test", shop, "--crash-everywhere")

    assert result.exit_code == 0
    assert "PASS an order is shipped (3 turns, 6 crash points)" in result.output


def test_long_runs_are_sampled_unless_all_is_asked_for(shop, monkeypatch):
    """Above the bound a seeded sample is tried, and the output says so."""
    monkeypatch.setattr("pawlflow.testing.crashes.TURNS_MAX", 2)

    sampled = pawl("test", shop, "--crash-everywhere")
    everything = pawl("test", shop, "--crash-all")

    assert "4 crash points (a seeded sample; --crash-all tries all)" in sampled.output
    assert "6 crash points)" in everything.output


def test_journals_can_be_kept_shown_and_verified(shop, tmp_path):
    """A run's journal is a file that tells its story and proves itself."""
    kept = tmp_path / "journals"
    assert pawl("test", shop, "--journals", kept).exit_code == 0
    (path,) = kept.iterdir()

    shown = pawl("journal", "show", path)
    verified = pawl("journal", "verify", path)
    assert "instance.completed" in shown.output
    assert verified.output == f"SAME {path}: 3 turns of 1 instance\n"
    assert json.loads(pawl("journal", "verify", path, "--json").stdout)[0]["same"] is True
    assert json.loads(pawl("journal", "show", path, "--json").stdout)[0]["lines"]

    data = bytearray(path.read_bytes())
    data[-10] ^= 1
    path.write_bytes(data)
    broken = pawl("journal", "verify", path)
    assert broken.exit_code == 5
    assert "[journal." in broken.output


def test_journals_of_scenarios_of_one_name_are_numbered(shop, tmp_path):
    """None overwrites another."""
    (shop / "again.yaml").write_text(SCENARIO)

    pawl("test", shop, "--journals", tmp_path / "kept")

    kept = sorted(path.name for path in (tmp_path / "kept").iterdir())
    assert kept == ["an-order-is-shipped-2.journal", "an-order-is-shipped.journal"]


def test_a_folder_that_cannot_be_written_is_named(shop):
    """A file stands where the folder should be."""
    result = pawl("test", shop, "--journals", shop / "order.yaml" / "x")

    assert result.exit_code == 4
    assert "cli.unwritable" in result.output
