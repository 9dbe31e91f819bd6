"""A test again, once for each point where its engine can die; fixtures are made anew each time."""

from collections.abc import Iterator
from random import Random  # noqa: TID251  # seeded by the test's name
from typing import Final

import msgspec
import pytest
from _pytest.runner import call_and_report

from pawlflow.testing.crashes import TURNS_MAX
from pawlflow.testing.lab_driver import Commit, CrashPoint
from pawlflow.testing.lab_hosting import HostedLab
from pawlflow.testing.plugin_keys import CRASHES, LABS, POINT

NAMED_MAX: Final = 10  # of the crashes that a test did not survive; the others are counted
BOTH: Final = ("before", "after")


class Planned(msgspec.Struct, frozen=True):
    """One crash: in which lab of the test, at which commit."""

    lab: int
    point: CrashPoint
    commit: Commit

    def told(self, commit: Commit | None = None) -> str:
        """Where it is, in words."""
        place = (commit or self.commit).told()
        return f"crash {self.point.side} the commit of {place}"


class Lost(msgspec.Struct, frozen=True):
    """A crash that the test did not survive."""

    where: str
    report: pytest.TestReport


def run_with_crashes(item: pytest.Function, nextitem: pytest.Item | None) -> None:
    """Once as it is; if that passes, once for each crash. What is told is one test."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    setup = call_and_report(item, "setup", log=False)
    reports = [setup]
    planned: list[Planned] = []
    sampled = False
    if setup.passed:
        call = call_and_report(item, "call", log=False)
        reports.append(call)
        if call.passed:
            planned, sampled = crashes_of(item)
    clones = [clone_of(item, each) for each in planned]
    following = clones[0] if clones else nextitem
    teardown = call_and_report(item, "teardown", log=False, nextitem=following)
    reports.append(teardown)
    if clones and not teardown.passed:
        clones = []
        item.session._setupstate.teardown_exact(nextitem)  # noqa: SLF001  # as the runner does
    if clones:
        reports[1] = judged(item, reports[1], planned, run_all(clones, planned, nextitem), sampled)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def crashes_of(item: pytest.Function) -> tuple[list[Planned], bool]:
    """Every crash that a test is to survive; of more than 200 turns those of 200, by chance."""
    labs: list[HostedLab] = item.stash.get(LABS, [])
    found = [
        (turn, Planned(which, CrashPoint(number, side), commit))
        for which, lab in enumerate(labs)
        for number, commit in enumerate(lab.commits, start=1)
        for turn in commit.turns
        for side in BOTH
    ]
    turns = list(dict.fromkeys((each.lab, turn) for turn, each in found))
    sampled = len(turns) > TURNS_MAX and not item.config.getoption("pawl_crash_all")
    chosen = set(Random(item.nodeid).sample(turns, TURNS_MAX) if sampled else turns)
    kept = [each for turn, each in found if (each.lab, turn) in chosen]
    return list(dict.fromkeys(kept)), sampled


def clone_of(item: pytest.Function, planned: Planned) -> pytest.Function:
    """The same test with fixtures of its own, and a crash."""
    name = f"{item.name}[crash-{planned.point.side}-{planned.point.commit}]"
    clone = type(item).from_parent(
        item.parent,
        name=name,
        callspec=getattr(item, "callspec", None),
        fixtureinfo=item._fixtureinfo,  # noqa: SLF001  # what pytest's own clones are made of
        originalname=item.originalname,
    )
    clone.own_markers[:] = item.own_markers
    clone.stash[POINT] = (planned.lab, planned.point)
    return clone


def run_all(
    clones: list[pytest.Function], planned: list[Planned], nextitem: pytest.Item | None
) -> Iterator[Lost | Commit | None]:
    """Run them one after the other: what was lost, or else where it crashed, if it did."""
    for number, (clone, each) in enumerate(zip(clones, planned, strict=True), start=1):
        following = clones[number] if number < len(clones) else nextitem
        reports = [call_and_report(clone, "setup", log=False)]
        if reports[0].passed:
            reports.append(call_and_report(clone, "call", log=False))
        crashed = crash_in(clone, each)
        reports.append(call_and_report(clone, "teardown", log=False, nextitem=following))
        failed = next((report for report in reports if report.failed), None)
        yield crashed if failed is None else Lost(each.told(crashed), failed)


def crash_in(clone: pytest.Function, planned: Planned) -> Commit | None:
    """Where a clone crashed; None if it never came there."""
    labs: list[HostedLab] = clone.stash.get(LABS, [])
    return labs[planned.lab].crashed if planned.lab < len(labs) else None


def judged(
    item: pytest.Function,
    calm: pytest.TestReport,
    planned: list[Planned],
    outcomes: Iterator[Lost | Commit | None],
    sampled: bool,  # noqa: FBT001  # of the crashes
) -> pytest.TestReport:
    """The report of the whole: of the calm run, or of the first crash that was not survived."""
    told = list(outcomes)
    lost = [each for each in told if isinstance(each, Lost)]
    notes: list[str] = []
    if sampled:
        notes.append(
            f"more than {TURNS_MAX} turns, a seeded sample of {TURNS_MAX} was crashed; "
            "--pawl-crash-all crashes all"
        )
    missed = sum(each is None for each in told)
    if missed:
        notes.append(
            f"{missed} of its crashes were not reached: it does not run the same way twice"
        )
    report = calm if not lost else failure_of(item, lost)
    report.user_properties.append((CRASHES, {"crashes": len(planned) - missed, "notes": notes}))
    return report


def failure_of(item: pytest.Function, lost: list[Lost]) -> pytest.TestReport:
    """The report of a crash that a test did not survive, in the name of the test."""
    first, report = lost[0], lost[0].report
    file, line, name = item.location
    report.nodeid, report.keywords, report.when = item.nodeid, {item.name: 1}, "call"
    report.location = (file, line, f"{name} [{first.where}]")
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        crash.message = f"{first.where}: {crash.message}"
    report.sections.insert(0, ("pawl", told_lost(lost)))
    return report


def told_lost(lost: list[Lost]) -> str:
    """What passes without a crash, and fails with these."""
    lines = ["the test passes without a crash, and fails with this:", f"  {lost[0].where}"]
    if len(lost) > 1:
        lines.append("and with these:")
        lines += [f"  {each.where}" for each in lost[1:NAMED_MAX]]
    if len(lost) > NAMED_MAX:
        lines.append(f"  and {len(lost) - NAMED_MAX} more")
    lines.append(
        "an effect may be asked for twice, with the same ctx.key: is it made to happen once?"
    )
    return "\n".join(lines)
