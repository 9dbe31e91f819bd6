"""`pawl sim` as a user calls it: planted mistakes are found, right workflows are left alone."""

import json
import re
import signal
import subprocess
from pathlib import Path
from textwrap import dedent

import pytest

from tests.cli.sim_kit import (
    BACK,
    EXAMPLE,
    HANGS,
    LATE_CANCEL,
    NO_UNDO,
    ONCE,
    PASSED_BY,
    PAWL,
    RIGHT,
    ROOT,
    TWICE,
    sim,
    written,
)

pytestmark = pytest.mark.timeout(600)  # minutes of work, if the machine is busy


@pytest.mark.req("R210")
@pytest.mark.parametrize(
    ("steps", "invariant", "faults_max", "said"),
    [
        (TWICE, ONCE, 2, "for the 2nd time under the same key"),
        (NO_UNDO, "state == 'completed' || executed('reserve') == undone('reserve')", 1, "charge"),
        (
            PASSED_BY,
            "executed('pay') == 0 || steps.gate.state == 'succeeded'",
            0,
            "gate is skipped",
        ),
        (LATE_CANCEL, f"state != 'cancelled' || {BACK[24:]}", 2, "is cancelled by eve"),
    ],
    ids=["retry-without-dedupe", "missing-undo", "gate-passed-by", "cancelled-late"],
)
def test_a_mistake_is_found_shrunk_and_played_again(tmp_path, steps, invariant, faults_max, said):
    """Within few seeds; the tape is short, its story says what happened, and it plays again."""
    written(tmp_path, steps)

    done = sim(tmp_path, "shop.yaml", "--seeds", "60", "--invariant", invariant, "--json")

    assert done.returncode == 1, done.stdout + done.stderr
    [found] = json.loads(done.stdout)["failures"]
    assert found["invariant"] == invariant
    assert found["instances"] == 1
    assert len(found["faults"]) <= faults_max
    assert any(said in line for line in found["story"])
    again = sim(tmp_path, "shop.yaml", "--tape", Path(found["tape"]).name)
    assert again.returncode == 1
    assert [line for line in found["story"] if line not in again.stdout] == []


@pytest.mark.req("R210")
def test_a_right_workflow_stays_clean(tmp_path):
    """Three hundred seeds of every fault that a workflow is to bear, and all of them were met."""
    written(tmp_path, RIGHT)
    gate = "executed('ship') == 0 || steps.gate.state == 'succeeded'"
    given = [each for text in (ONCE, BACK, gate) for each in ("--invariant", text)]

    done = sim(tmp_path, "shop.yaml", "--seeds", "300", "--json", *given)

    told = json.loads(done.stdout)
    assert done.returncode == 0, told["failures"]
    assert (told["ok"], told["seeds"], told["failures"]) == (True, 300, [])
    assert set(told["met"]["faults_unmet"]) <= {"people.early", "people.stray", "store.lands"}
    assert set(told["met"]["instances"]) == {"completed", "failed", "cancelled"}
    assert {"ok", "transient", "timeout", "terminal", "asked again"} <= set(told["met"]["attempts"])
    assert list(tmp_path.glob("*.tape.json")) == []


@pytest.mark.req("R210")
def test_an_executor_that_remembers_its_key_mends_it(tmp_path):
    """With --idempotent the same workflow is fine, and its tape no longer breaks anything."""
    written(tmp_path, TWICE)
    broken = sim(tmp_path, "shop.yaml", "--invariant", ONCE, "--save", "kept.json")
    assert broken.returncode == 1
    assert "--idempotent charge" in broken.stdout

    fine = sim(tmp_path, "shop.yaml", "--invariant", ONCE, "--idempotent", "charge")
    tape = sim(tmp_path, "shop.yaml", "--tape", "kept.json", "--idempotent", "charge")

    assert (fine.returncode, tape.returncode) == (0, 0)
    assert tape.stdout == f"fine: the tape no longer breaks {ONCE}\n"


