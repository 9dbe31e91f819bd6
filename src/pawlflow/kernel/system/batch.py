"""Batches: one act on many instances, sent in portions and answered one by one.

Whom it is for is fixed when the last page of targets is in: an instance that begins to match the
filter later is left alone. Each gets the act by an ordinary send, so exactly once, whatever
crashes; the shard tells the batch what became of it, in the transaction in which it did.
"""

from typing import Final, assert_never

from pawlflow.kernel.refused import Rejected
from pawlflow.kernel.system import System, SystemDraft, misplaced
from pawlflow.model.batches import (
    ActAnswered,
    ActsSent,
    AddTargets,
    BatchClosed,
    BatchOpened,
    OpenBatch,
    TargetsAdded,
    TellBatch,
    batch_key,
)
from pawlflow.model.ids import CellId, InstanceId, StepName, TimeMs, WorkflowName
from pawlflow.model.inputs import (
    CancelInstance,
    Input,
    PauseInstance,
    ResumeStep,
    Signal,
    UnpauseInstance,
)
from pawlflow.model.records import Record

FORMAT: Final = 1
# Acts under way at one time: a large batch must not fill the mailbox. Part of the rules.
PORTION: Final = 100
TARGETS_MAX: Final = 100_000  # of one batch: what fits into one cell's memory
GONE: Final = "instance.unknown"  # the answer where there is no instance any more


class Target(Record, frozen=True, gc=False):
    """An instance that is meant, and its answer as far as it has come."""

    workflow: WorkflowName
    key: InstanceId
    code: str | None = None  # empty: done


class Batch(System):
    """One operation: what is done, to whom, and what became of it."""

    __slots__ = ("answered", "closed", "codes", "complete", "line", "opened", "request", "sent")

    def __init__(self, cell: CellId) -> None:
        super().__init__(cell)
        self.request: BatchOpened | None = None
        self.opened = TimeMs(0)
        self.closed: TimeMs | None = None
        self.complete = False  # all targets are known
        self.line: list[tuple[WorkflowName, InstanceId]] = []
        self.codes: dict[InstanceId, str | None] = {}  # of all targets; None: no answer yet
        self.sent = 0
        self.answered = 0  # follows from the codes

    @property
    def id(self) -> str:
        """What the batch is called."""
        return self.cell.key.removeprefix(batch_key(""))

    def counts(self) -> tuple[int, int, int]:
        """How many are done, refused and gone."""
        codes = [code for code in self.codes.values() if code is not None]
        done, gone = codes.count(""), codes.count(GONE)
        return done, len(codes) - done - gone, gone


def decide(draft: SystemDraft[Batch], incoming: Input) -> Rejected | None:
    """Apply one input to the draft. A refusal comes before the first event, or not at all."""
    match incoming:
        case OpenBatch():
            return open_batch(draft, incoming)
        case AddTargets():
            return add_targets(draft, incoming)
        case TellBatch():
            return answer(draft, incoming)
        case _:
            return misplaced(draft.state, incoming)


def open_batch(draft: SystemDraft[Batch], asked: OpenBatch) -> Rejected | None:
    """Record who wants what, and why."""
    if draft.state.request is not None:
        return Rejected("batch.exists", draft.state.id)
    about = (asked.comment, asked.step, asked.event, asked.given)
    draft.emit(BatchOpened(asked.verb, asked.where, asked.by, *about))
    return None


def add_targets(draft: SystemDraft[Batch], incoming: AddTargets) -> Rejected | None:
    """Record whom it is for; when all are known, begin."""
    state = draft.state
    if state.request is None or state.complete:
        return Rejected("batch.not_open", state.id)
    if len(state.line) + len(incoming.targets.value) > TARGETS_MAX:
        return Rejected("batch.too_large", f"{TARGETS_MAX} instances at a time")
    draft.emit(TargetsAdded(incoming.targets, incoming.complete))
    go_on(draft)
    return None


def answer(draft: SystemDraft[Batch], incoming: TellBatch) -> Rejected | None:
    """An instance has answered. One that was put aside, and refused so, may be done after all."""
    state = draft.state
    known = state.codes.get(incoming.key, "")
    if known == "" or (known is not None and incoming.code):
        return Rejected("batch.not_awaited", incoming.key)
    draft.emit(ActAnswered(incoming.key, incoming.code))
    go_on(draft)
    return None


def go_on(draft: SystemDraft[Batch]) -> None:
    """Send the next portion when half of the last has answered; close after the last answer."""
    state = draft.state
    if not state.complete or state.closed is not None or state.request is None:
        return
    under_way = state.sent - state.answered
    if under_way <= PORTION // 2 and state.sent < len(state.line):
        portion = state.line[state.sent : state.sent + PORTION - under_way]
        draft.emit(ActsSent(len(portion)))
        act = act_of(state.request, state.id)
        for workflow, key in portion:
            draft.send(workflow, key, act)
    if state.answered == len(state.line):
        draft.emit(BatchClosed(*state.counts()))


def act_of(request: BatchOpened, id_: str) -> Input:
    """What each instance is sent."""
    by, comment = request.by, request.comment
    match request.verb:
        case "cancel":
            return CancelInstance(by, comment, id_)
        case "pause":
            return PauseInstance(by, comment, id_)
        case "unpause":
            return UnpauseInstance(by, comment, id_)
        case "resume" | "retry":
            step = StepName(request.step)
            return ResumeStep(step, by, request.verb, None, request.given, comment, id_)
        case "signal":
            assert request.given is not None, "a signal has data"
            return Signal(request.event, request.given, by, id_)
        case _:
            assert_never(request.verb)


# Evolve


def on_opened(state: Batch, event: BatchOpened) -> None:
    """Somebody asked."""
    state.request = event
    state.opened = state.now


def on_targeted(state: Batch, event: TargetsAdded) -> None:
    """More are meant; nobody is meant twice."""
    for workflow, key in event.targets.value:
        if key not in state.codes:
            state.codes[key] = None
            state.line.append((workflow, key))
    state.complete = event.complete


def on_sent(state: Batch, event: ActsSent) -> None:
    """More are under way."""
    state.sent += event.count


def on_answered(state: Batch, event: ActAnswered) -> None:
    """One answer more, or another one."""
    state.answered += state.codes[event.key] is None
    state.codes[event.key] = event.code


def on_closed(state: Batch, _: BatchClosed) -> None:
    """All have answered."""
    state.closed = state.now


# What is written


class BatchFacts(Record, frozen=True):
    """The facts of a batch, in order."""

    format: int
    turn: int
    now: TimeMs
    rules: int
    request: BatchOpened | None
    opened: TimeMs
    closed: TimeMs | None
    complete: bool
    sent: int
    targets: tuple[Target, ...]


def facts_of(state: Batch) -> BatchFacts:
    """All that a state is rebuilt from."""
    return BatchFacts(
        FORMAT,
        state.turn,
        state.now,
        state.rules,
        state.request,
        state.opened,
        state.closed,
        state.complete,
        state.sent,
        tuple(Target(workflow, key, state.codes[key]) for workflow, key in state.line),
    )


def from_facts(found: BatchFacts, cell: CellId) -> Batch:
    """The state these are the facts of."""
    state = Batch(cell)
    state.request = found.request
    state.opened, state.closed = found.opened, found.closed
    state.complete, state.sent = found.complete, found.sent
    state.line = [(each.workflow, each.key) for each in found.targets]
    state.codes = {each.key: each.code for each in found.targets}
    state.answered = sum(code is not None for code in state.codes.values())
    return state
