"""The expression language by example: what each form gives."""

import pytest
from express_kit import ROOTS, calculate, is_same

from pawlflow.definition.express import COST_MAX, ExpressionError, compile_expression

LITERALS = [
    ("null", None),
    ("true", True),
    ("0x1F", 31),
    ("-0x8000000000000000", -(2**63)),
    ("007", 7),
    (".5e1", 5.0),
    ("1e3", 1000.0),
    ("-1.5", -1.5),
    ("'it''s'", "expression.syntax"),
    (r"'\x41\u00e9\U0001F600\101\a\b\f\n\r\t\v\\\?\"\'\`'", "Aé😀A\a\b\f\n\r\t\v\\?\"'`"),
    ('"a\'b"', "a'b"),
    ("'''a'\n'b'''", "a'\n'b"),
    ('"""a"\nb"""', 'a"\nb'),
    (r"r'\n'", "\\n"),
    ('R"""\\n"""', "\\n"),
    ("r'''a\n'''", "a\n"),
    ('r"a"', "a"),
    ("b'é\\xff\\377'", b"\xc3\xa9\xff\xff"),
    ("br'\\n'", b"\\n"),
    ("[1, 'a', [null],]", [1, "a", [None]]),
    ("{'a': 1, 'b': {}, }", {"a": 1, "b": {}}),
    ("1 // the rest\n + 1", 2),
]


@pytest.mark.parametrize(("source", "result"), LITERALS)
def test_literals_are_written_as_in_cel(source, result):
    """Numbers, strings, bytes, lists, maps and comments."""
    assert is_same(calculate(source), result)


OPERATIONS = [
    ("1 + 2 * 3 - 4 % 3", 6),
    ("-7 / 2", -3),
    ("7 / -2", -3),
    ("-7 % 2", -1),
    ("7 % -2", 1),
    ("1 + 0.5", 1.5),
    ("1 / 2.0", 0.5),
    ("2 * input.half", 1.0),
    ("3 - 1 - 1", 1),
    ("--3", 3),
    ("---3", -3),
    ("-input.n", -7),
    ("--input.n", 7),
    ("---input.half", -0.5),
    ("!!!true", False),
    ("!!true", True),
    ("!-1", "expression.type"),
    ("'a' + 'b'", "ab"),
    ("b'a' + b'b'", b"ab"),
    ("[1] + [2]", [1, 2]),
    ("1 < 2 && 2.5 >= 2 && 'a' <= 'b' && b'a' < b'b' && false < true", True),
    ("1 == 1.0", True),
    ("true == 1", False),
    ("null == false", False),
    ("'1' == 1", False),
    ("[1, {'a': true}] == [1.0, {'a': true}]", True),
    ("[1] == [true]", False),
    ("[1] == [1, 2]", False),
    ("[[1]] == [{}]", False),
    ("{'a': 1} == {'b': 1}", False),
    ("{'a': 1, 'b': 2} != {'b': 2, 'a': 1.0}", False),
    ("2 in input.list", True),
    ("true in input.list", False),
    ("'a' in input.map", True),
    ("1 in input.map", False),
    ("[1] in input.map", False),
    ("input.map[[1]]", None),
    ("1 in 'text'", "expression.type"),
    ("true ? 1 : 2", 1),
    ("false ? 1 : true ? 2 : 3", 2),
    ("false ? 1 : false ? 2 : 3", 3),
    ("1 ? 2 : 3", "expression.type"),
    ("(1 + 2) * 3", 9),
    ("input.big > 0", True),
    ("input.big - 1", "expression.overflow"),
    ("9223372036854775807 + 1", "expression.overflow"),
    ("-9223372036854775808 / -1", "expression.overflow"),
    ("-9223372036854775808 % -1", "expression.overflow"),
    ("-(-9223372036854775807 - 1)", "expression.overflow"),
    ("1e308 * 10", "expression.overflow"),
    ("1 / 0", "expression.divide_by_zero"),
    ("1.0 / 0.0", "expression.divide_by_zero"),
    ("1 % 0", "expression.divide_by_zero"),
    ("1.5 % 2", "expression.type"),
    ("1 + 'a'", "expression.type"),
    ("null + null", "expression.type"),
    ("true + true", "expression.type"),
    ("1 - null", "expression.type"),
    ("'a' * 2", "expression.type"),
    ("-'a'", "expression.type"),
    ("1 < 'a'", "expression.type"),
    ("null < null", "expression.type"),
    ("[1] < [2]", "expression.type"),
    ("1 < 2 < 3", "expression.type"),
    ("{input.repo: 1}", {"pawl": 1}),
    ("{input.n: 1}", "expression.type"),
    ("{'pawl': 1, input.repo: 2}", "expression.duplicate_key"),
]


