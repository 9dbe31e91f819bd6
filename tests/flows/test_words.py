"""Words and calls that do not fit: each is refused at the line that wrote it."""

import asyncio
import inspect
import random
from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum
from functools import partial
from pathlib import Path

import pytest

from pawlflow import (
    Context,
    FlowError,
    agent,
    approval,
    child,
    each,
    effect,
    emit,
    flow,
    secret,
    sleep,
    step,
    success,
    text,
    wait_for,
)
from pawlflow.flows.flow import Flow

HERE = Path(__file__)


@step
def work(x: int, y: int = 0) -> int:
    return x + y


@step(name="work")
def impostor(x: int) -> int:
    return -x


@step
def greet(name: str) -> str:
    return name


@step
def any_number(*numbers: int) -> int:
    return sum(numbers)


@step(undo=3)
def badly_undone(x: int) -> int:
    return x


@flow
def small(request):
    return work(request.x)


REFUSED = {
    "too many": (lambda r: work(1, 2, 3), "flow.arguments", "too many positional"),
    "missing": (lambda r: work(), "flow.arguments", "missing a required argument"),
    "unknown": (lambda r: work(1, z=2), "flow.arguments", "unexpected keyword"),
    "varargs": (lambda r: any_number(1, 2), "flow.arguments", "no name to be kept under"),
    "twice": (lambda r: [work(1), work(2)], "flow.step_twice", 'name="work-2"'),
    "two functions": (lambda r: [work(1), impostor(2)], "flow.two_functions", "impostor"),
    "after a number": (lambda r: work(1, after=3), "flow.after", "not int"),
    "after a list": (lambda r: work(1, after=[3]), "flow.after", "not 3"),
    "after input": (lambda r: work(1, after=[r.x]), "flow.after", "comes from no step"),
    "after unknown": (lambda r: work(1, after=["nobody"]), "flow.foreign_ref", "nobody"),
    "success of two": (lambda r: work(1, after=success(r)), "flow.after", "one step"),
    "no value": (lambda r: work(object()), "flow.value", "object"),
    "key": (lambda r: work({1: 2}), "flow.value", "keys of a mapping"),
    "empty": (lambda r: None, "flow.invalid", "no steps"),
    "bad name": (lambda r: work(1, name="Work It"), "flow.name", 'name="work-it"'),
    "bad duration": (lambda r: sleep("soon"), "flow.invalid", "duration"),
    "unknown member": (
        lambda r: work(1, when="steps.nobody.x"),
        "flow.invalid",
        "nobody",
    ),
    "each none": (lambda r: each(r, lambda item: 3), "flow.each", "called none"),
    "each two": (
        lambda r: each(r, lambda i: [work(i), greet(i)]),
        "flow.each",
        "called work, greet",
    ),
    "each each": (lambda r: each(r, lambda i: each(i, work)), "flow.each", "inside each"),
    "each needs more": (lambda r: each(r, lambda i: work(i, 1), name="x"), "flow.each", "name"),
    "item outside": (
        lambda r: [each(r, lambda i: work(i + 1)), greet("x", when="item > 1")],
        "flow.invalid",
        "item",
    ),
    "child of nothing": (lambda r: child(3), "flow.child", "not 3"),
    "bad undo": (lambda r: badly_undone(1), "flow.invalid", "undo"),
    "option": (lambda r: work.options(timeot="3s")(1), "flow.option", "timeot"),
    "no duration": (lambda r: work.options(timeout="soon")(1), "flow.option", "30s, 5m"),
    "an option as an argument": (lambda r: work(1, timeout="5s"), "flow.arguments", ".options("),
    "duration of a Ref": (lambda r: sleep(r.x), "flow.value", "no duration"),
    "bytes": (lambda r: work(b"x"), "flow.value", "bytes"),
    "a set": (lambda r: work({1, 2}), "flow.value", "no order"),
    "infinite": (lambda r: work(float("inf")), "flow.value", "finite"),
    "huge": (lambda r: work(10**30), "flow.value", "64 bits"),
    "surrogate": (lambda r: work("\ud800"), "flow.value", "whole characters"),
    "repr": (lambda r: work(f"{r.x!r}"), "flow.value", "text("),
    "repr in a list": (lambda r: work(str([r.x])), "flow.value", "text("),
    "secret in a text": (lambda r: work(text("Bearer {}", secret("k"))), "flow.secret", "'k'"),
    "secret in an event": (lambda r: emit("x.y", {"k": secret("k")}), "flow.secret", "'k'"),
    "secret in an output": (lambda r: [work(1), secret("k")], "flow.secret", "'k'"),
    "secret as a condition": (lambda r: work(1, when=secret("k")), "flow.secret", "'k'"),
    "secret for a child": (lambda r: child(small, {"k": secret("k")}), "flow.secret", "'k'"),
    "each of three": (lambda r: each(r, lambda a, b, c: work(a)), "flow.each", "3 arguments"),
    "each of nothing": (lambda r: each(r, 3), "flow.each", "not 3"),
    "retry": (lambda r: work.options(retry="no")(1), "flow.option", "Retry(max=3"),
    "event": (lambda r: emit("Not An Event"), "flow.invalid", "Not An Event"),
    "role": (lambda r: agent("9"), "flow.invalid", "9"),
}


