"""System cells, read for those who look: their states as the last durable turn left them."""

from typing import Any

from pawlflow.cli.session import Session
from pawlflow.kernel.system import System
from pawlflow.living import system_of
from pawlflow.model.ids import InstanceId
from pawlflow.projections.queues import Standing, awaited_cell, standing_in
from pawlflow.projections.story import Story, state_at
from pawlflow.store.port import Store


def system_state(here: Session, store: Store, key: str) -> Any:
    """The state of a system cell, None if there is none. Raises StoreError if it is damaged."""
    return system_of(store, (here.tenant, InstanceId(key)), System)


def standing_of(here: Session, store: Store, story: Story) -> Standing | None:
    """Where an instance stands in the line it waits in, if it does."""
    state = state_at(story)
    key = awaited_cell(state)
    if key is None:
        return None
    return standing_in(system_state(here, store, key), (state.cell.workflow, state.cell.key))