@pytest.mark.parametrize(("source", "result"), OPERATIONS)
def test_operators_follow_cel_and_never_overflow_in_silence(source, result):
    """Numbers of both kinds mix, a bool is no number, unlike values differ and have no order."""
    assert is_same(calculate(source), result)


LOGIC = [
    ("true && true && true", True),
    ("true || 1 / 0 > 0", True),
    ("1 / 0 > 0 || true", True),
    ("1 / 0 > 0 && false", False),
    ("1 && false", False),
    ("1 / 0 > 0 && true", "expression.divide_by_zero"),
    ("false || 1 / 0 > 0 || 'a' > 1", "expression.divide_by_zero"),
    ("1 && true", "expression.type"),
    ("[0, 1].all(x, 1 / x > 5)", False),
    ("[1, 0].all(x, 1 / x > 0)", "expression.divide_by_zero"),
    ("[0, 1].exists(x, 1 / x > 0)", True),
    ("[0].exists(x, 1 / x > 0)", "expression.divide_by_zero"),
    ("[1].all(x, x)", "expression.type"),
    ("[0, 1].exists_one(x, 1 / x == 1)", "expression.divide_by_zero"),
]


@pytest.mark.parametrize(("source", "result"), LOGIC)
def test_one_decisive_operand_absorbs_errors_of_the_others(source, result):
    """CEL: `&&` and `||` do not care on which side the error is."""
    assert is_same(calculate(source), result)


MEMBERS = [
    ("input.repo", "pawl"),
    ("input['a-b']", "dash"),
    ("input.`a-b`", "dash"),
    ("input.nothing", None),
    ("input.nothing.at.all", None),
    ("input.none.x[3]['y']", None),
    ("input.list[0]", 1),
    ("input.list[1.0]", 2),
    ("input.list[3]", None),
    ("input.list[-1]", None),
    ("input.list[index]", 3),
    ("input.map[input.texts[0]]", None),
    ("input.map[1]", None),
    ("input.map[true]", None),
    ("input.map[null]", None),
    ("input.list['0']", "expression.type"),
    ("input.list[1.5]", "expression.type"),
    ("input.list[true]", "expression.type"),
    ("input.list.x", "expression.type"),
    ("input.repo.x", "expression.type"),
    ("input.n[0]", "expression.type"),
    ("[[5]][0][0]", 5),
    ("{'a': {'b': 6}}.a.b", 6),
    ("input.map.package", None),
    ("steps.build[1].image", "i1"),
    ("steps['a-b'].ok", True),
    ("steps[input.repo]", None),
    ("steps.map(name, name)", ["a-b", "build", "idle"]),
    ("has(input.repo)", True),
    ("has(input.none)", True),
    ("has(input.nothing)", False),
    ("has(input.nothing.more)", False),
    ("has(input['a-b'])", True),
    ("has(input.list[2])", True),
    ("has(input.list[3])", False),
    ("has(input.n.x)", "expression.type"),
    ("has(input.map[null])", False),
    ("has(steps['a-b'])", True),
    ("has(steps.idle)", False),
    ("has(steps.build[0])", True),
    ("has(steps[input.repo])", False),
    ("has(steps['a-' + 'b'])", True),
    ("[{'a': 1}].exists(input, has(input.a))", True),
    ("[{'a': 1}].exists(steps, has(steps.a))", True),
]


