"""Names of effects: one function each. Another one is refused, the same one may come again."""

import importlib
import sys
from functools import partial

import pytest

from pawlflow import Pawl, PawlError, flow, step
from pawlflow.effects.registry import Registry
from tests.effects.kit import run

MODULE = """
from pawlflow import flow, step, wait_for

@step
async def notify(who):
    return "WORD of " + who

@flow(name="FLOW")
def told(request):
    return notify(request.who, after=wait_for("go"))
"""


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """A function that writes a module and imports it."""
    monkeypatch.syspath_prepend(tmp_path)

    def made(name, text):
        (tmp_path / f"{name}.py").write_text(text)
        importlib.invalidate_caches()
        monkeypatch.delitem(sys.modules, name, raising=False)
        return importlib.import_module(name)

    return made


@pytest.fixture
def two(modules):
    """Two modules with a step of one name."""
    bill = modules("taken_billing", MODULE.replace("WORD", "bill").replace("FLOW", "bill"))
    ship = modules("taken_shipping", MODULE.replace("WORD", "parcel").replace("FLOW", "ship"))
    return bill, ship


def words_of(refused):
    """What was refused, as it is told."""
    assert refused.value.code == "effect.taken"
    return str(refused.value)


@pytest.mark.req("R69")
def test_a_step_of_another_module_does_not_take_over_what_is_in_flight(engine, two):
    """The second flow is refused with both functions; the first instance keeps its own."""
    bill, ship = two

    async def main():
        async with engine() as pawl:
            started = await pawl.start(bill.told, {"who": "zoe"}, id="b-1")
            with pytest.raises(PawlError) as refused:
                await pawl.start(ship.told, {"who": "zoe"}, id="s-1")
            with pytest.raises(PawlError) as again:  # it was not made known by halves
                await pawl.start(ship.told, {"who": "zoe"}, id="s-1")
            await pawl.signal("b-1", "go", {})
            return refused, again, await started.result(timeout="20s"), "ship" in pawl.workflows

    refused, again, result, known = run(main())
    assert "taken_billing.notify" in words_of(refused)
    assert "taken_shipping.notify" in words_of(refused)
    assert '@step(name="taken_shipping.notify")' in words_of(refused)
    assert words_of(again) == words_of(refused)
    assert (result, known) == ("bill of zoe", False)


def first(who):
    """A function."""
    return who


def second(who):
    """Another one."""
    return who


WAYS = [
    lambda pawl, bill, ship: (pawl.add(bill.told), pawl.add(ship.told)),
    lambda pawl, bill, ship: pawl.register(bill, ship),
    lambda pawl, bill, ship: pawl.register(bill.notify, ship.notify),
    lambda pawl, bill, ship: (pawl.add(bill.told), pawl.effect("notify")(first)),
    lambda pawl, bill, ship: (pawl.effect("a.b")(first), pawl.effect("a.b")(second)),
    lambda pawl, bill, ship: (pawl.agent("writer")(first), pawl.agent("writer")(second)),
    lambda pawl, bill, ship: (pawl.effect("a.b")(partial(first, 1)), pawl.effect("a.b")(second)),
    lambda pawl, bill, ship: (pawl.effect("a.b")(lambda: 1), pawl.effect("a.b")(second)),
]


@pytest.mark.parametrize("way", WAYS)
def test_no_way_of_registering_replaces_another_function(way, two):
    """By flows, modules, steps, effects and roles; methods and partials too."""
    with pytest.raises(PawlError) as refused:
        way(Pawl("memory:"), *two)
    assert "another function" in words_of(refused)


def test_two_local_functions_of_one_name_are_two(two):
    """What a function inside a function is called says which one it is."""

    def other_place():
        def local():
            return 2

        return local

    def local():
        return 1

    pawl = Pawl("memory:")
    pawl.effect("a.b")(local)
    with pytest.raises(PawlError) as refused:
        pawl.effect("a.b")(other_place())
    assert "other_place.<locals>.local" in words_of(refused)


def test_a_cell_that_is_run_again_replaces_its_function():
    """As in a notebook: the same module and name, from another piece of text."""
    registry = Registry()
    for number in (1, 2):
        cell = {"__name__": "__main__", "step": step}
        exec(compile(f"@step\ndef work(): return {number}", f"<cell {number}>", "exec"), cell)
        registry.add("work", cell["work"])
    assert registry.effects["work"].fn() == 2


def test_a_module_that_is_reloaded_replaces_its_functions(modules):
    """Its flows, too."""
    pawl = Pawl("memory:")
    found = modules("taken_once", MODULE.replace("WORD", "one").replace("FLOW", "once"))
    pawl.register(found)
    newer = MODULE.replace("WORD", "a newer one").replace("FLOW", "once")
    pawl.register(modules("taken_once", newer))
    assert run(pawl.registry.effects["notify"].fn("zoe")) == "a newer one of zoe"


def test_a_file_that_is_two_modules_has_one_function(modules, tmp_path):
    """A program is `__main__`, and its own name for whoever imports it."""
    found = modules("taken_main", MODULE.replace("WORD", "one").replace("FLOW", "once"))
    path = tmp_path / "taken_main.py"
    program = {"__name__": "__main__"}
    exec(compile(path.read_text(), str(path), "exec"), program)
    registry = Registry()
    registry.add("notify", found.notify)
    registry.add("notify", program["notify"])
    assert registry.effects["notify"].fn is program["notify"].fn


def test_options_of_a_step_are_no_other_function():
    """Two flows may call it with two timeouts."""

    @flow
    def quick(request):
        return stepped.options(timeout="1s")(request.who)

    @flow
    def slow(request):
        return stepped.options(timeout="1h")(request.who)

    pawl = Pawl("memory:")
    pawl.add(quick)
    pawl.add(slow)
    assert pawl.registry.effects["stepped"].traced


@step
def stepped(who):
    """A step."""
    return who