@pytest.mark.req("R229")
@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused_where_it_stands(name):
    """With a code, the line, and words that help."""
    fn, code, said = REFUSED[name]
    with pytest.raises(FlowError) as caught:
        _ = Flow(fn, name="refused").workflow
    error = caught.value
    assert (error.code, error.place.file) == (code, str(HERE))
    assert said in str(error)
    first = inspect.getsourcelines(fn)[1]
    assert first <= error.place.line <= first + 3


@pytest.mark.parametrize(
    "word",
    [
        lambda: approval("gate"),
        lambda: sleep("1s"),
        lambda: wait_for("x"),
        lambda: child("x"),
        lambda: agent("x"),
        lambda: effect("x"),
        lambda: emit("x"),
        lambda: each([1], work),
    ],
)
def test_words_belong_into_a_flow(word):
    """Elsewhere they would do nothing."""
    with pytest.raises(FlowError, match="belongs into a function with @flow"):
        word()


def test_a_flow_is_not_called():
    """It is started."""
    with pytest.raises(FlowError, match=r"pawl.start\(small, input\)"):
        small({"x": 1})


def test_an_unknown_option_of_a_flow_is_refused():
    """At once, where it is written."""
    with pytest.raises(FlowError, match="'timeot' is no option"):

        @flow(timeot="1s")
        def late(request): ...


def test_options_of_a_call_that_are_parameters_go_to_the_function():
    """`name` belongs to greet; the step's own name is an option given beforehand."""

    @flow
    def both(request):
        greet(name=request.who)
        greet.options(name="second", after="greet")(request.who)

    first, second = both.workflow.steps
    assert (first.name, first.params) == ("greet", {"name": "${ input.who }"})
    assert (second.name, second.depends_on[0].step) == ("second", "greet")


def test_a_flow_called_in_a_flow_is_its_child():
    """Its functions and its definition are brought along."""

    @flow
    def outer(request):
        one = small(request.part)
        return [one, *[each(request.parts, small, name="many", limit=3)]]

    first, many = outer.workflow.steps
    assert (first.kind, first.target, first.params) == ("workflow", "small", "${ input.part }")
    assert (many.for_each, many.limit, many.params) == ("input.parts", 3, "${ item }")
    assert outer.brought().children == {"small": small}


def test_each_gives_the_item_and_its_index():
    """A function of two gets both; constants are lists, too."""

    @flow
    def counted(request):
        return each([3, 4], lambda item, index: work(y=index, x=item))

    (only,) = counted.workflow.steps
    assert only.for_each == "[3, 4]"
    assert only.params == {"x": "${ item }", "y": "${ index }"}


@dataclass
class Order:
    """What a user has."""

    id: str
    total: float


def test_values_of_users_types_are_written_as_plain_ones():
    """And a type gives the schema of the input."""

    @flow(input=Order)
    def typed(order):
        return work(Order("a", 1.5), after=[sleep(timedelta(seconds=1.5))])

    workflow = typed.workflow
    assert workflow.steps[1].params == {"x": {"id": "a", "total": 1.5}}
    assert workflow.steps[0].sleep_ms == 1_500
    schema = workflow.input
    (name,) = schema["$defs"]
    assert schema["$defs"][name]["required"] == ["id", "total"]