def test_executors_without_memory_are_a_fault_that_is_asked_for(tmp_path):
    """Told twice and done twice: only --idempotent helps, so it is not there by default."""
    written(tmp_path, RIGHT)

    harsh = sim(tmp_path, "shop.yaml", "--invariant", ONCE, "--faults", "+exec.forgets,-people")
    borne = sim(
        tmp_path,
        *("shop.yaml", "--invariant", ONCE, "--faults", "+exec.forgets", "--idempotent", "all"),
    )

    assert harsh.returncode == 1
    assert "does not remember" in harsh.stdout
    assert borne.returncode == 0, borne.stdout


@pytest.mark.req("R210")
def test_the_same_seed_is_the_same_run_whatever_python_hashes(tmp_path):
    """A hash of everything that happened, in processes with different hash seeds."""
    written(tmp_path, RIGHT)
    runs = [
        sim(tmp_path, "shop.yaml", "--seeds", "25", "--json", PYTHONHASHSEED=seed)
        for seed in ("0", "1", "4711")
    ]
    traces = {json.loads(run.stdout)["trace"] for run in runs}
    other = sim(tmp_path, "shop.yaml", "--seeds", "25:50", "--json")

    assert len(traces) == 1
    assert json.loads(other.stdout)["trace"] not in traces


def test_a_step_that_never_answers_needs_a_timeout(tmp_path):
    """A stub that hangs, no timeout, nobody to ask: it never ends, and that is no fault of ours."""
    path = written(tmp_path, HANGS)
    path.write_text(path.read_text().replace("  timeout: 2d\n", ""))
    (tmp_path / "stubs.yaml").write_text("charge: [{hang: true}]\n")

    done = sim(tmp_path, "shop.yaml", "--stubs", "stubs.yaml", "--seeds", "3")

    assert done.returncode == 1
    assert "no answer ever comes to charge: it needs a timeout" in done.stdout
    assert "please report" not in done.stdout


@pytest.mark.req("R210")
def test_a_scenario_brings_its_stubs_input_and_script(tmp_path):
    """Its script acts for people; what its stubs answer is what steps give."""
    written(tmp_path, RIGHT.replace("expires: 1h", "expires: 3h"))
    (tmp_path / "scenario.yaml").write_text(
        dedent("""\
        apiVersion: pawl.dev/v1
        kind: Scenario
        metadata: {name: approved by zoe}
        spec:
          workflow: ./shop.yaml
          input: {sku: lamp}
          stubs:
            charge: [{ok: {id: c-7}, after: 2s}]
          script:
            - {at: 30m, approve: {step: gate, by: zoe, role: Boss}}
        """)
    )
    given = "input.sku == 'lamp' && (steps.gate.result == null || steps.gate.result.by == 'zoe')"
    stub = "steps.charge.result == null || steps.charge.result.id == 'c-7'"

    done = sim(
        tmp_path, "scenario.yaml", "--seeds", "40", "--invariant", given, "--invariant", stub
    )
    told = sim(tmp_path, "scenario.yaml", "--faults", "none", "--seed", "0", "--story")

    assert done.returncode == 0, done.stdout
    assert told.stdout.count("gate is approved by zoe") == 2
    assert "people." not in done.stdout


@pytest.mark.req("R210")
def test_flows_functions_and_invariants_in_python(tmp_path):
    """MODULE:FLOW, answered by its own functions; a function that fails names its line."""
    (tmp_path / "shop.py").write_text(
        dedent("""\
        from pawlflow import flow, step

        @step(timeout="30s")
        async def charge(amount: int) -> dict:
            return {"id": f"c-{amount}"}

        @step(timeout="30s")
        async def ship(charge: str) -> dict:
            return {"parcel": charge}

        @flow(timeout="1h")
        def order(request):
            paid = charge(request.amount)
            return {"parcel": ship(paid.id).parcel}
        """)
    )
    (tmp_path / "rules.py").write_text(
        dedent("""\
        def parcels_are_paid_for(run):
            assert run.executed("ship") <= run.executed("charge")
            return run.state != "completed" or run.output == {"parcel": "c-7"}

        def nothing_fails(run):
            assert run.state != "failed", f"{run.id} is {run.state} by {run.error['step']}"

        def never(run):
            return False

        def _helper(run):
            raise AssertionError
        """)
    )
    flow = ("shop:order", "--worker", "shop", "--input", '{"amount": 7}')

    fine = sim(tmp_path, *flow, "--invariant", "rules:parcels_are_paid_for", "--seeds", "40")
    broken = sim(tmp_path, *flow, "--invariant", "rules.py:nothing_fails", "--json")
    several = sim(tmp_path, *flow, "--invariants", "rules.py", "--keep-going", "--json")

    assert fine.returncode == 0, fine.stdout + fine.stderr
    [found] = json.loads(broken.stdout)["failures"]
    assert re.fullmatch(r"i\d is failed by (charge|ship) \(rules\.py:6\)", found["why"])
    names = {each["invariant"] for each in json.loads(several.stdout)["failures"]}
    assert names == {"rules.py:nothing_fails", "rules.py:never"}
    tapes = [each["tape"] for each in json.loads(several.stdout)["failures"]]
    assert all((tmp_path / tape).is_file() for tape in tapes)
    assert len(set(tapes)) == len(tapes)


