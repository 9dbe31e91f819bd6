"""Compiling: from a tree to nested closures, each holding only what it needs.

An `Expression` says which values it reads (`refs`); whoever evaluates it passes just those.
"""

# Closures are made by the thousand: unevaluated annotations spare each a tuple of its own.
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, assert_never, cast

from pawlflow.definition.express import tree
from pawlflow.definition.express.cost import COST_MAX, Env, Run
from pawlflow.definition.express.errors import (
    ExpressionError,
    did_you_mean,
    syntax_error,
    type_error,
)
from pawlflow.definition.express.functions import FUNCTIONS, look_up, present, search
from pawlflow.definition.express.macros import MACROS, Loop, absorb, truth
from pawlflow.definition.express.operators import OPERATORS, negate
from pawlflow.definition.express.parse import parse_source
from pawlflow.definition.express.paths import path, path_below
from pawlflow.definition.express.regex import Regex
from pawlflow.definition.express.scope import Ref, Scope, Table

Evaluate: TypeAlias = Callable[[Sequence[Any]], Any]


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """Something compiled. `evaluate` and `cost` take values parallel to `refs`."""

    refs: tuple[Ref, ...]  # distinct, in order of first mention
    evaluate: Evaluate = field(repr=False)  # the value, or ExpressionError
    run: Run = field(repr=False)
    slots: int  # for the variables of its macros

    def cost(self, values: Sequence[Any]) -> int:
        """The units that evaluating spends."""
        env = [*values, *spare(self.slots)]
        self.run(env)
        return COST_MAX - int(env[-1])


@dataclass(frozen=True, slots=True, eq=False)
class Expression(Program):
    """A compiled expression."""

    source: str
    ref_offsets: tuple[int, ...]  # where each is first mentioned


def compile_expression(
    source: str, *, roots: frozenset[str], fallback: str | None = None
) -> Expression:
    """Check and compile, with or without `${ }`. Raises ExpressionError with an offset."""
    table = Table(roots, fallback)
    with table.compiling():
        run = compile_node(parse_source(source), Scope(table))
    offsets = tuple(offset for _, offset in table.places)
    return Expression(
        refs=tuple(table.refs),
        evaluate=entry(run, table),
        run=run,
        slots=table.slots,
        source=source,
        ref_offsets=offsets,
    )


def entry(run: Run, table: Table) -> Evaluate:
    """From bare values to an Env. Closures that spend nothing read the values themselves."""
    return metered(run, table.slots) if table.metered else cast("Evaluate", run)


def metered(run: Run, slots: int) -> Evaluate:
    """The same with room for variables, and a budget."""
    tail = spare(slots)
    return lambda values: run([*values, *tail])


def spare(slots: int) -> tuple[Any, ...]:
    """What follows the values in an Env: places for variables, then what may still be spent."""
    return (None,) * slots + (COST_MAX,)


def compile_node(node: tree.Node, scope: Scope) -> Run:
    """The closure of any node."""
    scope = scope.inside()
    scope.table.nodes += 1
    match node:
        case tree.Literal():
            return constant(node.value)
        case tree.Name() | tree.Access():
            return compile_access(node, scope)
        case tree.Call():
            return compile_call(node, scope)
        case tree.Unary():
            return compile_unary(node, scope)
        case tree.Chain():
            return compile_chain(node, scope)
        case tree.Logic():
            return compile_logic(node, scope)
        case tree.Choice():
            return compile_choice(node, scope)
        case tree.ListOf() | tree.MapOf():
            return compile_collection(node, scope)
        case _:
            assert_never(node)


def constant(value: Any) -> Run:
    """Always the same value."""
    return lambda _: value


def compile_access(node: tree.Name | tree.Access, scope: Scope) -> Run:
    """Constant keys are fused into one closure; any other key is looked up on its own."""
    below: list[tree.Access] = []
    base: tree.Node = node
    while isinstance(base, tree.Access) and is_constant_key(base.key):
        below.append(base)
        base = base.base
    below.reverse()
    scope.table.nodes += len(below)
    if isinstance(base, tree.Name):
        return compile_path(base, below, scope)
    run = (
        compile_look_up(base, scope) if isinstance(base, tree.Access) else compile_node(base, scope)
    )
    return path_below(run, constant_keys(below))


