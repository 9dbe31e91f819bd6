"""`pawl sim FILE|MODULE`: a workflow of the user's under injected faults, in virtual time."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import Any, Final, NoReturn

import click
import msgspec

from pawlflow.cli.interrupts import Interrupts
from pawlflow.cli.output import (
    FAILED,
    INTERRUPTED,
    INVALID,
    USAGE,
    note,
    print_json,
    read_file,
)
from pawlflow.cli.session import Session, session
from pawlflow.cli.sim_source import (
    invariants_in,
    invariants_of,
    signals_of,
    source_of,
    workload_of,
)
from pawlflow.cli.sim_told import Screen, as_dict, print_broken, print_fine, print_kinds
from pawlflow.cli.values import json_of
from pawlflow.testing.usersim.invariants import Invariant
from pawlflow.testing.usersim.sweep import Tally
from pawlflow.testing.usersim.tape import BadTapeError, Given, Player, Tape, load, save, smallest
from pawlflow.testing.usersim.telling import lines_of
from pawlflow.testing.usersim.workload import INSTANCES, UnfitInputError, Workload

SEEDS: Final = 100
SEEDS_MAX: Final = 1_000_000_000  # what --minutes may reach
INSTANCES_MAX: Final = 1_000


@click.command(
    help="Run a workflow under injected faults, in virtual time. Exit 0 all seeds are fine, "
    "1 an invariant was broken: its smallest tape and its story are printed."
)
@click.argument("workflow", metavar="FILE|MODULE:FLOW", required=False)
@click.option("--seeds", metavar="N|A:B", help=f"How many seeds; default {SEEDS}.")
@click.option("--seed", type=int, help="This one seed.")
@click.option("--minutes", type=click.FloatRange(min=0), help="Seeds for so long.")
@click.option(
    "--invariant",
    "stated",
    multiple=True,
    metavar="EXPR|MODULE:FUNCTION",
    help="What must hold of every instance that has ended.",
)
@click.option(
    "--invariants",
    "files",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A file of them: an expression to a line, or functions in a .py.",
)
@click.option("--input", "inputs", multiple=True, metavar="JSON|@FILE", help="Default: drawn.")
@click.option("--instances", type=click.IntRange(1, INSTANCES_MAX), help="At once; default 2.")
@click.option("--stubs", metavar="FILE", help="Answers of steps, as in a scenario.")
@click.option(  # by its other name it is no setting: what `pawl run` does for real is not meant
    "--worker", "functions", metavar="MODULE", help="Functions that answer pure steps."
)
@click.option(
    "--people/--no-people",
    default=None,
    help="Somebody decides, signals, cancels, pauses; default yes, unless a script does.",
)
@click.option(
    "--signal", "signals", multiple=True, metavar="EVENT=JSON", help="What a signal brings."
)
@click.option(
    "--idempotent",
    multiple=True,
    metavar="STEP,...",
    help="Steps whose executors do a key once; `all`.",
)
@click.option("--faults", multiple=True, metavar="LIST", help="Kinds; +KIND and -KIND change.")
@click.option("--list-faults", is_flag=True, help="List the kinds of fault, and end.")
@click.option("--tape", type=click.Path(path_type=Path), help="Play this tape instead.")
@click.option("--save", "save_as", type=click.Path(path_type=Path), help="Where the tape goes.")
@click.option("--keep-going", is_flag=True, help="Do not end at the first broken invariant.")
@click.option("--story", is_flag=True, help="With --seed or --tape: print all that happened.")
def command(workflow: str | None, **options: Any) -> None:
    """Read everything first; then seed after seed, until one of them breaks something."""
    here = session(options)
    if options["list_faults"]:
        print_kinds(as_json=here.as_json)
        return
    if workflow is None:
        here.end("cli.usage", "name a workflow: pawl sim FILE, or pawl sim MODULE:FLOW", USAGE)
    tape = None if options["tape"] is None else tape_in(here, options["tape"])
    asked = Asked(here, workflow, options, tape)
    try:
        asked.work.start(asked.dice, 1)
        if tape is not None:
            asked.replay(tape)
        asked.sweep(seeds_of(here, options))
    except UnfitInputError as error:
        hint = "" if asked.work.inputs else "; give one that does with --input"
        here.end("input.invalid", f"{error}{hint}", INVALID)


def tape_in(here: Session, path: Path) -> Tape:
    """The tape of a file."""
    try:
        return load(read_file(path, as_json=here.as_json), str(path))
    except BadTapeError as error:
        here.end("sim.tape", str(error), USAGE)


def seeds_of(here: Session, options: dict[str, Any]) -> range:
    """Which seeds are run."""
    if options["seed"] is not None:
        return range(options["seed"], options["seed"] + 1)
    text = options["seeds"]
    if text is None:
        return range(SEEDS_MAX if options["minutes"] is not None else SEEDS)
    first, colon, last = text.partition(":")
    numbers = [each for each in (first, last) if each.isdecimal()]
    if len(numbers) != 1 + bool(colon):
        here.end("cli.usage", f"--seeds: {text!r} is neither a number nor FIRST:END", USAGE)
    found = range(int(first), int(last)) if colon else range(int(first))
    if not found:
        here.end("cli.usage", f"--seeds: {text!r} are none", USAGE)
    return found


def given_of(here: Session, options: dict[str, Any], tape: Tape | None, *, scripted: bool) -> Given:
    """What the options say; on a tape, what they said, unless they say something else now."""
    before = Given(instances=INSTANCES, people=not scripted) if tape is None else tape.given
    typed = {
        "inputs": tuple(json_of(here, each, "--input") for each in options["inputs"]) or None,
        "instances": options["instances"],
        "people": options["people"],
        "idempotent": steps_in(options["idempotent"]) or None,
        "signals": signals_of(here, options["signals"]) or None,
        "stubs": options["stubs"],
        "worker": options["functions"],
        "faults": options["faults"] or None,
    }
    said = {name: value for name, value in typed.items() if value is not None}
    return msgspec.structs.replace(before, **said)


def steps_in(given: tuple[str, ...]) -> tuple[str, ...]:
    """The steps of a list; `all` means every one."""
    words = [word.strip() for text in given for word in text.split(",") if word.strip()]
    return tuple("*" if word == "all" else word for word in words)


class Asked:
    """One call of the verb."""

    def __init__(
        self, here: Session, workflow: str, options: dict[str, Any], tape: Tape | None
    ) -> None:
        self.here = here
        self.workflow = workflow
        self.options = options
        source = source_of(here, workflow)
        given = given_of(here, options, tape, scripted=bool(source.script))
        self.work: Workload = workload_of(here, source, given)
        texts, invariants = self.invariants(tape)
        self.given = msgspec.structs.replace(given, invariants=texts)
        self.player = Player(self.work, invariants)
        self.dice = self.work.dice(options["seed"] or 0)
        self.screen = Screen(quiet=here.as_json)

    def invariants(self, tape: Tape | None) -> tuple[tuple[str, ...], list[Invariant]]:
        """Those of the command line and of files; else those of the tape."""
        stated: tuple[str, ...] = self.options["stated"]
        if tape is not None and not stated and not self.options["files"]:
            stated = tape.given.invariants
        found = list(
            zip(stated, invariants_of(self.here, stated, self.work.workflows), strict=True)
        )
        for path in self.options["files"]:
            found += invariants_in(self.here, path, self.work.workflows)
        return tuple(text for text, _ in found), [each for _, each in found]

    # A tape

    def replay(self, tape: Tape) -> NoReturn:
        """Play a tape, tell its story, and say whether it still breaks what it broke."""
        if tape.definition != self.work.plan.definition.hex() and not self.here.as_json:
            note("the workflow has changed since this tape was made")
        outcome = self.player.play(tape.setup, tape.faults, story=True)
        found = outcome.violation
        story = tuple(lines_of(outcome.story))
        if found is None:
            self.fine_replay(tape, story)
        again = msgspec.structs.replace(tape, violation=found, story=story, given=self.given)
        if self.here.as_json:
            print_json({"ok": False, "failures": [as_dict(again, self.options["tape"])]})
        else:
            print_broken(again, "the tape breaks an invariant", self.work)
        sys.exit(FAILED)

    def fine_replay(self, tape: Tape, story: tuple[str, ...]) -> NoReturn:
        """Nothing is broken any more."""
        if self.here.as_json:
            print_json({"ok": True, "failures": [], "story": story})
        else:
            if self.options["story"]:
                click.echo("\n".join(story))
            click.echo(f"fine: the tape no longer breaks {tape.violation.invariant}")
        sys.exit(0)

    # Many seeds

    def sweep(self, seeds: range) -> NoReturn:
        """Seed after seed; an interrupt ends it with what was found so far."""
        tally, failures = Tally(self.work), list[tuple[Tape, Path | None]]()
        with suppress(KeyboardInterrupt), Interrupts() as interrupts:
            for seed in seeds:
                if interrupts.noted or self.is_time_up(tally):
                    break
                if not self.one(seed, tally, failures):
                    break
                self.screen.progress(tally, seeds, len(failures))
        interrupted = interrupts.noted
        self.screen.clear()
        self.report(tally, failures, interrupted=interrupted)
        sys.exit(INTERRUPTED if interrupted else FAILED if failures else 0)

    def is_time_up(self, tally: Tally) -> bool:
        """Has it run for as long as it may?"""
        minutes = self.options["minutes"]
        return minutes is not None and perf_counter() - tally.began > minutes * 60

    def one(self, seed: int, tally: Tally, failures: list[tuple[Tape, Path | None]]) -> bool:
        """One seed; False if it is the last."""
        story = self.options["story"] and self.options["seed"] is not None
        outcome = self.player.play(self.work.setup(seed), story=story)
        tally.add(outcome)
        if story and not self.here.as_json:
            click.echo("\n".join(lines_of(outcome.story)))
        found = outcome.violation
        if found is None:
            return True
        if all(tape.violation.invariant != found.invariant for tape, _ in failures):
            began = perf_counter()
            taken = [path for _, path in failures]
            failures.append(self.keep(self.player.tape_of(outcome, self.given), taken))
            tally.shrinking_s += perf_counter() - began
        return bool(self.options["keep_going"])

    def keep(self, tape: Tape, taken: Sequence[Path | None]) -> tuple[Tape, Path | None]:
        """Shrink a tape, as far as nobody interrupts, and write it down."""
        try:
            others = self.options["seed"] is None
            for smaller in smallest(self.player, tape, self.screen.shrinking, others=others):
                tape = smaller
        except KeyboardInterrupt:
            note("interrupted: the tape is as small as it is")
        told, _ = self.player.told(tape)
        wanted = self.place_of(told)
        path, number = wanted, 1
        while path in taken:
            number += 1
            path = wanted.with_name(f"{number}-{wanted.name}")
        try:
            save(told, path)
        except OSError as error:
            note(f"the tape cannot be written to {path}: {error.strerror}")
            return told, None
        return told, path

    def place_of(self, tape: Tape) -> Path:
        """Where a tape goes: beside its workflow, named by its seed."""
        if self.options["save_as"] is not None:
            return Path(self.options["save_as"])
        path = Path(self.workflow)
        folder = path if path.is_dir() else path.parent if path.is_file() else Path()
        return folder / f"{tape.workflow}.seed-{tape.setup.seed}.tape.json"

    def report(
        self, tally: Tally, failures: list[tuple[Tape, Path | None]], *, interrupted: bool
    ) -> None:
        """How it went, for people or for machines."""
        if self.here.as_json:
            print_json(
                {
                    "ok": not failures,
                    "workflow": self.work.plan.workflow,
                    "version": self.work.plan.version,
                    "seeds": tally.seeds,
                    "interrupted": interrupted,
                    "failures": [as_dict(tape, path) for tape, path in failures],
                    "met": tally.as_dict(),
                    "turns": tally.turns,
                    "simulated_ms": tally.simulated_ms,
                    "seeds_per_second": round(tally.rate, 1),
                    "trace": tally.trace,
                }
            )
            return
        for tape, path in failures:
            first = "" if tape.first == tape.setup.seed else f", as seed {tape.first} did"
            title = f"seed {tape.setup.seed} breaks an invariant{first}"
            print_broken(tape, title, self.work, path, self.workflow)
        print_fine(tally, self.player.invariants, broken=len(failures), interrupted=interrupted)
