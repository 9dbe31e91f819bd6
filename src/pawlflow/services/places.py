"""Places: which instance a message means. Services know it by a UUID, and by a step id."""

from collections.abc import Iterable
from typing import Final

from pawlflow.driving import InlineDriver
from pawlflow.effects.headers import instance_uuid
from pawlflow.kernel.state import Instance
from pawlflow.living import instance_of
from pawlflow.model.ids import INSTANCE_ID, CellId, InstanceId, StepKey, Tenant, WorkflowName
from pawlflow.store.port import Filter, Place, Store

PAGE: Final = 1_000
KNOWN_MAX: Final = 200_000  # ids that are no UUIDs, kept by the UUID that stands for them


class Names:
    """Instances by the UUIDs that stand for their ids, read when one is asked for."""

    def __init__(self, reader: Store) -> None:
        self.reader = reader
        self.known: dict[str, CellId] = {}
        self.newest: dict[Tenant, Place] = {}

    def find(self, given: str, tenants: Iterable[Tenant]) -> CellId | None:
        """The instance that is meant, of the first of these tenants that has it."""
        for tenant in tenants:
            cell = CellId(tenant, WorkflowName(""), InstanceId(given))
            address = (tenant, cell.key)
            if INSTANCE_ID.match(given) and self.reader.load([address]):
                return cell
            found = self.known.get(given)
            if found is None:
                self.catch_up(tenant)
                found = self.known.get(given)
            if found is not None and found.tenant == tenant:
                return found
        return None

    def state_of(self, cell: CellId) -> Instance | None:
        """An instance as its store has it, at work or not."""
        address = (cell.tenant, cell.key)
        image = self.reader.load([address]).get(address)
        return None if image is None else instance_of(self.reader, image, {})

    def catch_up(self, tenant: Tenant) -> None:
        """Read the ids that came since; those before were read, as far as they are kept."""
        last, before, newest = self.newest.get(tenant), None, None
        while len(self.known) < KNOWN_MAX:
            page = self.reader.instances(Filter(tenant=tenant, limit=PAGE, before=before))
            for head in page:
                place = (head.created_at, head.ref)
                newest = newest or place
                if last is not None and place <= last:
                    page = []
                    break
                stands_for = instance_uuid(head.cell.tenant, head.cell.key)
                if stands_for != head.cell.key:
                    self.known[stands_for] = head.cell
            if len(page) < PAGE:
                break
            before = (page[-1].created_at, page[-1].ref)
        if newest is not None:
            self.newest[tenant] = newest


def live_state(driver: InlineDriver, cell: CellId) -> Instance | None:
    """An instance as the engine knows it now, if it is at work; perhaps not durably yet."""
    live = driver.engine.core.hot.cells.get((cell.tenant, cell.key))
    state = None if live is None or live.cell is None else live.cell.state
    return state if isinstance(state, Instance) else None


def attempts_made(state: Instance, key: StepKey) -> int:
    """How many attempts a step that is known, or its undo, has had."""
    found = state.keys[key]
    unit = state.of_round(found.step, found.item, found.round)
    return unit.undo_attempt if found.direction == "undo" else unit.attempt