def is_constant_key(key: tree.Node) -> bool:
    """Whether a key is a string or an int literal."""
    return isinstance(key, tree.Literal) and type(key.value) in (str, int)


def constant_keys(accesses: list[tree.Access]) -> tuple[str | int, ...]:
    """The keys themselves."""
    return tuple(access.key.value for access in accesses if isinstance(access.key, tree.Literal))


def compile_path(name: tree.Name, below: list[tree.Access], scope: Scope) -> Run:
    """A path from a variable, a root or a step."""
    keys = constant_keys(below)
    if name.name in scope.variables:
        return path(scope.variables[name.name], keys)
    root, member = scope.resolve(name.name, name.offset)
    if member is not None:
        keys = (member, *keys)
    elif root == "steps" and keys and isinstance(keys[0], str):
        return path(scope.table.index(("steps", keys[0]), below[0].offset), keys[1:])
    return path(scope.table.index((root,), name.offset), keys)


def compile_look_up(node: tree.Access, scope: Scope) -> Run:
    """`base[key]` with a key that is known only when evaluated."""
    scope.check_depth(node.offset)
    base, key = compile_node(node.base, scope), compile_node(node.key, scope)
    return lambda env: look_up(base(env), key(env))


def compile_unary(node: tree.Unary, scope: Scope) -> Run:
    """`!x` and `-x`; twice checks the operand and gives it back."""
    operand, twice = compile_node(node.operand, scope), node.times == 2
    if node.operator == "!":
        return lambda env: truth("'!'", operand(env)) is twice

    def run(env: Env) -> Any:
        value = negate(operand(env))
        return -value if twice else value

    return run


def compile_chain(node: tree.Chain, scope: Scope) -> Run:
    """Operators of one precedence, from left to right."""
    scope.table.metered = True
    first = compile_node(node.first, scope)
    rest = [(OPERATORS[operator], compile_node(term, scope)) for operator, term in node.rest]
    if len(rest) == 1:
        operate, second = rest[0]
        return lambda env: operate(env, first(env), second(env))

    def run(env: Env) -> Any:
        value = first(env)
        for apply, term in rest:
            value = apply(env, value, term(env))
        return value

    return run


def compile_logic(node: tree.Logic, scope: Scope) -> Run:
    """`&&` and `||`."""
    terms = [compile_node(term, scope) for term in node.terms]
    verdict, what = node.operator == "||", f"'{node.operator}'"
    return lambda env: absorb(env, terms, what, verdict=verdict)


def compile_choice(node: tree.Choice, scope: Scope) -> Run:
    """`a ? b : c`."""
    branches = [
        (compile_node(condition, scope), compile_node(then, scope))
        for condition, then in node.branches
    ]
    otherwise = compile_node(node.otherwise, scope)

    def run(env: Env) -> Any:
        for condition, then in branches:
            if truth("'?:'", condition(env)):
                return then(env)
        return otherwise(env)

    return run


def compile_collection(node: tree.ListOf | tree.MapOf, scope: Scope) -> Run:
    """`[a, b]` and `{'k': v}`."""
    if isinstance(node, tree.ListOf):
        items = [compile_node(item, scope) for item in node.items]
        return lambda env: [item(env) for item in items]
    pairs = [(compile_key(k, scope), compile_node(v, scope)) for k, v in node.entries]

    def run(env: Env) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_of, value_of in pairs:
            key = key_of(env)
            if type(key) is not str:
                raise type_error("a map", "strings as keys", key)
            if key in result:
                raise ExpressionError("expression.duplicate_key", f"the key {key!r} comes twice")
            result[key] = value_of(env)
        return result

    return run


def compile_key(node: tree.Node, scope: Scope) -> Run:
    """A map's key; a literal of another kind is refused now rather than when evaluated."""
    if isinstance(node, tree.Literal) and type(node.value) is not str:
        error = type_error("a map", "strings as keys", node.value)
        error.offset = node.offset
        raise error
    return compile_node(node, scope)


