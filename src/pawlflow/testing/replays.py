"""`assert_replays`: the journal of a run, read back, is what the kernel decides again today."""

from typing import Any

from pawlflow.blocking_runs import BlockingRun, done
from pawlflow.definition.plan import Plan, plan_of
from pawlflow.kernel.heads import facts_of
from pawlflow.kernel.replay import apply_turn, read_turn
from pawlflow.kernel.snapshot import state_bytes
from pawlflow.kernel.state import Instance
from pawlflow.kernel.step import new_cell
from pawlflow.model.ids import InstanceId, Tenant
from pawlflow.projections.reading import story_of
from pawlflow.projections.story import Story
from pawlflow.projections.verify import Difference, verify, verify_turn
from pawlflow.runs import Run
from pawlflow.store.port import Store, StoreError


def assert_replays(run: Run | BlockingRun) -> None:
    """Verify a run and its children: hashes, states, and every turn, decided again.

    Raises AssertionError, naming the turn.
    """
    if isinstance(run, BlockingRun):
        plain = run._run  # noqa: SLF001  # the same run, where the loop is
        run._loop.do(done(lambda: check_run(plain)))  # noqa: SLF001
    else:
        check_run(run)


def check_run(run: Run) -> None:
    """A run, and those below it."""
    check_instance(run.engine.reader, run.engine, run.tenant, run.id)
    for child in run.show()["children"]:
        if child["state"] is not None:
            check_run(Run(run.engine, run.tenant, InstanceId(child["id"])))


def check_instance(store: Store, engine: Any, tenant: Tenant, key: InstanceId) -> None:
    """One instance, from its bytes alone; then what its rows and the live engine say."""
    try:
        story = story_of(store, tenant, key)
    except StoreError as error:
        raise AssertionError(f"{key} cannot be read back: {error} [{error.code}]") from error
    plan = plan_of(story.definition)
    for _ in ("once", "and again: nothing may hang on what the first time left behind"):
        found = verify(story.cell, plan, story.turns, story.payloads)
        if found is not None:
            raise AssertionError(difference_told(key, found))
    state = folded(story, plan)
    head = store.load([(tenant, key)])[(tenant, key)].head
    facts = facts_of(state)
    wrong = [
        name for name in facts.__struct_fields__ if getattr(head, name) != getattr(facts, name)
    ]
    if wrong:
        said = ", ".join(f"{name} is {getattr(head, name)!r}" for name in wrong)
        raise AssertionError(f"{key} after turn {head.turn}: its row does not follow, {said}")
    live = live_state(engine, tenant, key)
    if live is not None and live.turn == state.turn and state_bytes(live) != state_bytes(state):
        message = f"{key} after turn {state.turn}: the live state is not the one of its journal"
        raise AssertionError(message)


def folded(story: Story, plan: Plan) -> Instance:
    """The state that the recorded events lead to; each turn's must be the one it decided on."""
    state, decided = Instance(story.cell, plan), new_cell(story.cell, plan)
    for number, (data, _) in enumerate(story.turns, start=1):
        turn = read_turn(data, story.payloads)
        found = verify_turn(decided, turn, data, number)
        assert found is None, difference_told(story.cell.key, found)
        for _event in apply_turn(state, turn):
            pass
    if state_bytes(decided.state) != state_bytes(state):
        number = first_parting(story, plan)
        message = f"{story.cell.key}: the events of turn {number} lead to another state"
        raise AssertionError(message)
    return state


def first_parting(story: Story, plan: Plan) -> int:
    """The first turn after which events and decision disagree."""
    state, decided = Instance(story.cell, plan), new_cell(story.cell, plan)
    for number, (data, _) in enumerate(story.turns, start=1):
        turn = read_turn(data, story.payloads)
        verify_turn(decided, turn, data, number)
        for _event in apply_turn(state, turn):
            pass
        if state_bytes(decided.state) != state_bytes(state):
            return number
    return len(story.turns)


def live_state(engine: Any, tenant: Tenant, key: InstanceId) -> Instance | None:
    """What the engine of this process has in memory, if it has."""
    driver = getattr(engine, "driver", None)
    live = None if driver is None else driver.engine.core.hot.get((tenant, key))
    state = None if live is None or live.cell is None else live.cell.state
    return state if isinstance(state, Instance) else None


def difference_told(key: str, found: Difference) -> str:
    """Where a replay parts from its journal."""
    return (
        f"{key} does not replay: turn {found.turn}, {found.where}\n"
        f"  recorded: {found.recorded}\n  derived:  {found.derived}"
    )
