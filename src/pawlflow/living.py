"""Living: the states of cells, made of what their store has, for those who do not own them."""

from typing import TypeVar

from pawlflow.definition.plan import Plan, plan_of
from pawlflow.engine.cells import is_trusted, rebuild
from pawlflow.kernel.state import Instance, State
from pawlflow.kernel.system import System
from pawlflow.model.ids import Digest
from pawlflow.store.port import Address, CellImage, Store

S = TypeVar("S", bound=System)


def system_of(store: Store, address: Address, kind: type[S]) -> S | None:
    """The state of a system cell; None if there is no such cell. Raises StoreError if damaged."""
    image = store.load([address]).get(address)
    state = None if image is None else state_of(store, image, None)
    assert state is None or isinstance(state, kind), f"{address[1]} is no {kind.__name__}"
    return state


def instance_of(store: Store, image: CellImage, plans: dict[Digest, Plan]) -> Instance:
    """The instance behind an image; `plans` keeps what was compiled between calls."""
    digest = Digest(image.head.definition)
    if digest not in plans:
        plans[digest] = plan_of(store.definitions([digest])[digest])
    state = state_of(store, image, plans[digest])
    assert isinstance(state, Instance), f"{image.head.cell.key} is a system cell"
    return state


def state_of(store: Store, image: CellImage, plan: Plan | None) -> State:
    """From the snapshot if it can be trusted, else from the whole story."""
    if not is_trusted(image):
        image = store.story((image.head.cell.tenant, image.head.cell.key)) or image
    cell = rebuild(image, plan).cell
    assert cell is not None, "an image has a cell"
    return cell.state
