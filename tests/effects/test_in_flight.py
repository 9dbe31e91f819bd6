"""Definitions and functions that change while instances are in flight. Real processes."""

import pytest

from tests.effects.in_flight_kit import FIRST, STEPS, YAML, YAML_STEPS, Programs, asked, ended


@pytest.fixture
def place(tmp_path):
    return Programs(tmp_path)


CALLED = 'finish(save_party(request.n, "hello"))'
# The functions as they are later, and how the flow calls them then.
HARMLESS = {
    "the same": (
        "async def save_party(party, note):",
        "async def finish(saved, mail=None):",
        CALLED,
    ),
    "an optional parameter more": (
        "async def save_party(party, note, again=False):",
        "async def finish(saved, mail=None, copy=()):",
        CALLED,
    ),
    "another order": (
        "async def save_party(note, party):",
        "async def finish(mail=None, *, saved):",
        'finish(saved=save_party("hello", request.n))',
    ),
    "a parameter renamed": (
        "async def save_party(record, note):",
        "async def finish(outcome, mail=None):",
        CALLED,
    ),
    "a parameter less": (
        "async def save_party(party):",
        "async def finish(saved):",
        "finish(save_party(request.n))",
    ),
    "ctx": ("async def save_party(ctx, party, note):", "def finish(saved, ctx):", CALLED),
    "a plain function": ("def save_party(party, note):", "def finish(saved):", CALLED),
}


@pytest.mark.req("R69", "R70")
@pytest.mark.parametrize("edit", HARMLESS)
def test_harmless_edits_strand_nothing(place, edit):
    """Whatever a Python developer calls harmless: the instance goes on, with the same values."""
    save, finish, called = HARMLESS[edit]
    value = "record" if "record" in save else "party"
    result = "outcome" if "outcome" in finish else "saved"
    place.module("first", FIRST)
    place.begun_and_killed("first", "provision", "p-1")
    place.module(
        "second",
        FIRST.replace(CALLED, called)
        .replace("async def save_party(party, note):", save)
        .replace(
            '    print("called", flush=True)\n    await asyncio.Event().wait()',
            f"    return {value} + 41",
        )
        .replace("async def finish(saved, mail=None):", finish)
        .replace('{"saved": saved}', f'{{"saved": {result}}}'),
    )
    assert ended(place, "second") == "{'saved': 42}"


@pytest.mark.req("R69")
def test_an_instance_stays_on_the_flow_it_started_with(place):
    """The new flow has other steps; the old instance runs the old ones, a new one the new ones."""
    place.module("first", FIRST)
    place.begun_and_killed("first", "provision", "p-1")
    place.module(
        "second",
        """
from pawlflow import flow, step

@step
async def save_party(party, note): return party

@step
async def finish(saved, mail=None): return {"saved": saved}

@step
async def check(saved): return "checked"

@flow
def provision(request):
    saved = save_party(request.n, "hello")
    return [check(saved, after=[saved])]
""",
    )
    with place.program("second", "provision", "p-2") as process:
        assert process.stdout.readline() == "open\n"
        assert asked(process, "result p-1") == "{'saved': 1}"
        assert asked(process, "result p-2") == "['checked']"
    old, new = place.shown("p-1"), place.shown("p-2")
    assert list(old["steps"]) == ["save_party", "finish"]
    assert list(new["steps"]) == ["save_party", "check"]
    assert old["definition_hash"] != new["definition_hash"]


@pytest.mark.req("R69")
def test_an_instance_stays_on_its_definition_when_the_flow_is_gone(place):
    """Its functions are enough."""
    place.module("first", FIRST)
    place.begun_and_killed("first", "provision", "p-1")
    text = FIRST.replace(
        '    print("called", flush=True)\n    await asyncio.Event().wait()', "    return 7"
    )
    place.module("second", text[: text.index("@flow")])
    assert ended(place, "second") == "{'saved': 7}"


@pytest.mark.req("R69", "R201")
@pytest.mark.parametrize("change", ["reordered", "other steps", "same version", "gone"])
def test_a_file_that_changes_or_goes_strands_nothing(place, change):
    """Reordered under a new version, with other steps, changed without one, or deleted."""
    file = place.folder / "order.yaml"
    file.write_text(YAML.replace("VERSION", "1").replace("STEPS", ", ".join(STEPS)))
    place.module("first", YAML_STEPS)
    place.begun_and_killed("first", "order", "o-1")
    before = place.shown("o-1")
    text = YAML.replace("VERSION", "1" if change == "same version" else "2")
    match change:
        case "reordered":
            file.write_text(text.replace("STEPS", ", ".join(STEPS[::-1])))
        case "other steps" | "same version":
            file.write_text(
                text.replace("STEPS", "{name: c, sleep: 1s}").replace(
                    '"${ steps.a }", b: "${ steps.b }"', "1"
                )
            )
        case "gone":
            file.unlink()
    body = '    print("called", flush=True)\n    await asyncio.Event().wait()'
    place.module("second", YAML_STEPS.replace(body, "    return 7"))
    assert ended(place, "second", "o-1") == "{'a': 7, 'b': 1}"
    after = place.shown("o-1")
    assert (after["version"], after["definition_hash"]) == (1, before["definition_hash"])


def test_starting_again_under_the_same_id_gives_the_old_run(place):
    """A script that is started anew with a changed flow finds what it had started."""
    place.module("first", FIRST)
    place.begun_and_killed("first", "provision", "p-1")
    text = FIRST.replace(
        '    print("called", flush=True)\n    await asyncio.Event().wait()', "    return 7"
    )
    place.module(
        "second", text.replace("finish(save_party", "finish.options(name='end')(save_party")
    )
    with place.program("second", "provision", "p-1") as process:
        assert process.stdout.readline() == "open\n"
        assert asked(process, "result p-1") == "{'saved': 7}"
    assert list(place.shown("p-1")["steps"]) == ["save_party", "finish"]
