"""Refs: what may be done with them, and what is refused at which line."""

import copy
import inspect
import pickle
from pathlib import Path

import pytest

from pawlflow import FlowError, Ref, expr, flow, step, text
from pawlflow.definition.express import compile_expression, compile_template
from pawlflow.effects.refs import Expr, expr_of
from pawlflow.flows.flow import Flow

HERE = Path(__file__)
A: Ref = Ref(Expr("input.a"))
B: Ref = Ref(Expr("input.b"))

WRITTEN = [
    (A.name, "input.a.name"),
    (A.refused.text.steps, "input.a.refused.text.steps"),
    (A["first name"], "input.a['first name']"),
    (A["name"][0], "input.a.name[0]"),
    (A["for"], "input.a['for']"),
    (A["in"].x, "input.a['in'].x"),
    (A[B], "input.a[input.b]"),
    (A == "it's\n", r"input.a == 'it\'s\n'"),
    (A != None, "input.a != null"),  # noqa: E711
    ((A > 1) & (B <= 2.5), "input.a > 1 && input.b <= 2.5"),
    ((A > 1) | (B >= 2) & ~B.done, "input.a > 1 || input.b >= 2 && !input.b.done"),
    (((A > 1) | (B < 2)) & True, "(input.a > 1 || input.b < 2) && true"),
    (True & (A > 1), "true && input.a > 1"),
    (False | A, "false || input.a"),
    (~(A == 1), "!(input.a == 1)"),
    ((A + 1) * 2 - B / 3 % 4, "(input.a + 1) * 2 - input.b / 3 % 4"),
    (A - (B - 1), "input.a - (input.b - 1)"),
    (1 + A, "1 + input.a"),
    (1 - A, "1 - input.a"),
    (2 * A, "2 * input.a"),
    (6 / A, "6 / input.a"),
    (7 % A, "7 % input.a"),
    (-A, "-input.a"),
    (-(A + 1), "-(input.a + 1)"),
    (A == [1, "x", B], "input.a == [1, 'x', input.b]"),
    (A == {"k": B}, "input.a == {'k': input.b}"),
    (A > -1, "input.a > -1"),
    (expr("size(x) > n", x=A.items, n=3), "size(input.a.items) > 3"),
    (expr("x.exists(i, i.x == x[0])", x=A), "input.a.exists(i, i.x == input.a[0])"),
    (expr("a in b", a=A, b=B) & True, "(input.a in input.b) && true"),
    (text("{} and {b}", A, b=B) == "x", "string(input.a) + ' and ' + string(input.b) == 'x'"),
    (text("{}", A), "string(input.a)"),
    (text("plain"), "'plain'"),
    (text("{1}{0}", A, B), "string(input.b) + string(input.a)"),
    (text("{x.id} {x[0]}", x=A), "string(input.a.id) + ' ' + string(input.a[0])"),
]


@pytest.mark.req("R229")
@pytest.mark.parametrize(("ref", "written"), WRITTEN, ids=[written for _, written in WRITTEN])
def test_an_operation_writes_an_expression(ref, written):
    """What is written is one, and no more brackets than it needs."""
    assert expr_of(ref).text == written
    compile_expression(written, roots=frozenset({"input"}))
    assert repr(ref) == f"<Ref {written}>"


def use_if(ref):
    return 1 if ref.x else 2


def use_and(ref):
    return ref.x and ref.y


def use_in_list(ref):
    return ref in [1, 2]


def use_chained(ref):
    return 1 < ref.x < 3


def use_for(ref):
    return list(ref.items)


def use_unpack(ref):
    a, b = ref
    return a, b


def use_len(ref):
    return len(ref)


def use_f_string(ref):
    return f"hello {ref.name}"


def use_str(ref):
    return str(ref)


def use_join(ref):
    return "%s" % ref  # noqa: UP031


def use_set(ref):
    return {ref}


def use_key(ref):
    return {"a": 1}[ref]


def use_contains(ref):
    return "a" in ref


def use_int(ref):
    return int(ref)


def use_float(ref):
    return float(ref)


def use_range(ref):
    return range(ref)


def use_slice(ref):
    return ref[1:2]


def use_set_attribute(ref):
    ref.x = 1


def use_call(ref):
    return ref.get("x")


def use_foreign(ref):
    return (ref.x == 1j) is None


def use_negative(ref):
    return ref.items[-1]


def use_set_item(ref):
    ref["x"] = 1


def use_power(ref):
    return ref.x**2


def use_round(ref):
    return round(ref.x)


