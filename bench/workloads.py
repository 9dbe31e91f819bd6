"""Workloads: definitions, a driver that answers every call, and the proof that the work was done.

Nothing here depends on time or chance. An executor costs nothing: it answers each call at once, in
the order of the calls, so what is measured is the kernel.
"""

from collections import deque
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from pawlflow.definition.plan import Plan, compile_plan
from pawlflow.definition.shape import Edge, Step, Workflow
from pawlflow.kernel.step import Cell, Stepped, new_cell, step
from pawlflow.kernel.summary import instance_state
from pawlflow.model.ids import (
    CellId,
    Digest,
    DurationMs,
    InstanceId,
    StepName,
    Tenant,
    TimeMs,
    WorkflowName,
)
from pawlflow.model.inputs import Input, Receipt, StartInstance
from pawlflow.model.journal import Stamps, payloads_of
from pawlflow.model.payload import Payload

TENANT: Final = Tenant("acme")
ENTROPY: Final = bytes(range(16))
ORDER: Final = {"order": "o-1001", "amount": 4250, "items": ["book", "lamp"], "email": "a@b.org"}
ANSWER: Final = {"id": "ch_8Xk2", "status": "captured", "amount": 4250}
CHAIN_TURNS: Final = 4  # one start, three receipts
BLOCK: Final = 20  # steps: one fork, nine lanes of two, one join
LANES: Final = 9


class Journal(msgspec.Struct):
    """What a run left behind: enough to fold it, to verify it, and to read its payloads."""

    cell: Cell
    turns: list[tuple[bytes, Digest]]
    payloads: dict[bytes, bytes]


# Definitions


def chain_of_three() -> Workflow:
    """Three steps, each fed by the one before, and an output: what a decision is timed on."""
    charge = {"order": "${input.order}", "amount": "${input.amount}"}
    ship = {"order": "${input.order}", "items": "${input.items}", "paid": "${steps.charge.id}"}
    notify = {"to": "${input.email}", "text": "order ${input.order} is ${steps.ship.status}"}
    return Workflow(
        name=WorkflowName("chain"),
        steps=(
            run_step("charge", (), charge),
            run_step("ship", ("charge",), ship),
            run_step("notify", ("ship",), notify),
        ),
        output={"charge": "${steps.charge.id}", "sent": "${steps.notify.status}"},
    )


