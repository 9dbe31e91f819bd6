"""A function that is gone, or no longer fits: the instance waits, visibly. Real processes."""

import pytest

from tests.cli.live_kit import killed, until
from tests.effects.in_flight_kit import FIRST, STEPS, YAML, YAML_STEPS, Programs, asked, ended


@pytest.fixture
def place(tmp_path):
    return Programs(tmp_path)


GONE = """
from pawlflow import step

@step
async def store_party(party, note): return 1

@step
async def finish(saved, mail=None): return {"saved": saved}
"""
BACK = """
from pawlflow import step

@step
async def save_party(party, note): return 1
"""
WHOLE = GONE.replace("store_party", "save_party")


@pytest.mark.req("R69", "R209", "R228")
def test_a_function_that_is_gone_leaves_the_instance_waiting_and_says_so(place):
    """In the log once, in `why`, `show`, `ls` and `doctor` of a second terminal; it goes on."""
    place.module("first", FIRST)
    place.module("gone", GONE)
    place.module("back", BACK)
    place.begun_and_killed("first", "provision", "p-1")
    with place.program("gone") as process:
        assert process.stdout.readline() == "open\n"
        until(lambda: place.told("why", "p-1")["alerts"], "the alert")

        why = place.told("why", "p-1")
        [alert] = why["alerts"]
        assert (alert["code"], alert["effect"], alert["instances"]) == (
            "effect.no_executor",
            "save_party",
            1,
        )
        assert why["now"].startswith(
            f"no executor for the effect save_party since {alert['since']}"
        )
        assert "1 instance waits for it" in why["now"]
        assert "--worker MODULE" in why["hint"]
        assert any("cancel p-1" in hint for hint in why["hints"])
        [waiting] = place.shown("p-1")["waiting"]
        assert (waiting["step"], waiting["kind"], waiting["effect"]) == (
            "save_party",
            "executor",
            "save_party",
        )
        assert "no executor for the effect save_party" in place.pawl("ls").stderr
        told = place.told("doctor")
        assert [each["effect"] for each in told["alerts"]] == ["save_party"]
        assert "waits for somebody who carries out save_party" in place.pawl("show", "p-1").output

        assert "save_party" in asked(process, "register back")
        assert asked(process, "result p-1") == "{'saved': 1}"
        assert asked(process, "alerts") == "0"
        until(lambda: not place.told("doctor")["alerts"], "the end of the alert")
        assert asked(process, "") == ""
        process.wait(40)
        said = process.stderr.read()
    assert said.count("nobody here carries out save_party") == 1
    assert "@pawl.effect('save_party')" in said
    assert place.told("why", "p-1")["alerts"] == []


@pytest.mark.req("R69", "R228")
def test_the_alert_outlives_the_process_that_found_it(place):
    """Whoever looks later is told, and since when; the next one that has it takes it back."""
    place.module("first", FIRST)
    place.module("gone", GONE)
    place.module("back", WHOLE)
    place.begun_and_killed("first", "provision", "p-1")
    with place.program("gone") as process:
        until(lambda: place.told("why", "p-1")["alerts"], "the alert")
        killed(process)
    [before] = place.told("why", "p-1")["alerts"]
    with place.program("gone") as process:
        assert process.stdout.readline() == "open\n"
        until(lambda: asked(process, "alerts") == "1", "the second to find it")
        assert asked(process, "") == ""
        process.wait(40)
    [after] = place.told("why", "p-1")["alerts"]
    assert after["since"] == before["since"]

    assert ended(place, "back") == "{'saved': 1}"
    assert place.told("doctor")["alerts"] == []


