"""What steps say about each other by name: dependencies, guards, revisions."""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from pawlflow.definition.draft import Draft, StepDraft
from pawlflow.definition.graph import find_cycles, sort_steps, unrelated
from pawlflow.definition.read import Node
from pawlflow.definition.report import Report, listing, suggest
from pawlflow.definition.shape import Edge
from pawlflow.definition.step_fields import STEP_TABLE
from pawlflow.model.ids import STEP_NAME, StepName

CYCLE_SHOWN = 20  # steps of a cycle that a message names before it leaves out the middle


def link_steps(draft: Draft, report: Report) -> None:
    """Connect the steps, and refuse what cannot be connected."""
    if draft.fields.get("mode") == "sequence":
        chain_steps(draft, report)
    draft.parents = [parents_of(step, draft, report) for step in draft.steps]
    draft.order = sort_steps(draft.parents)
    draft.placed = frozenset(draft.order)
    draft.unclear = unclear_steps(draft)
    if len(draft.placed) < len(draft.steps):
        refuse_cycles(draft, report)
    check_gates(draft, report)


def chain_steps(draft: Draft, report: Report) -> None:
    """`mode: sequence`: each step follows the one before it in the file."""
    written = [step for step in draft.steps if "depends_on" in step.fields]
    for step in written:
        report.error(
            step.node.place_of("dependsOn"),
            "step.sequence",
            f"step {step.shown} has dependsOn, but mode: sequence makes the list a chain",
            "remove mode: sequence, or every dependsOn",
        )
    if written:
        return
    for before, step in pairwise(draft.steps):
        if before.name:
            step.fields["depends_on"] = (Edge(step=StepName(before.name)),)


def unclear_steps(draft: Draft) -> frozenset[int]:
    """Steps before which there may be more than could be read, and those behind them.

    That a step does not come before one of these is not known, so nobody is told so.
    """
    mode = draft.fields.get("mode")
    if mode is None and "mode" in draft.written:
        return frozenset(range(len(draft.steps)))
    chained = mode == "sequence"
    unclear = {
        i
        for i, step in enumerate(draft.steps)
        if (chained and i > 0 and not draft.parents[i]) or has_unread_links(step, draft)
    }
    for i in draft.order:
        if not unclear.isdisjoint(draft.parents[i]):
            unclear.add(i)
    return frozenset(unclear)


def has_unread_links(step: StepDraft, draft: Draft) -> bool:
    """Is there a dependency that could not be read, or one under the name of no field?"""
    if not isinstance(step.node.value, dict) or step.unread("dependsOn", "depends_on"):
        return True
    listed = step.node.value["dependsOn"].value if "dependsOn" in step.node.value else []
    read = step.fields.get("depends_on", ())
    if len(read) < len(listed) or any(edge.step not in draft.index for edge in read):
        return True
    if step.written is step.node.value:  # nothing but fields
        return False
    strange = [node for name, node in step.node.value.items() if name not in STEP_TABLE.fields]
    return any(name in draft.index for node in strange for name, _ in names_in(node))


def parents_of(step: StepDraft, draft: Draft, report: Report) -> list[int]:
    """The numbers of the steps that a step depends on."""
    edges = step.fields.get("depends_on", ())
    found = [draft.index[edge.step] for edge in edges if edge.step in draft.index]
    if len(set(found)) < len(edges):  # something is amiss: look again, with places
        refuse_unknown_names(step, "dependsOn", step.part("dependsOn"), draft, report)
        refuse_repeated(step, report)
    return list(dict.fromkeys(found))


def refuse_unknown_names(
    step: StepDraft, field: str, names: Node, draft: Draft, report: Report
) -> None:
    """Report each name in a list that no step has."""
    for name, node in names_in(names):
        if name not in draft.index:
            report.error(
                node.place,
                "step.unknown",
                f"step {step.shown}: {field} names {name!r}, which is not a step; "
                f"steps are: {listing(draft.index)}",
                suggest(name, draft.index) or "use the name of a step",
            )


def refuse_repeated(step: StepDraft, report: Report) -> None:
    """Report each dependency that is listed twice."""
    seen = set()
    for name, node in names_in(step.part("dependsOn")):
        if name in seen:
            report.error(
                node.place,
                "step.duplicate",
                f"step {step.shown} depends on {name!r} twice",
                "remove one of the two",
            )
        seen.add(name)