def use_pickle(ref):
    return pickle.dumps(ref)


MISUSES = {
    use_negative: "count from the front",
    use_set_item: "changed copy",
    use_power: "let a step",
    use_round: "let a step",
    use_pickle: "let a step",
    use_if: "when=",
    use_and: "when=",
    use_in_list: "when=",
    use_chained: "when=",
    use_for: "each(",
    use_unpack: "each(",
    use_len: "size(x)",
    use_f_string: "text(",
    use_str: "text(",
    use_join: "text(",
    use_set: "its name",
    use_key: "its name",
    use_contains: "expr(",
    use_int: "int(x)",
    use_float: "double(x)",
    use_range: "each(",
    use_slice: "let a step",
    use_set_attribute: "let a step",
    use_call: "call a step",
    use_foreign: "numbers, texts",
}


@pytest.mark.req("R229")
@pytest.mark.parametrize("use", MISUSES, ids=lambda use: use.__name__)
def test_a_misuse_names_the_line_and_the_way_out(use):
    """The traceback is ours; the message speaks of the user's line."""
    line = inspect.getsourcelines(use)[1] + len(inspect.getsource(use).splitlines()) - 1
    line -= use is use_unpack
    with pytest.raises(FlowError) as caught:
        _ = Flow(use, name="misuse").workflow
    assert str(caught.value).startswith(f"{HERE}:{line}: ")
    assert MISUSES[use] in str(caught.value)
    assert caught.value.code in ("flow.ref_misuse", "flow.value")
    assert caught.value.place.column > 1


@step
def work(x: int) -> int:
    return x


def test_awaiting_inside_a_flow_is_refused():
    """Steps are called; they run later."""

    @flow
    def waits(request):
        work(request).__await__()

    with pytest.raises(FlowError, match="without await"):
        _ = waits.workflow


def test_a_flow_that_is_async_is_refused_where_it_stands():
    """And told of loops."""
    with pytest.raises(FlowError, match="@loop") as caught:

        @flow
        async def waits(request): ...

    assert str(HERE) in str(caught.value)


def test_refs_of_two_flows_do_not_mix():
    """What one flow made another cannot read."""
    stolen = []

    @flow
    def first(request):
        stolen.append(work(request))

    @flow
    def second(request):
        work(request)  # a step of the same name does not make it the same
        return work(stolen[0], name="other")

    @flow
    def third(request):
        return work(request) == stolen[0]

    _ = first.workflow
    with pytest.raises(FlowError, match="another flow"):
        _ = second.workflow
    with pytest.raises(FlowError, match="another flow") as caught:
        _ = third.workflow
    assert caught.value.code == "flow.foreign_ref"


@pytest.mark.parametrize(
    ("ref", "said"),
    [
        (text("cost ${} now", A), "cost $5 now"),
        (text("{}{}", "$", A), "$5"),
        (text("${{x}} {}", A), "${x} 5"),
        (text("$$ {} ${{", A), "$$ 5 ${"),
        (text("{}$${}", A, A), "5$$5"),
    ],
)
def test_a_text_is_what_it_says(ref, said):
    """Dollars and braces too, as a template and as an expression."""
    roots = frozenset({"input"})
    template = compile_template(expr_of(ref).template, roots=roots)
    expression = compile_expression(expr_of(ref).text, roots=roots)
    for made in (template, expression):
        values = [{"a": 5} if len(each) == 1 else 5 for each in made.refs]
        assert made.evaluate(values) == said


def test_a_ref_may_be_copied():
    """It never changes."""
    assert copy.copy(A) is A
    assert copy.deepcopy([A])[0] is A


@pytest.mark.parametrize(
    ("form", "values", "named", "said"),
    [
        ("{} {}", (1,), {}, "a value too few"),
        ("{}", (1, 2), {}, "does not use 1"),
        ("{who}", (), {}, "no value for 'who'"),
        ("{a}", (), {"a": 1, "b": 2}, "does not use b"),
        ("{:>3}", (1,), {}, "has a format"),
        ("{a!r}", (), {"a": 1}, "has a format"),
        ("{", (), {}, "Single '{'"),
        ("{a-b}", (), {}, "no hole"),
    ],
)
def test_texts_are_counted(form, values, named, said):
    """Like a format string."""
    with pytest.raises(FlowError, match=said):
        text(form, *values, **named)


def test_an_expression_that_is_none_is_refused():
    """With what the tokenizer says."""
    with pytest.raises(FlowError, match="not closed"):
        expr("'open")
