"""`python -m pawlflow.testing.sim`: run seeds, look for a planted bug, or play a tape."""

import argparse
import sys
from collections import Counter
from pathlib import Path
from time import process_time

from pawlflow.testing.sim.known import KNOWN
from pawlflow.testing.sim.planted import BUGS, planted
from pawlflow.testing.sim.recording import record
from pawlflow.testing.sim.run import Outcome, run
from pawlflow.testing.sim.setup import PROFILES, setup_of
from pawlflow.testing.sim.shrink import shrink
from pawlflow.testing.sim.tape import load, play, save, tape_of


def main(arguments: list[str] | None = None) -> int:
    """Do what was asked; 1 if a promise was broken."""
    options = parser().parse_args(arguments)
    if options.tape is not None:
        outcome = play(load(options.tape), story=options.story)
        report(outcome, story=options.story)
        return 0 if outcome.violation is None else 1
    if options.record is not None:
        for bug in [options.bug] if options.bug else BUGS:
            say(f"{bug:24} {record(bug, options.record)}")
        return 0
    first, _, last = options.seeds.partition(":")
    seeds = range(int(first), int(last)) if last else range(int(first), int(first) + 1)
    return sweep(seeds, options)


def parser() -> argparse.ArgumentParser:
    """What may be asked."""
    made = argparse.ArgumentParser(prog="python -m pawlflow.testing.sim", description=__doc__)
    made.add_argument("--seeds", default="0:200", help="FIRST:END, or one seed")
    made.add_argument("--profile", default=None, choices=sorted(PROFILES))
    made.add_argument("--bug", default=None, choices=sorted(BUGS), help="a planted bug")
    made.add_argument("--tape", default=None, type=Path, help="play this file instead")
    made.add_argument("--save", default=None, type=Path, help="shrink the first failure into this")
    made.add_argument("--record", default=None, type=Path, help="keep tapes of planted bugs here")
    made.add_argument("--story", action="store_true", help="print everything that happened")
    return made


def sweep(seeds: range, options: argparse.Namespace) -> int:
    """Run seeds, and sum up."""
    profile = options.profile or (BUGS[options.bug].profile if options.bug else "whole")
    began, hours, turns = process_time(), 0.0, 0
    found: Counter[str] = Counter()
    marks: Counter[str] = Counter()
    for seed in seeds:
        with planted(options.bug):
            outcome = run(setup_of(seed, profile), story=options.story)
        hours += outcome.simulated_ms / 3_600_000
        turns += outcome.turns
        marks.update(outcome.marks)
        if outcome.violation is not None:
            if not found and options.save is not None:
                save(shrink(tape_of(outcome, options.bug)), options.save)
            found[outcome.violation.monitor] += 1
        if outcome.violation is not None or options.story:
            report(outcome, story=options.story)
    took = process_time() - began
    say(f"{len(seeds)} seeds, {hours:.1f} simulated hours, {turns} turns in {took:.1f} s of CPU:")
    say(f"{len(seeds) / took:.1f} seeds/s, {hours * 3600 / took:,.0f} times real time")
    say(f"violations: {dict(found) or 'none'}")
    for name, why in KNOWN.items():
        say(f"walked around: {name}: {' '.join(why.split())}")
    say(f"marks: {dict(sorted(marks.items()))}")
    return 1 if found else 0


def report(outcome: Outcome, *, story: bool) -> None:
    """One run in words."""
    if story:
        say("\n".join(outcome.story))
    broken = outcome.violation
    what = "nothing broken" if broken is None else f"monitor {broken.monitor}"
    why = "" if broken is None else f" at {broken.at / 1000:.3f} s, {broken.cell}: {broken.why}"
    say(f"seed {outcome.setup.seed}: {what}{why} ({len(outcome.fired)} faults)")


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main())
