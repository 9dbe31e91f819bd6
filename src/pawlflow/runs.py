"""Runs: one instance, as whoever started it sees it."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Final, Protocol

from pawlflow.definition.fields import duration_ms
from pawlflow.engine.clock import Clock
from pawlflow.model.events import Event, InstanceCompleted
from pawlflow.model.ids import InstanceId, Tenant
from pawlflow.projections.checkpoints import checkpoints
from pawlflow.projections.cloudevents import cloud_events
from pawlflow.projections.history import Teller, history
from pawlflow.projections.kin import Kin
from pawlflow.projections.reading import catch_up, story_of
from pawlflow.projections.show import show
from pawlflow.projections.story import state_at
from pawlflow.projections.why import why
from pawlflow.store.port import Address, Store
from pawlflow.trouble import WorkflowFailed

NOTHING: Final = object()


class Closed:
    """How an instance ended, as far as its last turn says."""

    __slots__ = ("output",)

    def __init__(self, output: Any) -> None:
        self.output = output  # NOTHING: it must be read


class Watching(Protocol):
    """What a run needs of the engine it runs in."""

    reader: Store
    clock: Clock

    async def closed(self, address: Address, seconds: float | None) -> Closed:
        """Wait until an instance is closed."""
        ...

    async def changed(self, address: Address, turn: int) -> None:
        """Wait until an instance has more turns than these."""
        ...

    def alerts(self, tenant: str | None = None) -> Sequence[dict[str, Any]]:
        """What an operator should know of a tenant."""
        ...


class Run:
    """One instance."""

    __slots__ = ("engine", "id", "tenant")

    def __init__(self, engine: Watching, tenant: Tenant, key: InstanceId) -> None:
        self.engine = engine
        self.tenant = tenant
        self.id = key

    async def result(self, timeout: str | float | None = None) -> Any:  # noqa: ASYNC109
        """The output, once the instance has completed. Raises WorkflowFailed, TimeoutError."""
        try:
            closed = await self.engine.closed((self.tenant, self.id), seconds_of(timeout))
        except TimeoutError:
            state = self.show()["state"]
            raise TimeoutError(f"{self.id} is still {state} after {timeout}") from None
        if closed.output is not NOTHING:
            return closed.output
        shown = self.show()
        if shown["state"] == "completed":
            return shown["output"]
        raise WorkflowFailed(self.id, shown)

    def show(self) -> dict[str, Any]:
        """The instance as `pawl show --json` gives it."""
        reader, alerts = self.engine.reader, self.engine.alerts(self.tenant)
        story = story_of(reader, self.tenant, self.id)
        return show(story, kin=Kin(reader, self.tenant), alerts=alerts)

    def why(self) -> dict[str, Any]:
        """Why it is where it is, and what comes next, as `pawl why --json` gives it."""
        reader, alerts = self.engine.reader, self.engine.alerts(self.tenant)
        story = story_of(reader, self.tenant, self.id)
        return why(story, self.engine.clock.now(), kin=Kin(reader, self.tenant), alerts=alerts)

    def checkpoints(self, step: str) -> list[dict[str, Any]]:
        """What the loop of a step has kept so far, in order of time."""
        reader = self.engine.reader
        return checkpoints(reader, state_at(story_of(reader, self.tenant, self.id)), step)

    def history(self, *, cloudevents: bool = False) -> list[dict[str, Any]]:
        """Every published event so far, in our envelope or as CloudEvents."""
        story = story_of(self.engine.reader, self.tenant, self.id)
        told = history(story)
        return cloud_events(told, story.cell.workflow) if cloudevents else told

    async def events(self, *, cloudevents: bool = False) -> AsyncGenerator[dict[str, Any], None]:
        """Every published event, those still to come included, until the instance is closed."""
        reader = self.engine.reader
        story = story_of(reader, self.tenant, self.id)
        teller = Teller(story)
        while True:
            told = teller.tell(story)
            for event in cloud_events(told, story.cell.workflow) if cloudevents else told:
                yield event
            if teller.state.closed is not None:
                return
            await self.engine.changed((self.tenant, self.id), len(story.turns))
            catch_up(reader, story)

    def __repr__(self) -> str:
        return f"<run {self.id}>"


def closed_by(event: Event) -> Closed:
    """What the last event of an instance says about its result."""
    return Closed(event.output.value if isinstance(event, InstanceCompleted) else NOTHING)


def seconds_of(timeout: str | float | None) -> float | None:
    """A timeout in seconds: `5m`, 30, or none."""
    if timeout is None or isinstance(timeout, int | float):
        return timeout
    found = duration_ms(timeout)
    if found is None:
        raise ValueError(f"{timeout!r} is no duration: write 500ms, 30s, 5m, 2h or 1d")
    return found / 1000