def test_an_undo_is_found_beside_its_step():
    """By its name in the same module, in the function around, or as the step itself."""

    @step
    def forget(x, result): ...

    @step(undo="forget")
    def remember(x): ...

    @step(undo=forget)
    def note(x):
        return forget

    @flow
    def outer(request):
        remember(request)
        note(request)

    assert set(outer.brought().functions) == {"remember", "note", "forget"}
    assert [each.undo.target for each in outer.workflow.steps] == ["forget", "forget"]


def test_steps_are_plain_functions_without_an_engine():
    """A context that nobody gives is one for trying out."""

    @step
    async def logs(ctx: Context, x: int) -> str:
        ctx.log("hello")
        ctx.heartbeat()
        return f"{ctx.step} {ctx.attempt} {x}"

    @step
    def last(x: int, ctx: Context) -> str:
        return f"{ctx.step} {x}"

    assert work(1, y=2) == 3
    assert asyncio.run(logs(3)) == "logs 1 3"
    mine = Context.offline("mine")
    assert asyncio.run(logs(mine, 3)) == "mine 1 3"
    assert asyncio.run(logs(ctx=mine, x=3)) == "mine 1 3"
    assert mine.lines == ["hello", "hello"]
    assert last(4) == "last 4"


class Colour(IntEnum):
    """A number with a name."""

    RED = 3


def test_constants_are_plain_values():
    """Of enumerations the value; None in after= is nothing."""

    @flow
    def coloured(request):
        none = None
        work(Colour.RED, when=request.colour == Colour.RED, after=none)
        work(1, name="again", after=[none])

    first, again = coloured.workflow.steps
    assert (first.params, first.when) == ({"x": 3}, "input.colour == 3")
    assert (first.depends_on, again.depends_on) == ((), ())


def test_members_of_the_input_must_be_there():
    """A typing error in the input of a flow with several parameters is told at its start."""

    @flow
    def several(a, *, b, c=3):
        return [work(a, b), c]

    assert several.workflow.input == {"type": "object", "required": ["a", "b"]}
    assert several.workflow.steps[0].params == {"x": "${ input.a }", "y": "${ input.b }"}


def test_a_childs_own_parameters_come_first():
    """`name` is an argument of it, if it has one."""

    @flow
    def inner(name, n):
        return greet(name)

    @flow
    def outer(request):
        inner(name=request.who, n=1)

    (only,) = outer.workflow.steps
    assert (only.name, only.params) == ("inner", {"name": "${ input.who }", "n": 1})


class Shop:
    """What people try first."""

    @step
    def method(self, x: int) -> int:
        return x


def refused_function(made):
    """What is said about something that is no plain function."""
    with pytest.raises(FlowError) as caught:
        made()
    assert caught.value.code in ("flow.function", "flow.arguments", "flow.value")
    assert caught.value.place.file == str(HERE)
    return str(caught.value)


def test_only_plain_functions_are_steps_and_flows():
    """Methods, generators, nameless things and open ends are told as what they are."""

    def method(self, request): ...

    def generator(request):
        yield work(request)

    def open_end(*items): ...

    def default(a, b=1j):
        work(a)

    assert "method" in refused_function(lambda: flow(method))
    assert "generator" in refused_function(lambda: flow(generator))
    assert "no names" in refused_function(lambda: flow(open_end))
    assert "no function" in refused_function(lambda: flow(partial(method, 1)))
    assert "no name" in refused_function(lambda: step(partial(method, 1)))
    assert "not a method" in refused_function(
        lambda: Flow(lambda r: Shop.method(r), name="m").workflow  # noqa: PLW0108
    )
    assert "default of b" in refused_function(lambda: flow(default).workflow)
    assert step(name="named")(partial(work.fn, 1)).name == "named"


def test_a_line_of_the_standard_library_is_not_the_users():
    """What it did on the way is told at the line that asked it to."""

    def shuffled(request):
        random.choice(request.items)

    with pytest.raises(FlowError) as caught:
        _ = flow(shuffled).workflow
    assert caught.value.place.file == str(HERE)


def test_ctx_may_stand_anywhere():
    """Tried out without an engine, it is given where it stands."""

    @step
    def middle(a: int, ctx: Context, b: int) -> str:
        return f"{a} {ctx.step} {b}"

    @step
    def named(a: int, *, ctx: Context) -> str:
        return f"{a} {ctx.step}"

    assert middle(1, 2) == middle(1, b=2) == "1 middle 2"
    assert named(1) == "1 named"