@pytest.mark.req("R210")
def test_an_interrupt_tells_what_was_found(tmp_path):
    """Ctrl-C in the middle of a long sweep: the sums so far, and 130."""
    written(tmp_path, RIGHT)
    soon = "from pawlflow.cli import sim_told; sim_told.PIPE_S = 0.05; "
    command = [*PAWL[:2], soon + PAWL[2], "sim", "shop.yaml", "--minutes", "10"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stderr is not None
        first = running.stderr.readline()
        running.send_signal(signal.SIGINT)
        try:
            told, _ = running.communicate(timeout=40)
        finally:
            running.kill()  # by now it has ended, or the test has failed

    assert re.search(r"\d+ seeds, [\d,]+ faults \(\d+ of \d+ kinds\)", first)
    assert running.returncode == 130
    assert re.match(r"interrupted after [\d,]+ seeds?, all fine: shop", told)


def test_the_kinds_of_fault_are_listed():
    """For people and for machines; the harsh ones apart."""
    told = sim(ROOT, "--list-faults", "--json")
    shown = sim(ROOT, "--list-faults")
    kinds = {each["name"]: each["default"] for each in json.loads(told.stdout)}
    default, named = shown.stdout.split("Only when they are named")

    assert kinds["crash.before"]
    assert not kinds["exec.forgets"]
    assert all(f"\n{name} " in f"\n{default}" for name, on in kinds.items() if on)
    assert all(f"\n{name} " in named for name, on in kinds.items() if not on)


@pytest.mark.req("R210")
def test_the_example_tells_its_story(tmp_path):
    """Three mistakes, each by its smallest run; mended, it is clean."""
    rules = ("--invariants", "transfer.invariants")
    story = (EXAMPLE / "transfer.story.txt").read_text()

    broken = sim(EXAMPLE, "transfer.yaml", *rules, "--keep-going", "--save", str(tmp_path / "t"))
    mended = sim(EXAMPLE, "transfer-mended.yaml", *rules, "--idempotent", "deposit")

    assert broken.returncode == 1
    told = re.sub(r"^tape:.*\n(again:.*\n)?\n", "", broken.stdout, flags=re.MULTILINE)
    assert told.startswith(story)
    assert mended.returncode == 0, mended.stdout


@pytest.mark.req("R210")
def test_the_page_shows_what_is_printed(tmp_path):
    """The blocks of docs/simulation.md: its workflow, its command, the story and the refusal."""
    page = (ROOT / "docs" / "simulation.md").read_text()
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    workflow = next(text for kind, text in blocks if kind == "yaml")
    (tmp_path / "refund.yaml").write_text(workflow)
    texts = [text for kind, text in blocks if kind == "text"]
    command, refusal, story = texts[:3]
    invariant = re.search(r'--invariant "(.*)"', command)
    assert invariant is not None
    (tmp_path / "rules.py").write_text(next(text for kind, text in blocks if kind == "py"))

    shown = sim(tmp_path, "refund.yaml", "--invariant", invariant[1])
    refused = sim(tmp_path, "refund.yaml", "--invariant", "executed('pya') <= 1")
    python = sim(tmp_path, "refund.yaml", "--invariants", "rules.py")

    assert shown.stdout.startswith(story)
    assert refused.stderr == refusal
    assert python.returncode == 1
    assert "money_is_not_lost" in python.stdout