def compile_call(node: tree.Call, scope: Scope) -> Run:
    """A macro or a function, in one of the ways it may be written."""
    scope.check_depth(node.offset)
    scope.table.metered = True
    if node.function == "has" and node.receiver is None:
        return compile_has(node, scope)
    if node.function in MACROS and node.receiver is not None:
        return compile_macro(node, node.receiver, scope)
    function = FUNCTIONS.get(node.function)
    if not function or not (function.bare if node.receiver is None else function.method):
        return refuse_function(node, scope)
    arguments = node.arguments if node.receiver is None else (node.receiver, *node.arguments)
    if len(arguments) != function.arity:
        raise wrong_count(node, str(function.arity - (node.receiver is not None)))
    run, subject = function.run, compile_node(arguments[0], scope)
    if function.arity == 1:
        return lambda env: run(env, subject(env))
    if node.function == "matches" and isinstance(arguments[1], tree.Literal):
        return compile_matches(subject, arguments[1])
    argument = compile_node(arguments[1], scope)
    return lambda env: run(env, subject(env), argument(env))


def refuse_function(node: tree.Call, scope: Scope) -> Run:
    """Refuse a function, and look at the rest, in which more may be wrong.

    Not at what a method is given: of a macro that is misspelt, it would be a variable.
    """
    scope.table.refuse(unknown_function(node))
    for part in node.arguments if node.receiver is None else (node.receiver,):
        compile_node(part, scope)
    return constant(None)


def unknown_function(node: tree.Call) -> ExpressionError:
    """No function of that name, or none that is written like that."""
    name = node.function
    if node.receiver is None and (name in FUNCTIONS or name in MACROS):
        hint = f"write it after the value, as in x.{name}(...)"
    elif name in FUNCTIONS or name == "has":
        hint = f"write it before the value, as in {name}(x)"
    else:
        hint = did_you_mean(name, ["has", *FUNCTIONS, *MACROS])
    message = f"there is no function {name!r} that is called like this"
    return ExpressionError("expression.unknown_function", message, offset=node.offset, hint=hint)


def wrong_count(node: tree.Call, wanted: str) -> ExpressionError:
    """A call with too few or too many arguments."""
    message = f"{node.function}() takes {wanted} argument(s) here, not {len(node.arguments)}"
    return ExpressionError("expression.arguments", message, offset=node.offset)


def compile_matches(subject: Run, pattern: tree.Literal) -> Run:
    """A constant pattern is compiled, and refused, now."""
    if type(pattern.value) is not str:
        error = type_error("matches()", "strings", pattern.value)
        error.offset = pattern.offset
        raise error
    try:
        regex = Regex(pattern.value)
    except ExpressionError as error:
        error.offset = pattern.offset
        raise
    return lambda env: search(env, subject(env), regex)


def compile_has(node: tree.Call, scope: Scope) -> Run:
    """`has(x.y)` and `has(x['y'])`: is the member there? Of a step: has it a result?"""
    if len(node.arguments) != 1:
        raise wrong_count(node, "1")
    member = node.arguments[0]
    if isinstance(member, tree.Name) and member.name not in scope.variables:
        member = compile_has_fallback(member, scope)
    if not isinstance(member, tree.Access):
        hint = "as in has(input.tag) or has(steps['a-b'])"
        raise syntax_error("has() takes a member of something", node.offset, hint)
    base = member.base
    if isinstance(base, tree.Name) and scope.is_steps(base.name):
        result = compile_node(member, scope)
        return lambda env: result(env) is not None
    holder, key = compile_node(base, scope), compile_node(member.key, scope)
    return lambda env: present(holder(env), key(env))


def compile_has_fallback(name: tree.Name, scope: Scope) -> tree.Node:
    """A bare name that means a member of the fallback root is a member too."""
    root, member = scope.resolve(name.name, name.offset)
    if member is None:
        return name
    return tree.Access(tree.Name(root, name.offset), tree.Literal(member, name.offset), name.offset)


def compile_macro(node: tree.Call, receiver: tree.Node, scope: Scope) -> Run:
    """`receiver.map(variable, body)` and the like; the body is weighed by its nodes."""
    macro = MACROS[node.function]
    if len(node.arguments) not in macro.arguments:
        raise wrong_count(node, " or ".join(map(str, macro.arguments)))
    variable, *bodies = node.arguments
    if not isinstance(variable, tree.Name):
        message = f"the first argument of {node.function}() is the name of its variable"
        raise syntax_error(message, node.offset, f"as in x.{node.function}(i, ...)")
    subject = compile_node(receiver, scope)
    inner, slot = scope.bind(variable.name)
    before = scope.table.nodes
    runs = [compile_node(body, inner) for body in bodies]
    loop = Loop(node.function, subject, slot, 1 + scope.table.nodes - before)
    return macro.build(loop, *runs)