def mixed_plan(steps: int) -> Workflow:
    """Forks, chains and joins in blocks of 20, one after the other; the degree never grows."""
    assert steps % BLOCK == 0, f"{steps} steps are no whole number of blocks of {BLOCK}"
    made = tuple(step for at in range(steps // BLOCK) for step in block(at))
    output = {"last": f"${{steps.{made[-1].name}.id}}"}
    return Workflow(name=WorkflowName("mixed"), steps=made, output=output)


def block(at: int) -> Iterator[Step]:
    """One fork, nine lanes of two steps, one join; the fork waits for the join before it."""
    before = (f"join_{at - 1}",) if at else ()
    yield run_step(f"fork_{at}", before, {"block": at})
    for lane in range(LANES):
        params = {"lane": lane, "order": "${input.order}"}
        yield run_step(f"left_{at}_{lane}", (f"fork_{at}",), params)
    for lane in range(LANES):
        left = f"left_{at}_{lane}"
        yield run_step(f"right_{at}_{lane}", (left,), {"from": f"${{steps.{left}.id}}"})
    yield run_step(f"join_{at}", tuple(f"right_{at}_{lane}" for lane in range(LANES)), None)


def run_step(name: str, after: tuple[str, ...], params: Any) -> Step:
    """A step that calls an effect; it has a timeout, so that deadlines are part of the cost."""
    return Step(
        name=StepName(name),
        kind="run",
        target="bench/effect",
        depends_on=tuple(Edge(step=StepName(each)) for each in after),
        params=params,
        timeout_ms=DurationMs(30_000),
    )


def as_yaml(workflow: Workflow) -> str:
    """The file a user would have written for such a workflow."""
    lines = [
        "apiVersion: pawl.dev/v1",
        "kind: Workflow",
        f"metadata: {{name: {workflow.name}}}",
        "spec:",
        "  steps:",
    ]
    for each in workflow.steps:
        after = ", ".join(edge.step for edge in each.depends_on)
        lines += [f"    - name: {each.name}", f"      run: {each.target}", "      timeout: 30s"]
        lines += [f"      dependsOn: [{after}]"] if after else []
        lines += ["      with:"] if each.params else []
        lines += [f"        {key}: {value}" for key, value in (each.params or {}).items()]
    lines += ["  output:", *(f"    {key}: {value}" for key, value in workflow.output.items())]
    return "\n".join(lines) + "\n"


# Runs


def cell_of(plan: Plan) -> Cell:
    """A cell before its first turn."""
    return new_cell(CellId(TENANT, plan.workflow, InstanceId("i-1")), plan)


def run(plan: Plan, cell: Cell) -> Iterator[Stepped]:
    """Start an instance and answer every call until none is open.

    All that a turn needs is made here, as admission would: addressed values, receipts, stamps.
    """
    calls: deque[Any] = deque()  # of Call: nothing here is ever stopped
    incoming: Input = StartInstance(plan.definition, Payload.of(ORDER, TENANT), "bench")
    height = 0
    while True:
        height += 1
        stepped = step(cell, incoming, Stamps(TimeMs(height), height, ENTROPY))
        assert type(stepped) is Stepped, stepped
        yield stepped
        calls.extend(stepped.intents)
        if not calls:
            return
        call = calls.popleft()
        incoming = Receipt(call.key, call.attempt, "ok", Payload.of(ANSWER, TENANT))


def drive(plan: Plan) -> Cell:
    """Run one instance to its end."""
    cell = cell_of(plan)
    for _ in run(plan, cell):
        pass
    return cell


def record(plan: Plan) -> Journal:
    """Run one instance to its end, and keep what a store would keep."""
    journal = Journal(cell_of(plan), [], {})
    for stepped in run(plan, journal.cell):
        journal.turns.append((stepped.data, stepped.hash))
        for beside in payloads_of(stepped.turn):
            assert beside.data is not None
            journal.payloads[beside.addr] = beside.data
    return journal


def checked_plan(workflow: Workflow) -> Plan:
    """The compiled plan, once an instance of it was seen to complete in the right turns."""
    plan = compile_plan(workflow)
    cell = cell_of(plan)
    turns = sum(1 for _ in run(plan, cell))
    assert turns == len(plan.steps) + 1, turns
    assert instance_state(cell.state) == "completed"
    return plan


# Inputs made beforehand: what admission does is then outside of what is timed.

Admitted = list[tuple[Input, Stamps]]


def admitted_inputs(plan: Plan) -> Admitted:
    """The inputs of one run. Equal entropy gives equal keys, so they fit every later run too."""
    return [(stepped.turn.input, stepped.turn.stamps) for stepped in run(plan, cell_of(plan))]


def fresh(inputs: Admitted) -> Admitted:
    """The same inputs with no value read yet: a payload reads its bytes only once."""
    return [(unread(incoming), stamps) for incoming, stamps in inputs]


def unread(incoming: Input) -> Input:
    """The same input, as it came through the door."""
    if isinstance(incoming, StartInstance):
        return StartInstance(incoming.definition, again(incoming.input), incoming.by)
    assert isinstance(incoming, Receipt)
    assert incoming.result is not None
    return Receipt(incoming.key, incoming.attempt, incoming.outcome, again(incoming.result))


def again(payload: Payload) -> Payload:
    """The same payload, its value unread."""
    return Payload(payload.addr, payload.data)


def step_all(plan: Plan, inputs: Admitted) -> Cell:
    """Decide, encode and hash every turn of one run."""
    cell = cell_of(plan)
    for incoming, stamps in inputs:
        step(cell, incoming, stamps)
    return cell
