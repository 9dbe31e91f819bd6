"""Flows that are their own children: recursion that ends by `when`."""

import pytest

from pawlflow import Pawl, PawlError, flow, step
from tests.effects.kit import run


@step
async def less(n: int) -> int:
    return n - 1


@step
async def total(n: int, rest: int | None = None) -> int:
    return n + (rest or 0)


@flow(timeout="1m")
def countdown(request):
    left = less(request.n)
    deeper = countdown({"n": left}, when=left > 0, name="deeper")
    return total(request.n, after=[deeper])


@flow(timeout="1m")
def even(request):
    left = less(request.n)
    odd({"n": left}, when=left > 0, name="other")
    return left


@flow(timeout="1m")
def odd(request):
    left = less(request.n)
    even({"n": left}, when=left > 0, name="other")
    return left


@pytest.mark.req("R229")
@pytest.mark.parametrize(("which", "names"), [(countdown, 1), (even, 2), (odd, 2)])
def test_a_flow_may_be_its_own_child(engine, which, names):
    """Directly, and by way of another; each is made known once."""

    async def main():
        async with engine() as pawl:
            started = await pawl.start(which, {"n": 3}, id="r-1")
            result = await started.result(timeout="20s")
            return result, len(pawl.list()), len(pawl.workflows)

    result, instances, known = run(main())
    assert result == (3 if which is countdown else 2)
    assert (instances, known) == (3, names)


def test_adding_it_twice_is_nothing_new():
    """Before the engine runs, and again."""
    pawl = Pawl("memory:")
    pawl.add(even)
    pawl.add(even)
    pawl.register(odd)
    assert sorted(pawl.workflows) == ["even", "odd"]


def test_functions_of_a_child_are_looked_at_before_anything_is_known():
    """One whose name is another's leaves nothing behind."""
    pawl = Pawl("memory:")
    pawl.effect("less")(len)
    with pytest.raises(PawlError) as refused:
        pawl.add(countdown)
    assert refused.value.code == "effect.taken"
    assert pawl.workflows == {}
