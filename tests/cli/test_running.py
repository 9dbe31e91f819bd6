"""`run`, `start` and `wait`: an instance begun, driven and followed to its end."""

import json

import pytest

from tests.cli.live_kit import until

SHIP = '{"amount": 1}'


@pytest.mark.req("R185")
def test_a_run_prints_its_output(place):
    """Progress is told beside it; standard output is the output alone."""
    done = place.pawl(
        "run", "order.yaml", "--worker", "shop_steps.py", "--input", SHIP, "--id", "o-1"
    )

    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == {"parcel": "o-1"}
    assert "charge  succeeded" in done.stderr
    assert done.stderr.splitlines()[-1].endswith("completed")


@pytest.mark.req("R185")
def test_a_run_that_fails_ends_with_1(place):
    """The error, where it was, and the command that says why."""
    place.pawl("apply", "-f", "order.yaml")

    done = place.pawl("run", "order", "--worker", "shop_steps", "--input", '{"amount": 300}')
    told = place.told(
        "run", "order", "--worker", "shop_steps", "--input", '{"amount": 300}', exits=1
    )

    assert done.exit_code == 1
    assert "failed at charge: the card was refused [effect.terminal]" in done.stderr
    assert "  pawl why " in done.stderr
    assert done.stdout == ""
    assert (told["state"], told["error"]["step"]) == ("failed", "charge")


@pytest.mark.req("R93")
def test_the_same_start_twice_is_one(place):
    """The same id and input give the instance that exists; another input is a conflict."""
    start = ("start", "order.yaml", "--id", "o-1", "--by", "zoe", "--input")

    first = place.told(*start, SHIP)
    second = place.told(*start, SHIP)
    other = place.told(*start, '{"amount": 2}', exits=5)
    run = place.pawl(
        "run", "order", "--id", "o-1", "--input", '{"amount": 2}', "--stubs", "stubs.yaml"
    )

    assert (first, second) == ({"id": "o-1", "existing": False}, {"id": "o-1", "existing": True})
    assert other["error"]["code"] == "instance.conflict"
    assert run.exit_code == 3  # the stubs are for another workflow
    assert len(place.told("ls")) == 1
    again = place.pawl(*start, SHIP)
    assert again.stdout == "o-1\n"
    assert "started before" in again.stderr


@pytest.mark.req("R185", "R93")
def test_start_and_wait_are_the_two_halves_of_run(place):
    """`start` commits and returns an id; `wait` drives it, and ends as it ends."""
    started = place.pawl("start", "order.yaml", "--input", SHIP)
    key = started.stdout.strip()

    early = place.pawl("wait", key)
    done = place.pawl("wait", key, "--worker", "shop_steps.py")
    again = place.told("wait", key)

    assert started.exit_code == 0
    assert f"`pawl wait {key} --worker MODULE`" in started.stderr
    assert early.exit_code == 3
    assert "nothing here carries out card.charge" in early.stderr
    assert json.loads(done.stdout) == {"parcel": key}
    assert again["state"] == "completed"


@pytest.mark.req("R185")
def test_waiting_has_an_end(place):
    """After its time it leaves with 75; the instance goes on later."""
    place.pawl("start", "release.yaml", "--id", "r-1")

    done = place.pawl("wait", "r-1", "--timeout", "200ms", "--stubs", "stubs.yaml")

    assert done.exit_code == 75
    assert "`pawl wait r-1 --stubs stubs.yaml` goes on [cli.timeout]" in done.stderr
    assert place.shown("r-1")["waiting"][0]["step"] == "gate"
    assert place.pawl("wait", "r-1", "--timeout", "soon").exit_code == 2
    assert place.pawl("run", "release", "--timeout", "0", "--stubs", "stubs.yaml").exit_code == 75


def test_an_interrupted_run_says_how_to_go_on(place):
    """Ctrl-C leaves with 130; nothing is lost."""
    run = ("run", "release.yaml", "--id", "r-1", "--stubs", "stubs.yaml")
    with place.owner(*run) as process:
        until(lambda: place.waits_at("r-1", "gate"))
        process.send_signal(2)
        _, err = process.communicate(timeout=40)

    assert process.returncode == 130
    assert f"`pawl --db sqlite:///{place.db} wait r-1 --stubs stubs.yaml` goes on" in err
    assert "Traceback" not in err


