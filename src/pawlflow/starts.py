"""Starts: instances that are to begin, one or a hundred thousand."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any, Final, Protocol

import msgspec

from pawlflow import requests
from pawlflow.acts import Door, refusal
from pawlflow.definition.plan import Plan
from pawlflow.driving import Answer
from pawlflow.engine.admission import admit_start
from pawlflow.engine.clock import Clock, time_ordered_id
from pawlflow.kernel.draft import Rejected
from pawlflow.model.codec import CodecError
from pawlflow.model.ids import CellId, InstanceId, Tenant, TimeMs
from pawlflow.model.inputs import StartInstance
from pawlflow.model.payload import PayloadError
from pawlflow.runs import Run, Watching
from pawlflow.trouble import BUSY, PawlError

WINDOW: Final = 1_000  # starts on their way at a time: two commits, one under way and one gathering
TRIES_MAX: Final = 100
PAUSE_S: Final = 0.1

Many = Iterable[Any]  # inputs, or (id, input)
Begin = Callable[..., Awaitable[Run]]


class Engine(Watching, Protocol):
    """What starts need of the engine they are for."""

    driver: Any  # a Door

    def key_for(self, tenant: Tenant, given: str | None) -> InstanceId:
        """The id of an instance that is to start, a new one if none is given."""
        ...


class Started:
    """The answer to one start of many."""

    __slots__ = ("_engine", "_tenant", "error", "existing", "id")

    def __init__(
        self,
        engine: Watching,
        tenant: Tenant,
        id_: str | None,
        *,
        existing: bool = False,
        error: PawlError | None = None,
    ) -> None:
        self.id = id_  # None if none was given and it was refused
        self.existing = existing  # it had been started before, with the same input
        self.error = error  # why it was refused: Conflict, Refused, ...
        self._engine = engine
        self._tenant = tenant

    @property
    def run(self) -> Run:
        """The run. Raises what the start was refused with."""
        if self.error is not None or self.id is None:
            raise self.error or PawlError("instance.unknown", "it was not started")
        return Run(self._engine, self._tenant, InstanceId(self.id))

    def __repr__(self) -> str:
        how = "existing" if self.existing else "started"
        return f"<{self.id} {how if self.error is None else self.error.code}>"


class Order(msgspec.Struct, frozen=True):
    """What all starts of one call have in common."""

    plan: Plan
    tenant: Tenant
    by: str
    start_at: TimeMs | None = None


class Start(msgspec.Struct, frozen=True):
    """One start, ready to be handed in."""

    cell: CellId
    input: StartInstance
    fresh: bool  # its id was made here, and nobody else has it

    def hand_in(self, door: Door) -> Answer:
        """Hand it in; the answer comes when it is durable, or refused."""
        size = len(self.input.input.data or b"")
        return door.submit(self.cell, self.input, size, fresh=self.fresh)


def key_for(clock: Clock, tenant: Tenant, id_: str | None) -> InstanceId:
    """The id of an instance, a new one if none is given. Raises PawlError for a bad one."""
    if id_ is None:
        return InstanceId(time_ordered_id(clock.now(), clock.entropy()))
    return requests.instance_cell(tenant, id_).key


def start_of(order: Order, key: InstanceId, value: Any, *, fresh: bool) -> Start:
    """A start from its id and input. Raises PawlError if it cannot be made."""
    made = begin(order.plan, {} if value is None else value, order.tenant, order.by)
    if isinstance(made, Rejected):
        raise refusal(made)
    if order.start_at is not None:
        made = msgspec.structs.replace(made, start_at=order.start_at)
    return Start(CellId(order.tenant, order.plan.workflow, key), made, fresh)


async def start_all(engine: Engine, order: Order, many: Many) -> AsyncIterator[Started]:
    """Start one after the other, hundreds in a commit; the answers come in the same order.

    At most a thousand are on their way, so it takes no more memory for a million.
    """
    line: deque[tuple[Start, Answer] | Started] = deque()
    for each in many:
        id_, value = each if is_pair(each) else (None, each)
        try:
            key = engine.key_for(order.tenant, id_)
            start = start_of(order, key, value, fresh=id_ is None)
        except PawlError as error:
            line.append(Started(engine, order.tenant, id_, error=error))
        else:
            line.append((start, start.hand_in(engine.driver)))
        while len(line) >= WINDOW:
            yield await answered(engine, order, line.popleft())
    while line:
        yield await answered(engine, order, line.popleft())


async def start_each(
    engine: Watching, tenant: Tenant, begin: Begin, many: Many
) -> AsyncIterator[Started]:
    """The same for starts that each have a plan of their own: one after the other."""
    for each in many:
        id_, value = each if is_pair(each) else (None, each)
        try:
            run = await begin(value, id=id_)
        except PawlError as error:
            yield Started(engine, tenant, id_, error=error)
        else:
            yield Started(engine, tenant, run.id)


def is_pair(given: Any) -> bool:
    """Is this an id and an input, and not an input alone?"""
    return isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str | None)


async def answered(
    engine: Engine, order: Order, waiting: tuple[Start, Answer] | Started
) -> Started:
    """The answer to one start; one that came too early is handed in again."""
    if isinstance(waiting, Started):
        return waiting
    start, answer = waiting
    outcome = await answer
    for _ in range(TRIES_MAX):
        if not isinstance(outcome, Rejected) or outcome.code not in BUSY:
            break
        await asyncio.sleep(PAUSE_S)
        outcome = await start.hand_in(engine.driver)
    key = start.cell.key
    if isinstance(outcome, Rejected):
        return Started(engine, order.tenant, key, error=refusal(outcome))
    return Started(engine, order.tenant, key, existing=outcome.existing)


def begin(plan: Plan, value: Any, tenant: Tenant, by: str) -> StartInstance | Rejected:
    """A start whose input can be kept and fits the definition's schema."""
    try:
        return admit_start(plan, value, tenant=tenant, by=by)
    except PayloadError as error:
        return Rejected(error.code, str(error))
    except CodecError:
        pass
    try:
        return admit_start(plan, msgspec.to_builtins(value), tenant=tenant, by=by)
    except (CodecError, TypeError) as error:
        return Rejected("input.unserialisable", str(error))