def names_in(node: Node) -> Iterator[tuple[str, Node]]:
    """The well-formed names of a list of steps, with their nodes; others were reported before."""
    for item in node.value if isinstance(node.value, list) else [node]:
        inner = item.value.get("step") if isinstance(item.value, dict) else item
        if inner and isinstance(inner.value, str) and STEP_NAME.match(inner.value):
            yield inner.value, inner


def refuse_cycles(draft: Draft, report: Report) -> None:
    """Name every circle, and the steps that wait behind one for ever."""
    cycles = find_cycles(draft.parents, draft.order)
    for cycle in cycles:
        names = [draft.steps[i].name for i in cycle]
        step, before = draft.steps[cycle[0]], names[1 % len(names)]
        node = next(node for name, node in names_in(step.part("dependsOn")) if name == before)
        report.error(
            node.place,
            "step.cycle",
            f"steps depend on each other in a circle: {circle(names)}",
            f"remove {before!r} from dependsOn of {step.name!r}, or another link of the circle",
        )
    stuck = set(range(len(draft.steps))).difference(draft.order, *cycles)
    for i in sorted(stuck):
        step = draft.steps[i]
        report.error(
            step.part("dependsOn").place,
            "step.unreachable",
            f"step {step.shown} can never start: it depends on steps in a circle",
            "resolve the circle",
        )


def circle(names: list[str]) -> str:
    """The circle as `a -> b -> a`, with the middle of a very long one left out."""
    if len(names) > CYCLE_SHOWN:
        left_out = len(names) - CYCLE_SHOWN + 1
        names = [*names[: CYCLE_SHOWN - 1], f"({left_out} more)"]
    return " -> ".join([*names, names[0]])


def check_gates(draft: Draft, report: Report) -> None:
    """The steps that gates name exist, and lie on the right side of them."""
    guarded: list[Named] = []
    revised: list[Named] = []
    for i, step in enumerate(draft.steps):
        gate = step.fields.get("gate")
        if gate and gate.guards:
            guarded += named_by(i, "guards", draft, report)
        if gate and gate.revise:
            revised += named_by(i, "revise", draft, report)
    check_guards(guarded, draft, report)
    check_revisions(revised, draft, report)


class Named(NamedTuple):
    """A step that a gate names, and where."""

    gate: int
    step: int
    node: Node


def named_by(gate: int, field: str, draft: Draft, report: Report) -> list[Named]:
    """The steps in a field of a gate; names that no step has are reported."""
    names = draft.steps[gate].part("approval", field)
    refuse_unknown_names(draft.steps[gate], field, names, draft, report)
    return [
        Named(gate, draft.index[name], node)
        for name, node in names_in(names)
        if name in draft.index
    ]


def check_guards(guarded: list[Named], draft: Draft, report: Report) -> None:
    """A guarded step comes after its gate: one before it would wait for it, and it for the step."""
    asked = [(named.step, named.gate) for named in guarded]
    free = unrelated(draft.parents, draft.order, asked)
    later = unrelated(draft.parents, draft.order, [(gate, step) for step, gate in asked])
    for named in guarded:
        gate, step = draft.steps[named.gate].shown, draft.steps[named.step].shown
        itself = named.gate == named.step
        if itself or (named.gate, named.step) not in later:
            report.error(
                named.node.place,
                "step.guards",
                f"gate {gate} guards " + ("itself" if itself else f"{step}, which comes before it"),
                "name steps that depend on the gate",
            )
        elif (named.step, named.gate) in free and is_known(named.step, draft):
            report.warning(
                named.node.place,
                "lint.guards",
                f"gate {gate} guards {step}, which does not wait for it",
                f"add {gate} to dependsOn of {step}",
            )


def is_known(step: int, draft: Draft) -> bool:
    """Is it known of every step whether it comes before this one?"""
    return step in draft.placed and step not in draft.unclear


def check_revisions(revised: list[Named], draft: Draft, report: Report) -> None:
    """Only work that was done before the gate can be sent back by it."""
    later = unrelated(draft.parents, draft.order, [(named.gate, named.step) for named in revised])
    for named in revised:
        gate, step = draft.steps[named.gate], draft.steps[named.step]
        if named.gate == named.step:
            problem = "itself, which has no result to change"
        elif (named.gate, named.step) in later and is_known(named.gate, draft):
            problem = f"{step.shown}, which does not come before it"
        elif step.kind not in ("run", "agent", None):
            problem = f"{step.shown}, which is {step.kind}, not run or agent"
        else:
            continue
        report.error(
            named.node.place,
            "step.revise",
            f"gate {gate.shown} sends back {problem}",
            "name run or agent steps that the gate depends on",
        )