@pytest.mark.parametrize(("source", "result"), MEMBERS)
def test_a_missing_member_is_null_and_so_is_a_member_of_null(source, result):
    """Paths never fail for want of data; has() tells absence from null."""
    assert is_same(calculate(source, index=2), result)


FUNCTIONS = [
    ("size('héllo')", 5),
    ("b'abc'.size()", 3),
    ("size(input.list) + input.map.size()", 5),
    ("size(1)", "expression.type"),
    ("'hello'.startsWith('he') && 'hello'.endsWith('lo') && 'hello'.contains('ll')", True),
    ("'a'.startsWith(1)", "expression.type"),
    ("'ÀBc'.lowerAscii()", "Àbc"),
    ("'àbC'.upperAscii()", "àBC"),
    ("input.n.lowerAscii()", "expression.type"),
    ("'abc'.matches('^a.c$')", True),
    ("matches('abc', 'B')", False),
    ("input.n.matches('a')", "expression.type"),
    ("'abc'.matches('b' + '$')", False),
    ("'abc'.matches('(' + input.repo)", "expression.regex"),
    ("'abc'.matches(input.n)", "expression.type"),
    ("int(1.9)", 1),
    ("int(-1.9)", -1),
    ("int('+12')", 12),
    ("int('-0009223372036854775808')", -(2**63)),
    ("int('9223372036854775808')", "expression.overflow"),
    ("int(' 1')", "expression.convert"),
    ("int('1_0')", "expression.convert"),
    ("int('\u0661')", "expression.convert"),
    ("int('99999999999999999999')", "expression.convert"),
    ("int(1e19)", "expression.overflow"),
    ("int(input.big)", "expression.overflow"),
    ("int(true)", "expression.type"),
    ("double(1)", 1.0),
    ("double('-1.5e3')", -1500.0),
    ("double('1.')", 1.0),
    ("double('nan')", "expression.convert"),
    ("double('0x1p3')", "expression.convert"),
    ("double('1e999')", "expression.overflow"),
    ("double(null)", "expression.type"),
    ("string('a')", "a"),
    ("string(true) + string(false)", "truefalse"),
    ("string(-12)", "-12"),
    ("string(2.0)", "2"),
    ("string(-0.0)", "-0"),
    ("string(0.1 + 0.2)", "0.30000000000000004"),
    ("string(0.0001)", "0.0001"),
    ("string(0.00001)", "1e-05"),
    ("string(123456.7)", "123456.7"),
    ("string(1234567.0)", "1.234567e+06"),
    ("string(1e100)", "1e+100"),
    ("string(b'abc')", "abc"),
    ("string(input.bytes)", "expression.convert"),
    ("string(null)", "expression.type"),
    ("string([1])", "expression.type"),
]


@pytest.mark.parametrize(("source", "result"), FUNCTIONS)
def test_functions_take_what_they_name_and_nothing_else(source, result):
    """Sizes, texts and conversions."""
    assert is_same(calculate(source), result)


MACROS = [
    ("[1, 2].all(x, x > 0)", True),
    ("[].all(x, false)", True),
    ("[1, 2].exists(x, x > 2)", False),
    ("[1, 2].exists_one(x, x > 1)", True),
    ("[2, 2].exists_one(x, x > 1)", False),
    ("[1].exists_one(x, x)", "expression.type"),
    ("[1, 2, 3].filter(x, x % 2 == 1)", [1, 3]),
    ("[1].filter(x, 1)", "expression.type"),
    ("[1, 2, 3].map(x, x * x)", [1, 4, 9]),
    ("[1, 2, 3].map(x, x > 1, x * x)", [4, 9]),
    ("[1].map(x, 1, 2)", "expression.type"),
    ("input.map.map(k, input.map[k])", [2, 1]),
    ("[[1, 2], [3]].map(x, x.map(y, y + size(x)))", [[3, 4], [4]]),
    ("[1].map(x, [x].map(x, x + 1) + [x])", [[2, 1]]),
    ("[[1]].map(input, input[0])", [1]),
    ("input.nothing.map(x, x)", "expression.type"),
    ("input.repo.all(x, true)", "expression.type"),
]


