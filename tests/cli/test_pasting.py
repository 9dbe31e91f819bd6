"""What the command prints to be typed next works when it is pasted; and what lists say of ids."""

import re
import shlex

import pytest
from click.testing import CliRunner

from pawlflow.cli import render
from pawlflow.cli.main import main
from tests.cli.live_kit import until

COMMAND = re.compile(r"pawl [^`\n\[\]]+")
RUN = ("run", "release.yaml", "--id", "r-1", "--stubs", "stubs.yaml", "--timeout", "300ms")


@pytest.fixture
def elsewhere(place):
    """Says things about a store and a tenant that only the command line names."""

    def pawl(*words):
        given = ["--db", "sqlite:///other place.db", *words, "--tenant", "acme"]
        return CliRunner().invoke(main, given)

    return pawl


def pasted(line):
    """The result of what was printed, typed as it stands."""
    words = shlex.split(line.replace("NAME", "ann").replace("MODULE", "shop_steps.py"))
    assert words[0] == "pawl"
    return CliRunner().invoke(main, words[1:])


def commands_in(text):
    """The commands that a text tells to type, but for the look-up of a code."""
    found = [each.strip() for each in COMMAND.findall(text)]
    return [each for each in found if not each.startswith("pawl explain")]


@pytest.mark.req("R182", "R186")
def test_every_hint_names_the_store_and_tenant_that_were_typed(elsewhere):
    """The run that is left, the reason, the review, the tree: each can be pasted."""
    left = elsewhere(*RUN)
    assert left.exit_code == 75
    [wait] = commands_in(left.stderr.partition("still open")[2])
    assert "--stubs stubs.yaml" in wait
    assert pasted(wait.replace(" goes on", "") + " --timeout 1ms").exit_code == 75

    review = elsewhere("review", "show", "r-1")
    approve, reject = commands_in(review.stdout)[:2]
    shown = elsewhere("show", "r-1")
    assert approve in shown.stdout
    why = elsewhere("why", "r-1")
    assert approve in why.stdout
    assert "--db 'sqlite:///other place.db' --tenant acme" in why.stderr  # nobody drives it
    assert pasted(approve).exit_code == 0
    assert pasted(reject).exit_code == 5  # it is decided

    unknown = elsewhere("show", "zzz")
    [listing] = commands_in(unknown.stderr)
    assert unknown.exit_code == 4
    assert pasted(listing).stdout.splitlines()[1].startswith("r-1")


def test_the_last_line_of_a_run_that_failed_can_be_pasted(place, elsewhere):
    """It names why it failed, in the store it failed in."""
    run = ("run", "order.yaml", "--worker", "shop_steps.py", "--input", '{"amount": 500}')

    done = elsewhere(*run, "--id", "o-1")

    assert done.exit_code == 1
    [why] = commands_in(done.stderr)
    assert "the card was refused" in pasted(why).stdout
    assert place.pawl(*run, "--id", "o-2").stderr.endswith("  pawl why o-2\n")  # as the environment


def test_a_worker_that_was_typed_is_in_what_goes_on(place):
    """Whoever waited with a worker waits on with it."""
    place.pawl("start", "order.yaml", "--id", "o-1", "--input", '{"amount": 1}')

    left = place.pawl("wait", "o-1", "--worker", "shop_steps.py", "--timeout", "0")

    assert left.exit_code == 75
    assert "`pawl wait o-1 --worker shop_steps.py` goes on" in left.stderr
    started = place.pawl("start", "release.yaml", "--id", "r-2")
    assert "`pawl wait r-2 --worker MODULE` does" in started.stderr


def test_the_role_that_an_escalation_asks_for_is_the_way_out(place):
    """Whoever acts in another role is told which to say."""
    laddered = "  escalation: [{role: OnCall}]\n  steps:"
    text = (place.folder / "order.yaml").read_text().replace("  steps:", laddered, 1)
    text = text.replace("timeout: 30s}", "timeout: 30s, onFailure: escalate}")
    (place.folder / "order.yaml").write_text(text)
    run = ("run", "order.yaml", "--worker", "shop_steps.py", "--id", "o-1", "--timeout", "300ms")
    place.pawl(*run, "--input", '{"amount": 500}')
    wait = ("wait", "o-1", "--worker", "shop_steps.py", "--timeout", "300ms")
    until(lambda: place.pawl(*wait) and place.shown("o-1")["state"] == "escalated")

    for verb in (("resume", "o-1", "charge"), ("cancel", "o-1")):
        refused = place.told(*verb, "--role", "Janitor", "--by", "joe", exits=5)["error"]

        assert refused["code"] == "escalation.wrong_role"
        assert refused["message"].endswith("(charge asks for OnCall)")


def test_the_next_page_is_of_the_same_list(elsewhere):
    """With the filters that were typed."""
    for number in range(2):
        elsewhere("start", "order.yaml", "--id", f"o-{number}")

    page = elsewhere("ls", "--workflow", "order", "--limit", "1")

    [more] = commands_in(page.stderr)
    assert "--workflow order --limit 1 --after o-1" in more
    assert pasted(more).stdout.splitlines()[1].startswith("o-0")


