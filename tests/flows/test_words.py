"""Words and calls that do not fit: each is refused at the line that wrote it."""

import asyncio
import inspect
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from pawlflow import (
    Context,
    FlowError,
    agent,
    approval,
    child,
    each,
    emit,
    flow,
    sleep,
    step,
    success,
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


@step(timeot="3s")
def misspelt(x: int) -> int:
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
    "bad name": (lambda r: work(1, name="Work It"), "flow.invalid", "Work It"),
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
    "option": (lambda r: misspelt(1), "flow.option", "timeot"),
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
