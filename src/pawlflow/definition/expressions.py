"""Every expression of a workflow: is it one, and do the steps it names come before it?

Which names an expression may use depends on where it stands; see the ROOTS below. A step named in
an expression must be an ancestor of the step it stands in, or its result might not exist yet.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pawlflow.definition.codes import CODES
from pawlflow.definition.draft import Draft, StepDraft
from pawlflow.definition.express import ExpressionError, compile_expression, compile_template
from pawlflow.definition.graph import unrelated
from pawlflow.definition.read import Node
from pawlflow.definition.readers import bare
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
    for text in workflow_texts(draft):
        compile_text(text, draft, report)
    ordered: list[Mention] = []
    for i, step in enumerate(draft.steps):
        for text in step_texts(step):
            ordered += mentions(i, compile_text(text, draft, report), draft, report)
        for text in undo_texts(step):
            mentions(i, compile_text(text, draft, report), draft, report)
    if "output" in draft.fields:
        text = Text(draft.spec.value["output"], "output", STEP_ROOTS, template=True)
        mentions(0, compile_text(text, draft, report), draft, report)
    if draft.sound:
        refuse_strangers(ordered, draft, report)


def workflow_texts(draft: Draft) -> Iterable[Text]:
    """What is evaluated before an instance has steps."""
    spec, found = draft.spec, draft.fields
    for field in ("concurrency", "rate"):
        if field in found:
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
    inner = STEP_ROOTS | ITEM_ROOTS if "for_each" in found else STEP_ROOTS
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
    if undo and undo.params is not None:
        roots = STEP_ROOTS | UNDO_ROOTS
        if "for_each" in step.fields:
            roots |= ITEM_ROOTS
        yield Text(step.part("undo", "with"), "undo.with", roots, template=True)


def compile_text(text: Text, draft: Draft, report: Report) -> list[tuple[str, Node, int]]:
    """The steps it names, each with the node and the offset of the name in it."""
    found = []
    for node in leaves(text.node) if text.template else [text.node]:
        lead = 0 if text.template else bare(str(node.value))[1]
        try:
            named = compile_template_leaf(node, text) if text.template else compile_leaf(node, text)
            found += [(name, node, lead + offset) for name, offset in named]
        except ExpressionError as error:
            offset = None if error.offset is None else lead + error.offset
            report.error(
                node.place if offset is None else node.place_at(offset),
                error.code,
                f"{text.field}: {error.message}",
                hint_of(error, node.value, offset, draft),
            )
    return found


def leaves(node: Node) -> Iterator[Node]:
    """The texts of a template that hold something to evaluate.

    One by one, so that a mistake in one does not hide the next.
    """
    if isinstance(node.value, dict):
        for child in node.value.values():
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


def hint_of(error: ExpressionError, source: str, offset: int | None, draft: Draft) -> str:
    """A better way out than the grammar can know."""
    for found in HYPHENATED.finditer(source):
        if found[1] in draft.index:
            return f"a name with a hyphen is written steps['{found[1]}']"
    name = NAME_AT.match(source, offset) if offset is not None else None
    if name and error.code == "expression.unknown_name" and name[0] in PLACES:
        return PLACES[name[0]]
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
    questions = {(mention.step, draft.index[mention.name]) for mention in mentioned}
    strangers = unrelated(draft.parents, draft.order, questions)
    if not strangers:
        return
    # A step that comes later cannot be made a dependency: that would close a circle.
    backwards = {(target, step) for step, target in strangers}
    unordered = unrelated(draft.parents, draft.order, backwards)
    doubted = set(in_doubt(draft, report))
    for mention in mentioned:
        pair = (mention.step, draft.index[mention.name])
        if pair in strangers and mention.step not in doubted:
            refuse_stranger(mention, draft, report, later=pair[::-1] not in unordered)


def in_doubt(draft: Draft, report: Report) -> Iterator[int]:
    """Steps whose own fields have errors: a dependsOn may be among what could not be read."""
    lines = sorted(found.line for found in report.findings if found.code in DOUBTS)
    for i, step in enumerate(draft.steps if lines else ()):
        node = step.node
        at = bisect_left(lines, node.place.line)
        if at < len(lines) and lines[at] <= node.source.place(node.end).line:
            yield i


DOUBTS = frozenset({"field.unknown", "field.type", "step.unknown"})


def refuse_stranger(mention: Mention, draft: Draft, report: Report, *, later: bool) -> None:
    """One of them."""
    step = draft.steps[mention.step].name
    if mention.name == step:
        problem, hint = "itself", "a step has no result while it runs; use another step's"
    elif later:
        problem = f"{mention.name!r}, which comes after it"
        hint = f"use a step before {step!r}, or move the value to a step after {mention.name!r}"
    else:
        problem = f"{mention.name!r}, which does not come before it"
        hint = f"add {mention.name!r} to dependsOn of {step!r}"
    report.error(
        mention.node.place_at(mention.offset),
        "expression.not_ancestor",
        f"step {step!r} uses the result of {problem}",
        hint,
    )
