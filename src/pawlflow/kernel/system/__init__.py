"""System cells: what instances share. Pure machines, decided and replayed like the rest.

A kind of system cell is one room: its state, what it decides, how its events change the state, and
what of it is written. They have no plan and no intents; they talk by sends, and may be due.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, TypeVar

from pawlflow.kernel.refused import Rejected
from pawlflow.model.events import Event
from pawlflow.model.ids import CellId, TimeMs
from pawlflow.model.inputs import Input
from pawlflow.model.journal import Send

Evolve = Mapping[type, Callable[[Any, Any], None]]


class System:
    """What the state of every system cell has."""

    __slots__ = ("cell", "now", "rules", "turn")

    def __init__(self, cell: CellId) -> None:
        self.cell = cell
        self.turn = 0
        self.now = TimeMs(0)
        self.rules = 0  # of its last turn: it lives for ever, so it cannot keep those of its first

    @property
    def due(self) -> TimeMs | None:
        """When it is to be woken; most are only spoken to."""
        return None


S = TypeVar("S", bound=System)


class SystemDraft(Generic[S]):
    """A turn of a system cell in the making; each decision sees the events before it."""

    __slots__ = ("events", "evolve", "sends", "state")
    intents: Final = ()  # nothing leaves a system cell but sends
    records: Final = ()

    def __init__(self, state: S, evolve: Evolve) -> None:
        self.state = state
        self.evolve = evolve
        self.events: list[Event] = []
        self.sends: list[Send] = []

    def emit(self, event: Event) -> None:
        """Record what happened, and let it have happened."""
        self.events.append(event)
        self.evolve[type(event)](self.state, event)

    def send(self, workflow: str, key: str, incoming: Input) -> None:
        """An input for another cell of the tenant, once this turn is durable."""
        self.sends.append(Send(workflow, key, incoming))


def misplaced(state: System, incoming: Input) -> Rejected:
    """The refusal of what is meant for another kind of cell."""
    return Rejected("input.misplaced", f"{type(incoming).__name__} to {state.cell.key}")