# Lists


LONG = "each.0123456789abcdef0123456789abcdef.1"
ROW = {
    "workflow": "kid",
    "version": 1,
    "tenant": "default",
    "state": "running",
    "rollback": "none",
    "started_at": "2026-11-15T06:00:00.000Z",
    "closed_at": None,
}


def test_in_a_pipe_every_instance_has_one_line():
    """However long its id is; nothing is left out."""
    rows = [ROW | {"id": LONG}, ROW | {"id": "x" * 300, "workflow": "w" * 60}, ROW | {"id": "a"}]

    lines = render.instance_lines(rows)

    assert [line.split()[0] for line in lines] == ["INSTANCE", LONG, "x" * 300, "a"]
    assert [len(line.split()) for line in lines[1:]] == [7, 7, 7]


def test_the_command_prints_them_so(place):
    """The same through the verb."""
    place.pawl("start", "order.yaml", "--id", LONG)

    listed = place.pawl("ls").stdout.splitlines()

    assert len(listed) == 2
    assert listed[1].startswith(f"{LONG}  order v1  ● running")


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("abc",        3, "abc"),
        ("abcdefgh",   5, "ab…gh"),
        ("abcdefgh",   6, "abc…gh"),
        (LONG,        20, LONG[:10] + "…" + LONG[-9:]),
    ],
)  # fmt: skip
def test_a_long_id_is_shortened_in_its_middle(text, width, expected):
    """Both ends tell it from others."""
    assert render.shortened(text, width) == expected
    assert len(render.shortened(text, width)) <= width


# Paused instances, and a store that nobody drives


@pytest.mark.req("R187")
def test_paused_instances_are_listed(place):
    """They are in no state of their own: they run or wait, and start nothing new."""
    for number in range(3):
        place.pawl("start", "order.yaml", "--id", f"o-{number}")
    place.pawl("pause", "o-1", "--by", "ann")
    place.pawl("pause", "o-2", "--by", "ann")
    place.pawl("cancel", "o-0", "--by", "ann")

    rows = place.told("ls", "--state", "paused")

    assert [(row["id"], row["state"], row["paused"]) for row in rows] == [
        *[("o-2", "running", True), ("o-1", "running", True)],
    ]
    assert "● running, paused" in place.pawl("ls", "--state", "paused").stdout
    assert [row["id"] for row in place.told("ls", "--state", "paused", "--limit", "1")] == ["o-2"]
    below = place.told("ls", "--state", "paused", "--after", "o-2")
    assert [row["id"] for row in below] == ["o-1"]
    place.pawl("unpause", "o-2", "--by", "ann")
    assert [row["id"] for row in place.told("ls", "--state", "paused")] == ["o-1"]
    assert "paused" not in place.told("ls", "--state", "running")[0]


@pytest.mark.req("R186")
def test_an_attempt_that_nobody_carries_out_is_not_said_to_run(place):
    """No process owns the file: it began, and goes on with whoever drives the store next."""
    place.pawl("start", "order.yaml", "--id", "o-1", "--input", '{"amount": 1}')

    told = place.told("why", "o-1")

    assert "attempt 1 of charge (card.charge) began at" in told["now"]
    assert "nobody carries it out now" in told["now"]
    assert "has run since" not in told["now"]
    assert told["hint"] == "pawl wait o-1 --worker MODULE"
    with place.owner("run", "release.yaml", "--id", "r-1", "--stubs", "stubs.yaml"):
        until(lambda: place.waits_at("r-1", "gate"))
        assert "has run since" in place.told("why", "o-1")["now"]


# A file that changed


@pytest.mark.parametrize("verb", ["apply", "run", "start"])
def test_a_file_that_changed_under_its_version_is_told(place, verb):
    """No error: a note says what those in flight keep, and how to tell them apart."""
    words = {
        "apply": ("apply", "-f", "order.yaml"),
        "run": ("run", "order.yaml", "--worker", "shop_steps.py", "--input", '{"amount": 1}'),
        "start": ("start", "order.yaml", "--input", '{"amount": 1}'),
    }[verb]
    first = place.pawl("start", "order.yaml", "--id", "o-1", "--input", '{"amount": 1}')
    same = place.pawl(*words)
    path = place.folder / "order.yaml"
    path.write_text(path.read_text().replace("timeout: 1h", "timeout: 2h"))

    changed = place.pawl(*words)

    assert (first.exit_code, same.exit_code, changed.exit_code) == (0, 0, 0), changed.output
    assert "changed" not in first.stderr + same.stderr
    assert "order changed, and is still version 1" in changed.stderr
    in_flight = {"apply": 1, "run": 0, "start": 2}[verb]  # a run drives what others left
    assert f"instances in flight ({in_flight} now) keep the old definition" in changed.stderr
    assert "raise metadata.version to 2" in changed.stderr
    assert "changed" not in place.pawl(*words).stderr
    raised = path.read_text().replace("name: order}", "name: order, version: 2}")
    path.write_text(raised.replace("timeout: 2h", "timeout: 3h"))
    assert "changed" not in place.pawl(*words).stderr
