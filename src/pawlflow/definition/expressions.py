"""Every expression of a workflow: is it one, and do the steps it names come before it?

Which names an expression may use depends on where it stands; see the ROOTS below. A step named in
an expression must be an ancestor of the step it stands in, or its result might not exist yet.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pawlflow.definition.codes import CODES
from pawlflow.definition.draft import Draft, StepDraft
from pawlflow.definition.express import ExpressionError, compile_expression, compile_template
from pawlflow.definition.graph import unrelated
from pawlflow.definition.read import Node
from pawlflow.definition.readers import SECRET_KEY, bare
from pawlflow.definition.report import Report, listing, suggest

START_ROOTS = frozenset({"input", "instance"})  # before the first step: keys and search attributes
STEP_ROOTS = frozenset({"input", "steps", "instance"})
ITEM_ROOTS = frozenset({"item", "index"})
UNDO_ROOTS = frozenset({"command", "result"})
EVENT_ROOTS = frozenset({"event"})

PLACES = {
    "item": "item and index exist only in when, with, policy and undo of a step with forEach",
    "index": "item and index exist only in when, with, policy and undo of a step with forEach",
    "command": "command and result exist only in undo; use steps.NAME for a result",
    "result": "command and result exist only in undo; use steps.NAME for a result",
    "event": "event exists only in wait.match and trigger.condition",
    "payload": "payload exists only in wait.match and trigger.condition",
    "steps": "results of steps exist only inside steps and in output",
}
HYPHENATED = re.compile(r"steps\.([a-z][a-z0-9_]*(?:-[a-z0-9_]+)+)")
NAME_AT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
NAME_ROOM = 80  # characters that `steps.` and the longest name of a step take
UNKNOWN = "expression.unknown_name"


class Text(NamedTuple):
    """An expression or template, where it stands and what it may name."""

    node: Node
    field: str
    roots: frozenset[str]
    template: bool = False  # a value with `${...}` in its texts; else one expression
    fallback: str | None = None


class Mention(NamedTuple):
    """A step that an expression names."""

    step: int  # the step that the expression stands in
    name: str
    node: Node
    offset: int


def check_expressions(draft: Draft, report: Report) -> None:
    """Compile all of them, then look at the steps they name."""
    check_start(draft, report)
    ordered: list[Mention] = []
    for i, step in enumerate(draft.steps):
        for text in step_texts(step):
            ordered += mentions(i, compile_text(text, draft, report), draft, report)
        for text in undo_texts(step):
            mentions(i, compile_text(text, draft, report), draft, report)
    if "output" in draft.fields:
        text = Text(draft.spec.value["output"], "output", STEP_ROOTS, template=True)
        mentions(0, compile_text(text, draft, report), draft, report)
    refuse_strangers(ordered, draft, report)


def check_start(draft: Draft, report: Report) -> None:
    """What does not depend on steps."""
    for text in workflow_texts(draft):
        compile_text(text, draft, report)


def workflow_texts(draft: Draft) -> Iterable[Text]:
    """What is evaluated before an instance has steps."""
    spec, found = draft.spec, draft.fields
    for field in ("concurrency", "rate"):
        if field in found and found[field].key:
            yield Text(spec.at((field, "key")), f"{field}.key", START_ROOTS)
    for name in found.get("search", ()):
        yield Text(spec.at(("search", name)), f"search.{name}", START_ROOTS)
    trigger = found.get("trigger")
    if trigger and trigger.condition:
        fallback = "event" if draft.ioa else None
        node = spec.at(("trigger", "condition"))
        yield Text(node, "condition", EVENT_ROOTS, fallback=fallback)


def step_texts(step: StepDraft) -> Iterable[Text]:
    """What is evaluated while a step runs."""
    found = step.fields
    inner = STEP_ROOTS | ITEM_ROOTS if "forEach" in step.written else STEP_ROOTS
    if "when" in found:
        yield Text(step.part("when"), "when", inner)
    if "for_each" in found:
        yield Text(step.part("forEach"), "forEach", STEP_ROOTS)
    if "params" in found:
        yield Text(step.part("with"), "with", inner, template=True)
    if "show" in found:
        yield Text(step.part("show"), "show", STEP_ROOTS, template=True)
    if "resource" in found.get("policy", ()):
        yield Text(step.part("policy", "resource"), "policy.resource", inner, template=True)
    wait = found.get("wait")
    if wait and wait.match:
        yield Text(step.part("wait", "match"), "match", STEP_ROOTS | EVENT_ROOTS)


def undo_texts(step: StepDraft) -> Iterable[Text]:
    """What is evaluated when a step is undone: by then any step may have run."""
    undo = step.fields.get("undo")
    if undo and undo.params:
        roots = STEP_ROOTS | UNDO_ROOTS
        if "forEach" in step.written:
            roots |= ITEM_ROOTS
        yield Text(step.part("undo", "with"), "undo.with", roots, template=True)


def compile_text(text: Text, draft: Draft, report: Report) -> list[tuple[str, Node, int]]:
    """The steps it names, each with the node and the offset of the name in it."""
    found = []
    for node in leaves(text.node) if text.template else [text.node]:
        lead = 0 if text.template else bare(str(node.value))[1]
        try:
            named = compile_template_leaf(node, text) if text.template else compile_leaf(node, text)
        except ExpressionError as error:
            refuse_text(error, text, node, draft, report)
            refs = ((ref[1], at) for ref, at in error.refs if names_step(ref))
            # Of steps.my-long-name, `my` is no step that anybody means.
            named = [each for each in refs if not hyphens_at(str(node.value), lead + each[1])]
        found += [(name, node, lead + offset) for name, offset in named]
    return found


def leaves(node: Node) -> Iterator[Node]:
    """The texts of a template that hold something to evaluate.

    One by one, so that a mistake in one does not hide the next.
    """
    if isinstance(node.value, dict):
        for name, child in node.value.items():
            if name != SECRET_KEY:  # a name, never an expression
                yield from leaves(child)
    elif isinstance(node.value, list):
        for child in node.value:
            yield from leaves(child)
    elif isinstance(node.value, str) and "${" in node.value:
        yield node


def compile_leaf(node: Node, text: Text) -> list[tuple[str, int]]:
    """The steps that an expression names; `true` and `false` need no compiling."""
    if isinstance(node.value, bool):
        return []
    compiled = compile_expression(bare(node.value)[0], roots=text.roots, fallback=text.fallback)
    found = zip(compiled.refs, compiled.ref_offsets, strict=True)
    return [(ref[1], at) for ref, at in found if names_step(ref)]


def compile_template_leaf(node: Node, text: Text) -> list[tuple[str, int]]:
    """The steps that a text with `${...}` names."""
    compiled = compile_template(node.value, roots=text.roots)
    found = zip(compiled.refs, compiled.ref_places, strict=True)
    return [(ref[1], at) for ref, (_, at) in found if names_step(ref)]


def names_step(ref: tuple[str, ...]) -> bool:
    """Does it name one step (and not all of them, or something else)?"""
    return ref[0] == "steps" and len(ref) > 1


def refuse_text(
    error: ExpressionError, text: Text, node: Node, draft: Draft, report: Report
) -> None:
    """Report all that is wrong with a text; steps.my-long-name is one mistake, not two."""
    source = str(node.value)
    lead = 0 if text.template else bare(source)[1]
    told: set[int] = set()
    for wrong in (error, *error.more):
        offset = None if wrong.offset is None else lead + wrong.offset
        names = hyphenated(wrong, source, offset)
        if wrong.code != UNKNOWN or told.isdisjoint(names):
            report.error(
                node.place if offset is None else node.place_at(offset),
                wrong.code,
                f"{text.field}: {wrong.message}",
                hint_of(wrong, source, offset, draft),
            )
        told.update(names)


def hyphenated(error: ExpressionError, source: str, offset: int | None) -> dict[int, str]:
    """The names with hyphens that may be behind an error, by where they stand.

    Of an unknown name that is the one which it is a part of.
    """
    if error.code != UNKNOWN or offset is None:
        return {found.start(): found[1] for found in HYPHENATED.finditer(source)}
    return hyphens_at(source, offset)


def hyphens_at(source: str, offset: int) -> dict[int, str]:
    """The name with hyphens that an offset lies in, if there is one, by where it stands."""
    around = HYPHENATED.finditer(source, max(offset - NAME_ROOM, 0), offset + NAME_ROOM)
    return {found.start(): found[1] for found in around if offset in range(*found.span())}


def hint_of(error: ExpressionError, source: str, offset: int | None, draft: Draft) -> str:
    """A better way out than the grammar can know."""
    for name in hyphenated(error, source, offset).values():
        if name in draft.index:
            return f"a name with a hyphen is written steps['{name}']"
    name_at = NAME_AT.match(source, offset) if offset is not None else None
    if name_at and error.code == UNKNOWN and name_at[0] in PLACES:
        return PLACES[name_at[0]]
    return error.hint or CODES[error.code][1]


def mentions(
    i: int, named: Iterable[tuple[str, Node, int]], draft: Draft, report: Report
) -> list[Mention]:
    """The named steps that exist; the others are reported."""
    found = []
    for name, node, offset in named:
        if name in draft.index:
            found.append(Mention(i, name, node, offset))
        else:
            report.error(
                node.place_at(offset),
                "expression.unknown_step",
                f"{name!r} is not a step; steps are: {listing(draft.index)}",
                suggest(name, draft.index) or "use the name of a step",
            )
    return found


def refuse_strangers(mentioned: list[Mention], draft: Draft, report: Report) -> None:
    """Refuse names of steps that do not come before the step they are used in."""
    questions = {
        (mention.step, draft.index[mention.name])
        for mention in mentioned
        if mention.step in draft.placed and mention.step not in draft.unclear
    }
    strangers = unrelated(draft.parents, draft.order, questions)
    if not strangers:
        return
    # A step that comes later cannot be made a dependency: that would close a circle.
    backwards = {(target, step) for step, target in strangers}
    unordered = unrelated(draft.parents, draft.order, backwards)
    for mention in mentioned:
        pair = (mention.step, draft.index[mention.name])
        if pair in strangers:
            refuse_stranger(mention, draft, report, later=pair[::-1] not in unordered)


def refuse_stranger(mention: Mention, draft: Draft, report: Report, *, later: bool) -> None:
    """One of them."""
    step = draft.steps[mention.step].shown
    if mention.name == draft.steps[mention.step].name:
        problem, hint = "itself", "a step has no result while it runs; use another step's"
    elif later:
        problem = f"{mention.name!r}, which comes after it"
        hint = f"use a step before {step}, or move the value to a step after {mention.name!r}"
    elif draft.index[mention.name] not in draft.placed:  # which side it lies on is not known
        problem = f"{mention.name!r}, which does not come before it"
        hint = f"use a step before {step}; {mention.name!r} never starts, because of a circle"
    else:
        problem = f"{mention.name!r}, which does not come before it"
        hint = f"add {mention.name!r} to dependsOn of {step}"
    report.error(
        mention.node.place_at(mention.offset),
        "expression.not_ancestor",
        f"step {step} uses the result of {problem}",
        hint,
    )