@pytest.mark.parametrize(("source", "result"), MACROS)
def test_macros_bind_their_variable_to_each_item(source, result):
    """Maps are gone through in key order; a variable hides what has its name outside."""
    assert is_same(calculate(source), result)


REFS = [
    ("1", (), ()),
    ("input.a + input.b", (("input",),), (0,)),
    ("item > index", (("item",), ("index",)), (0, 7)),
    (" steps.a.x + steps['b-c']", (("steps", "a"), ("steps", "b-c")), (7, 19)),
    ("steps[item] == steps.a", (("steps",), ("item",), ("steps", "a")), (0, 6, 21)),
    ("steps[0]", (("steps",),), (0,)),
    ("'a' in steps", (("steps",),), (7,)),
    ("size(steps)", (("steps",),), (5,)),
    ("has(steps.a)", (("steps", "a"),), (10,)),
    ("payload.x == event.x", (("event",),), (0,)),
    ("${ input.a }", (("input",),), (3,)),
    ("  ${input.a}  ", (("input",),), (4,)),
    ("[1].map(input, input)", (), ()),
]


@pytest.mark.parametrize(("source", "refs", "offsets"), REFS)
def test_an_expression_lists_what_it_reads(source, refs, offsets):
    """Refs are distinct and in order of first mention; a step named in text is one by itself."""
    expression = compile_expression(source, roots=ROOTS)
    assert (expression.source, expression.refs) == (source, refs)
    assert expression.ref_offsets == offsets


FALLBACKS = [
    ("tag == 'v1'", True),
    ("event.tag == payload.tag", True),
    ("has(tag)", True),
    ("has(nothing)", False),
    ("nothing.more", None),
    ("[1].map(tag, tag)", [1]),
    ("has(event)", "expression.syntax"),
    ("steps.a", None),
    ("has(steps.a)", False),
]


@pytest.mark.parametrize(("source", "result"), FALLBACKS)
def test_with_a_fallback_an_unknown_name_is_a_member_of_it(source, result):
    """Documents of ioa.dev write `tag` for `event.tag`."""
    assert is_same(calculate(source, roots=frozenset({"event"}), fallback="event"), result)


@pytest.mark.req("R67")
def test_evaluating_changes_nothing_and_depends_on_nothing_else():
    """The same values give the same result, however a map was built, and stay as they were."""
    expression = compile_expression("input.map(k, k) + [input] + [1]", roots=ROOTS)
    forth, back = {"a": 1, "b": [2]}, {"b": [2], "a": 1}
    results = [expression.evaluate([forth]), expression.evaluate((back,))]
    assert results == [["a", "b", {"a": 1, "b": [2]}, 1]] * 2
    assert list(back) == ["b", "a"]


@pytest.mark.req("R67")
def test_scalars_cost_nothing_and_lists_by_their_length():
    """The meter counts loops and copies; arithmetic and paths are free."""
    assert (
        compile_expression("input.a + 1 < 3 && input.b == 'x'", roots=ROOTS).cost(
            [{"a": 1, "b": "x"}]
        )
        == 0
    )
    loop = compile_expression("input.all(x, x > 0)", roots=ROOTS)
    assert loop.cost([[1] * 100]) == 100 * 4
    assert loop.cost([[1] * 200]) == 200 * 4
    with pytest.raises(ExpressionError, match="costs more") as caught:
        loop.evaluate([[1] * COST_MAX])
    assert caught.value.code == "expression.cost"
