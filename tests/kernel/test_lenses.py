"""The four lenses: every state of the model has a name in each of the seed vocabularies."""

import pytest

from pawlflow.kernel.evolve import begin_turn, evolve
from pawlflow.kernel.step import new_cell
from pawlflow.kernel.summary import error_of, instance_state, lens
from pawlflow.model.events import InstanceCreated, InstanceQueued
from pawlflow.model.journal import Stamps
from tests.kernel.support import Live, payload


@pytest.mark.req("R79", "R80", "R81", "R82")
def test_an_instance_that_waits_for_a_slot_is_created_then_queued():
    """Spec 003 goes idle, queued, executing; 000 says Created until it runs."""
    live = Live("timeout: 1h\nsteps: [{name: a, sleep: 1s}]")
    cell = new_cell(live.id, live.plan)
    begin_turn(cell.state, Stamps(0, 1))
    seen = [words(cell.state)]

    created = InstanceCreated(live.plan.definition, 1, bytes(16), payload(None), "zoe")
    for event in (created, InstanceQueued(held=True)):
        evolve(cell.state, event)
        seen.append(words(cell.state))

    assert seen == [
        ("created", "Created", "running", "idle", "pending"),
        ("created", "Created", "running", "idle", "pending"),
        ("queued", "Created", "running", "queued", "pending"),
    ]


@pytest.mark.req("R79")
def test_between_steps_the_control_plane_says_running():
    """All that is open waits for time or events: no task, no human."""
    live = Live("timeout: 1h\nsteps: [{name: a, sleep: 1s}]")
    live.start()

    assert words(live.cell.state) == ("waiting", "Running", "waiting", "executing", "in_progress")
    assert error_of(live.cell.state) is None


def words(state: object) -> tuple[str, ...]:
    return (instance_state(state), *lens(state).values())
