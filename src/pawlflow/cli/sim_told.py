"""What `pawl sim` prints: progress, a broken invariant with its story, and what was met."""

import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import click

from pawlflow.cli.output import count, print_json
from pawlflow.testing.usersim.invariants import Invariant
from pawlflow.testing.usersim.kinds import KINDS
from pawlflow.testing.usersim.lives import PROMISES
from pawlflow.testing.usersim.sweep import Tally
from pawlflow.testing.usersim.tape import Tape
from pawlflow.testing.usersim.workload import Workload

TERMINAL_S: Final = 0.2  # between two looks at progress, on a terminal
PIPE_S: Final = 5.0
HOUR_MS: Final = 3_600_000
FEW: Final = 8  # kinds that are listed one by one


class Screen:
    """Progress on standard error: one line that changes on a terminal, seldom a line elsewhere."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet
        self.terminal = sys.stderr.isatty()
        self.last = perf_counter()
        self.dirty = False

    def is_time(self) -> bool:
        """Is it time for a word?"""
        now, wait = perf_counter(), TERMINAL_S if self.terminal else PIPE_S
        if self.quiet or now - self.last < wait:
            return False
        self.last = now
        return True

    def progress(self, tally: Tally, seeds: range, broken: int) -> None:
        """How far it is, and what was met."""
        if not self.is_time():
            return
        of = f" of {len(seeds):,}" if len(seeds) < 1_000_000 else ""
        kinds = f"{len(tally.faults)} of {len(tally.work.faults)} kinds"
        faults = f"{tally.faults.total():,} faults ({kinds})"
        ends = ", ".join(f"{name} {n:,}" for name, n in tally.ends.most_common())
        bad = f", {broken} broken" if broken else ""
        self.say(f"{tally.seeds:,}{of} seeds, {faults}, {ends}, {tally.rate:.0f} seeds/s{bad}")

    def shrinking(self, runs: int, left: int) -> None:
        """How far a tape has shrunk."""
        if self.is_time():
            self.say(f"shrinking: {count(runs, 'run')}, {count(left, 'fault')} left")

    def say(self, text: str) -> None:
        """One line, or the line."""
        if self.terminal:
            click.echo(f"\r\x1b[K{text[: columns()]}", nl=False, err=True)
            self.dirty = True
        else:
            click.echo(text, err=True)

    def clear(self) -> None:
        """Leave a clean line behind."""
        if self.dirty:
            click.echo("\r\x1b[K", nl=False, err=True)
            self.dirty = False


def columns() -> int:
    """How wide the terminal is."""
    from shutil import get_terminal_size

    return get_terminal_size().columns - 1


def print_kinds(*, as_json: bool) -> None:
    """--list-faults."""
    if as_json:
        found = [
            {"name": name, "does": kind.words, "default": not kind.harsh, "rates": kind.rates}
            for name, kind in KINDS.items()
        ]
        print_json(found)
        return
    for harsh in (False, True):
        if harsh:
            click.echo("\nOnly when they are named (--faults +KIND, or all):\n")
        for name, kind in KINDS.items():
            if kind.harsh == harsh:
                click.echo(f"{name:<16}{kind.words}")


def print_broken(
    tape: Tape, title: str, work: Workload, path: Path | None = None, workflow: str = ""
) -> None:
    """An invariant that was broken: which, by what values, and how it came to that."""
    found = tape.violation
    click.echo(f"{click.style(title, fg='red', bold=True)}\n")
    click.echo(f"  {found.invariant}")
    click.echo(f"  {found.instance}: {found.why}")
    for name, value in found.values:
        click.echo(f"    {name} = {value}")
    if found.built_in:
        click.echo("  This is a promise of Pawl's, not of your workflow: please report the tape.")
    hint = hint_for(tape, work)
    if hint:
        click.echo(f"  {click.style('hint', fg='cyan')}: {hint}")
    click.echo(f"\n{how_small(tape)}:\n")
    for line in tape.story:
        marked = " FAULT " in line or "! " in line[:20]
        click.echo(f"  {click.style(line, fg='yellow') if marked else line}")
    click.echo()
    if path is not None:
        click.echo(f"tape: {path}")
        again = shlex.join(["pawl", "sim", workflow, "--tape", str(path)])
        click.echo(f"again: {again}\n")


def how_small(tape: Tape) -> str:
    """How much of the run is left."""
    faults, instances = tape.found
    left = len(tape.faults)
    said = "no fault is needed" if left == 0 else f"{count(left, 'fault')} of {faults}"
    kept = tape.setup.only
    many = len(kept) if kept is not None else tape.setup.instances
    return f"What happened ({said}, {count(many, 'instance')} of {instances})"


def hint_for(tape: Tape, work: Workload) -> str:
    """A way out that the story suggests."""
    told = [line for line in tape.story if "time under the same key" in line]
    if not told or tape.violation.built_in:
        return ""
    step = next((s.name for s in work.workflows[0].steps if f"{s.name} is" in told[0]), "STEP")
    return (
        f"{step} was carried out again under the key it had; an executor that remembers its key "
        f"(ctx.key) would not: if yours does, say --idempotent {step}"
    )


def print_fine(
    tally: Tally, invariants: Sequence[Invariant], *, broken: int, interrupted: bool
) -> None:
    """What was run, and what was met."""
    plan, hours = tally.work.plan, tally.simulated_ms / HOUR_MS
    verdict = f"{broken} broken" if broken else "all fine"
    cut = "interrupted after " if interrupted else ""
    colour = "red" if broken else "green"
    head = click.style(f"{cut}{count(tally.seeds, 'seed')}, {verdict}", fg=colour, bold=True)
    told = f"{count(len(PROMISES), 'promise')} of Pawl's, {count(len(invariants), 'invariant')}"
    click.echo(f"{head}: {plan.workflow} version {plan.version}, {told} of yours")
    click.echo(f"  instances  {listed(tally.ends)}")
    click.echo(f"  attempts   {listed(tally.outcomes)}")
    kinds = f"{len(tally.faults)} kinds of {len(tally.work.faults)}"
    click.echo(f"  faults     {tally.faults.total():,} of {kinds}: {listed(tally.faults)}")
    if tally.unmet() and not broken:
        click.echo(f"  not met    {', '.join(tally.unmet())}")
    if tally.waits:
        click.echo(f"  waiting    {listed(tally.waits)}")
    speed = f"{tally.seconds:.1f} s, {tally.rate:.0f} seeds/s"
    click.echo(f"  {hours:,.1f} simulated hours, {count(tally.turns, 'turn')} in {speed}")


def listed(counts: Counter[str]) -> str:
    """The most frequent first, not too many."""
    found = [f"{name} {n:,}" for name, n in counts.most_common(FEW)]
    rest = len(counts) - len(found)
    return ", ".join(found) + (f" and {rest} more" if rest > 0 else "") if found else "none"


def as_dict(tape: Tape, path: Path | None) -> dict[str, Any]:
    """A failure for --json."""
    found = tape.violation
    return {
        "seed": tape.setup.seed,
        "invariant": found.invariant,
        "built_in": found.built_in,
        "instance": found.instance,
        "why": found.why,
        "values": dict(found.values),
        "at_ms": found.at,
        "faults": list(tape.faults),
        "faults_found": tape.found[0],
        "instances": len(tape.setup.only or range(tape.setup.instances)),
        "nodes": tape.setup.nodes,
        "story": list(tape.story),
        "tape": None if path is None else str(path),
    }
