"""Starts of what is no workflow, and ids that are none: refused, with the way out."""

import pytest

from pawlflow import Pawl, PawlError, flow, step
from tests.effects.kit import run


@step
async def lone(part):
    return part


@flow
def fine():
    return lone("a")


WRONG = [
    (lone, {}, "workflow.kind", "wrap it in a @flow"),
    (len, {}, "workflow.kind", "give a @flow"),
    (None, {}, "workflow.kind", "None is no workflow"),
    (5, {}, "workflow.kind", "5 is no workflow"),
    (fine, {"id": 5}, "instance.id", "5 is no instance id: a text"),
    (fine, {"id": b"a"}, "instance.id", "is no instance id: a text"),
    (fine, {"id": ""}, "instance.id", "is no instance id"),
]


@pytest.mark.parametrize(("what", "more", "code", "words"), WRONG)
def test_what_cannot_be_started_is_refused_with_the_way_out(what, more, code, words):
    """A PawlError with a code, and nothing was started."""

    async def main():
        async with Pawl("memory:") as pawl:
            with pytest.raises(PawlError) as refused:
                await pawl.start(what, **more)
            return refused.value, list(pawl.list())

    refused, found = run(main())
    assert refused.code == code
    assert words in str(refused)
    assert found == []


@pytest.mark.parametrize("what", [lone, len, 5])
def test_what_cannot_be_added_is_refused(what):
    """In the same words."""
    with pytest.raises(PawlError) as refused:
        Pawl("memory:").add(what)
    assert refused.value.code == "workflow.kind"


def test_what_cannot_be_registered_is_refused():
    """It was left out silently."""
    with pytest.raises(PawlError) as refused:
        Pawl("memory:").register(5)
    assert refused.value.code == "workflow.kind"