@pytest.mark.req("R106")
def test_the_time_of_an_attempt_does_not_run_while_nobody_carries_it_out(place):
    """It times out only after somebody had its whole time; the workflow's own timeout counts."""
    slow = FIRST.replace(
        "@step\nasync def save_party", '@step(timeout="300ms")\nasync def save_party'
    )
    place.module(
        "first", slow.replace("    await asyncio.Event().wait()", "    await asyncio.sleep(60)")
    )
    place.module("gone", GONE)
    place.module("back", BACK)
    with place.program("first", "provision", "p-1") as first:
        first.stdout.readline()
        killed(first)
    with place.program("gone") as process:
        assert process.stdout.readline() == "open\n"
        until(lambda: place.told("why", "p-1")["alerts"], "the alert")
        began = place.told("why", "p-1")["alerts"][0]["since"]
        # Longer than its timeout, by the clock of the journal: another instance's sleep.
        (place.folder / "nap.yaml").write_text(NAP)
        place.told("start", place.folder / "nap.yaml", "--id", "n-1")
        until(lambda: place.state_of("n-1") == "completed", "the nap")
        assert place.shown("n-1")["closed_at"] > began
        shown = place.shown("p-1")
        assert shown["steps"]["save_party"]["state"] == "running"
        assert "save_party" in asked(process, "register back")
        assert asked(process, "result p-1") == "{'saved': 1}"


NAP = """\
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: nap}
spec: {timeout: 1m, steps: [{name: s, sleep: 1s}]}
"""


@pytest.mark.req("R90")
def test_an_instance_that_lacks_a_function_can_be_cancelled(place):
    """From a second terminal; nobody waits for the function any more, and the alert goes."""
    place.module("first", FIRST)
    place.module("gone", GONE)
    place.begun_and_killed("first", "provision", "p-1")
    with place.program("gone") as process:
        assert process.stdout.readline() == "open\n"
        until(lambda: place.told("why", "p-1")["alerts"], "the alert")
        place.told("cancel", "p-1", "--by", "ann")
        until(lambda: place.state_of("p-1") == "cancelled", "the cancel")
        until(lambda: asked(process, "alerts") == "0", "the end of the alert")
        until(lambda: not place.told("doctor")["alerts"], "the end of the alert")


def test_a_function_that_wants_more_than_the_call_gives_is_not_the_one(place):
    """A new required parameter: the instance waits, and the reason is told; nothing is failed."""
    place.module("first", FIRST)
    place.begun_and_killed("first", "provision", "p-1")
    more = FIRST.replace("save_party(party, note):", "save_party(party, note, region, currency):")
    place.module("more", more.replace('(request.n, "hello")', '(request.n, "hello", "eu", "eur")'))
    with place.program("more") as process:
        assert process.stdout.readline() == "open\n"
        until(lambda: place.told("why", "p-1")["alerts"], "the alert")
        why = place.told("why", "p-1")
        assert (
            "the function here needs currency, region, and the call gives note, party" in why["now"]
        )
        place.module("more", FIRST.replace("    await asyncio.Event().wait()", "    return 1"))
        assert "save_party" in asked(process, "reload more")
        assert process.stdout.readline() == "called\n"
        assert asked(process, "result p-1") == "{'saved': 1}"


def test_an_undo_that_is_gone_waits_too(place):
    """The rollback is not given up: it goes on when the function is back."""
    failing = YAML.replace(
        "STEPS", ", ".join((STEPS[0], "{name: b, run: fast, timeout: 1m, dependsOn: [a]}"))
    )
    (place.folder / "order.yaml").write_text(failing.replace("VERSION", "1"))
    text = YAML_STEPS.replace(
        '    print("called", flush=True)\n    await asyncio.Event().wait()', "    return 7"
    )
    text = text.replace("async def fast(): return 1", 'async def fast(): raise RuntimeError("no")')
    waits = text.replace(
        "async def undo(): return None",
        ('async def undo():\n    print("called", flush=True)\n    await asyncio.Event().wait()'),
    )
    place.module("first", waits)
    place.begun_and_killed("first", "order", "o-1")
    place.module(
        "gone", text.replace("async def undo(): return None", "async def undone(): return None")
    )
    place.module("back", text)
    with place.program("gone") as process:
        until(lambda: place.told("why", "o-1")["alerts"], "the alert")
        why = place.told("why", "o-1")
        assert (why["state"], why["alerts"][0]["effect"]) == ("compensating", "undo")
        [waiting] = place.shown("o-1")["waiting"]
        assert (waiting["step"], waiting["kind"]) == ("a", "executor")
        killed(process)
    with place.program("back") as process:
        until(lambda: place.state_of("o-1") == "failed", "the end")
    assert place.shown("o-1")["rollback"] == "full"
