"""A golden journal of what starts by the clock: rates, schedules and an instance that waits."""

import pytest

from pawlflow.model.ids import CellId
from pawlflow.model.inputs import CancelInstance, StartInstance, Tick
from pawlflow.model.system import registry_cell
from pawlflow.model.timed import (
    RATE,
    BackfillSchedule,
    Cron,
    PauseSchedule,
    PublishSchedule,
    UnpauseSchedule,
    WithdrawSchedule,
    rate_key,
    schedule_cell,
)
from pawlflow.testing.journals import verify_file
from tests.golden_kit import FOLDER
from tests.kernel.support import TENANT, payload
from tests.kernel.system_kit import Cells, instance, named
from tests.kernel.test_golden_system import journal_of, text_of

NAME = "what-starts-by-the-clock"
HOUR = 3_600_000
STEPS = "steps: [{name: a, run: x.a, timeout: 5m}]"
MAIL = (
    "timeout: 1h\npriority: 2\nconcurrency: {key: input.to}\n"
    f"rate: {{key: \"'all'\", limit: 1, per: 1m}}\n{STEPS}"
)
NIGHTLY = f"timeout: 1h\ntrigger: {{schedule: 0 6 * * *, catchUp: last}}\n{STEPS}"


@pytest.mark.req("R223", "R226", "R214", "R215")
def test_cells_with_a_clock_still_give_their_golden_journal(golden):
    """Whoever starts when, in which order, and by which name, is part of the rules."""
    data = journal_of(what_starts_by_the_clock())

    golden(f"journals/{NAME}.journal", data)
    golden(f"journals/{NAME}.txt", text_of(data))


@pytest.mark.req("R11", "R226")
def test_the_golden_journal_verifies_from_its_bytes_alone():
    """No clock, no time zone and no cron line is read again."""
    verdict = verify_file((FOLDER / "journals" / f"{NAME}.journal").read_bytes())

    assert verdict.difference is None
    assert verdict.turns > 0


def what_starts_by_the_clock() -> Cells:
    """A few days of a tenant."""
    cells = Cells(named("mail", MAIL), named("plain", f"timeout: 1h\n{STEPS}"), rules=2)
    with_a_rate(cells)
    with_schedules(cells)
    return cells


def with_a_rate(cells: Cells) -> None:
    """Three of one minute, one of them cancelled in line; one that starts later."""
    for key, to in (("m-1", "ann"), ("m-2", "bob"), ("m-3", "cleo")):
        cells.start("mail", key, {"to": to})
    plain = next(plan for plan in cells.plans.values() if plan.workflow == "plain")
    later = StartInstance(plain.definition, payload({}), "zoe", start_at=HOUR)
    cells.submit(instance("plain", "p-1"), later)
    cells.submit(instance("mail", "m-2"), CancelInstance("ann"))
    cells.now = 60_000
    cells.submit(CellId(TENANT, RATE, rate_key("mail", "all")), Tick())
    cells.now = HOUR
    cells.submit(instance("plain", "p-1"), Tick())


def with_schedules(cells: Cells) -> None:
    """One of a workflow, one beside it; days pass, people act."""
    own, beside = schedule_cell(TENANT, "nightly"), schedule_cell(TENANT, "weekly")
    cells.publish(named("nightly", NIGHTLY))
    cron = Cron("30 7 * * mon", "UTC", "none")
    value = payload({"day": "${ schedule.due }"})
    publish = PublishSchedule("weekly", "nightly", cron, value, None, "ann")
    cells.submit(registry_cell(TENANT), publish)
    cells.now = 6 * HOUR
    cells.submit(own, Tick())
    cells.submit(own, PauseSchedule("ann", payload("holiday")))
    cells.now = 100 * HOUR
    cells.submit(own, UnpauseSchedule("ann"))
    cells.submit(own, Tick())
    cells.now = 400 * HOUR
    cells.submit(beside, Tick())
    cells.submit(beside, BackfillSchedule(0, 399 * HOUR, "bob"))
    cells.submit(registry_cell(TENANT), WithdrawSchedule("weekly", "ann"))
    shape = named("nightly", f"timeout: 1h\n{STEPS}")
    newer = {f: getattr(shape, f) for f in shape.__struct_fields__} | {"version": 2}
    cells.publish(type(shape)(**newer))