def test_stubs_answer_in_order_and_for_one_instance_only(place):
    """Every class of failure can be told; another instance in the store is not made up."""
    place.pawl("start", "order.yaml", "--id", "other", "--input", SHIP)
    (place.folder / "answers.yaml").write_text(
        "charge: [{fail: external, message: later}, {fail: timeout}, {ok: {n: 1}, after: 10ms}]\n"
        "ship: [{fail: validation, findings: [short]}, {ok: {parcel: p}, twice: true}]\n"
    )
    (place.folder / "patient.yaml").write_text(
        "apiVersion: pawl.dev/v1\n"
        "kind: Workflow\n"
        "metadata: {name: patient}\n"
        "spec:\n"
        "  timeout: 1h\n"
        "  steps:\n"
        "    - name: charge\n"
        "      run: card.charge\n"
        "      timeout: 30s\n"
        "      onTimeout: retry\n"
        "      retryPolicy: {maxRetries: 3, initialDelay: 1ms}\n"
        "    - {name: ship, run: a.b, maxCorrectionAttempts: 1, dependsOn: [charge], timeout: 5s}\n"
        "    - {name: rest, agent: writer, dependsOn: [ship], timeout: 5s}\n"
        "  output: ${ steps.ship.parcel }\n"
    )

    shown = place.told("run", "patient.yaml", "--id", "p-1", "--stubs", "answers.yaml")

    attempts = {name: step["attempts"] for name, step in shown["steps"].items()}
    assert attempts == {"charge": 3, "ship": 2, "rest": 1}
    assert shown["steps"]["ship"]["feedback"] == 1
    assert shown["output"] == "p"
    classes = [
        each["payload"]["failure"]["class"]
        for each in place.told("history", "p-1")
        if each["eventType"] in ("AgentTaskFailed", "WorkflowStepTimedOut")
    ]
    assert classes == ["external", "timeout", "validation"]
    assert place.shown("other")["steps"]["charge"]["state"] == "running"


def test_a_scenario_serves_as_stubs(place):
    """`--stubs` takes a Scenario's stubs by themselves, or the whole file; hanging ends by time."""
    (place.folder / "s.yaml").write_text(
        "apiVersion: pawl.dev/v1\nkind: Scenario\nmetadata: {name: s}\n"
        "spec: {workflow: ./order.yaml, stubs: {ship: [{ok: {parcel: x}}]}}\n"
    )
    (place.folder / "hang.yaml").write_text("ship: [{hang: true}]\n")
    (place.folder / "none.yaml").write_text("")

    assert place.told("run", "order.yaml", "--stubs", "s.yaml")["output"] == {"parcel": "x"}
    assert place.told("run", "order.yaml", "--stubs", "none.yaml")["output"] == {"parcel": None}
    hanging = place.pawl("run", "order.yaml", "--stubs", "hang.yaml", "--timeout", "300ms")
    assert hanging.exit_code == 75


def test_a_listed_stub_goes_before_a_function(place):
    """With both, what is listed is stubbed, and functions do the rest."""
    (place.folder / "one.yaml").write_text("charge: [{ok: {charge: stubbed}}]\n")
    run = ("run", "order.yaml", "--id", "o-1", "--stubs", "one.yaml", "--worker", "shop_steps.py")

    shown = place.told(*run, "--input", '{"amount": 999}')

    assert shown["steps"]["charge"]["result"] == {"charge": "stubbed"}
    assert shown["output"] == {"parcel": "o-1"}


def test_a_run_in_memory_leaves_nothing(place):
    """`--db memory:` lives as long as the command."""
    run = ("run", "order.yaml", "--worker", "shop_steps.py", "--input", SHIP, "--id", "m")

    done = place.pawl(*run, "--db", "memory:")

    assert json.loads(done.stdout) == {"parcel": "m"}
    assert not place.db.exists()


@pytest.mark.parametrize("verb", ["run", "start"])
def test_an_unknown_workflow_is_not_found(place, verb):
    """Exit 4, with the names that may have been meant."""
    place.pawl("start", "release.yaml")

    close = place.told(verb, "releese", exits=4)
    far = place.told(verb, "zzz", exits=4)
    none = place.told(verb, "zzz", "--tenant", "acme", exits=4)

    assert close["error"]["message"] == "no workflow 'releese': did you mean release?"
    assert far["error"]["message"].endswith("known are: release")
    assert "`pawl --tenant acme apply -f FILE`" in none["error"]["message"]
    assert {each["error"]["code"] for each in (close, far, none)} == {"workflow.unknown"}


REFUSALS = [
    (("run", "order.yaml"), 3, "effect.no_executor", "card.charge, parcel.send"),
    (("run", "nope.yaml"), 4, "cli.not_found", "no such file"),
    (("run", "shop_steps.py"), 4, "cli.nothing", "no function marked with @flow"),
    (("start", "order.yaml", "--input", '{"a": 1,, "b": 2}'), 2, "cli.json", "--input:1:9"),
    (("start", "order.yaml", "--input", "{"), 2, "cli.json", "--input:1:2"),
    (("start", "order.yaml", "--input", "[NaN]"), 2, "cli.json", "NaN is no number"),
    (("start", "order.yaml", "--input", f"[{2**70}]"), 2, "codec.range", "--input"),
    (("start", "order.yaml", "--input", "@nope.json"), 4, "cli.unreadable", "nope.json"),
    (("start", "order.yaml", "--input", "@broken.json"), 2, "cli.json", "broken.json:2:3"),
    (("start", "order.yaml", "--input", "@latin.json"), 2, "cli.json", "no UTF-8"),
    (("start", "order.yaml", "--input", "@large.json"), 2, "payload.too_large", "16,777,216"),
    (("start", "order.yaml", "--input", '{"a": 1, "a": 2}'), 2, "cli.json", "the key 'a' stands"),
    (("start", "order.yaml", "--input", '[{"b": {"c": 1, "c": 1}}]'), 2, "cli.json", "the key 'c'"),
    (("start", "order.yaml", "--id", "a b"), 2, "instance.id", "no instance id"),
    (("start", "order.yaml", "--id", ""), 2, "instance.id", "'' is no instance id: 1 to 128"),
    (("run", "order.yaml", "--id", ""), 2, "instance.id", "'' is no instance id"),
    (("start", "broken.yaml"), 3, "step.unknown", "broken.yaml:7:50"),
    (("start", "empty.yaml"), 4, "cli.nothing", "kind: Workflow"),
    (("start", "release.yaml", "--input", '{"repo": 1}'), 5, "input.invalid", "repo"),
    (("run", "release.yaml", "--input", '{"repo": 1}'), 5, "input.invalid", "repo"),
    (("run", "order.yaml", "--worker", "no_such_steps"), 2, "cli.worker", "no_such_steps"),
    (("run", "order.yaml", "--worker", "gone.py"), 2, "cli.worker", "no such file"),
    (("run", "order.yaml", "--worker", "broken_steps"), 2, "cli.worker", "broken_steps.py:2"),
    (("run", "order.yaml", "--worker", "needy_steps"), 2, "cli.worker", "'not_installed'"),
    (("run", "order.yaml", "--worker", "idle_steps.py"), 2, "cli.worker", "@step"),
    (("run", "order.yaml", "--stubs", "bad.yaml"), 3, "step.unknown", "bad.yaml:1:1"),
    (("run", "order.yaml", "--stubs", "nope.yaml"), 4, "cli.unreadable", "nope.yaml"),
    (("run", "order.yaml", "--url", "http://x"), 2, "cli.not_yet", "no server"),
    (("run", "order.yaml", "--db", "postgresql://x:y"), 2, "store.url", "PostgreSQL"),
    (("run", "order.yaml", "--db", "file.db"), 2, "store.url", "sqlite:///"),
    (("run", "order.yaml", "--tenant", "a\nb"), 2, "tenant.bad", "no tenant"),
]


@pytest.mark.parametrize(("words", "exits", "code", "said"), REFUSALS)
def test_what_cannot_be_run_is_refused_by_code_and_place(place, words, exits, code, said):
    """The right exit code, the stable code, and the thing that is wrong; nothing is started."""
    wrong = {
        "broken.json": '{"a":\n  x}',
        "broken.yaml": BROKEN,
        "empty.yaml": POOL,
        "bad.yaml": "chrge: [{ok: {}}]\n",
        "broken_steps.py": "x = 1\n1 / 0\n",
        "needy_steps.py": "import not_installed\n",
        "idle_steps.py": "",
    }
    for name, text in wrong.items():
        (place.folder / name).write_text(text)
    (place.folder / "latin.json").write_bytes(b'"\xe4"')
    (place.folder / "large.json").write_bytes(b'"' + b"x" * (16 * 1024 * 1024) + b'"')

    done = place.pawl(*words)

    assert done.exit_code == exits, done.output + repr(done.exception)
    assert said in done.stderr
    assert code in done.stderr
    assert not place.db.exists() or place.told("ls") == []


def test_too_much_on_standard_input_is_no_broken_json(place):
    """What is not read to its end is not judged by where it was cut; the limit is named."""
    large = '"' + "x" * (16 * 1024 * 1024) + '"'

    done = place.pawl("start", "order.yaml", "--input", "@-", stdin=large)

    assert done.exit_code == 2
    assert "standard input is too large: at most 16,777,216 bytes" in done.stderr
    assert "[payload.too_large]" in done.stderr


POOL = """\
apiVersion: pawl.dev/v1
kind: AgentPool
metadata: {name: p}
spec: {}
"""
BROKEN = """\
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: order}
spec:
  timeout: 1h
  steps:
    - {name: ship, run: parcel.send, dependsOn: [pay], timeout: 1s}
"""
LATER = BROKEN.replace("dependsOn: [pay]", "policy: {action: ship}")
