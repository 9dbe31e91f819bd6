"""The stage of `pawl demo`: where things are, and how they are told, to a person or to a pipe."""

import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final, Protocol

import click
import msgspec
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from pawlflow.cli.screen import Nowhere, Screen, console, screen_for

PAWL: Final = [sys.executable, "-c", "from pawlflow.cli.main import entry; entry()"]


class Chapter(msgspec.Struct):
    """What a chapter has shown."""

    shown: str
    held: bool
    figures: dict[str, int] = {}
    title: str = ""
    seconds: float = 0.0


class Bar(Protocol):
    """Something that fills up."""

    def set(self, done: int) -> None:
        """So much is done."""
        ...


class Stage:
    """A folder, and a way to say what happens in it."""

    def __init__(self, folder: Path, *, quiet: bool) -> None:
        self.folder = folder
        self.quiet = quiet
        self.url = f"sqlite:///{folder / '.pawl' / 'pawl.db'}"
        self.terminal = sys.stdout.isatty() and not quiet
        self.beside: Callable[[str], None] | None = None  # says it above a bar that is drawn

    def heading(self, text: str) -> None:
        """A chapter begins."""
        if not self.quiet:
            click.echo(f"\n{click.style(text, fg='cyan', bold=True)}\n")

    def say(self, text: str) -> None:
        """One line."""
        if self.beside is not None:
            self.beside(text)
        elif not self.quiet:
            click.echo(text)

    def command(self, *words: str) -> None:
        """A command that is run for real."""
        shown = " ".join(f"'{each}'" if " " in each else each for each in words)
        self.say(f"{click.style('$', fg='green')} pawl {click.style(shown, bold=True)}")

    def screen(self) -> Screen:
        """Where an instance is shown."""
        return Nowhere() if self.quiet else screen_for(err=False)

    @contextmanager
    def bar(self, words: str, total: int) -> Iterator[Bar]:
        """A bar on a terminal; a pipe gets what is said beside it."""
        if not self.terminal:
            yield NoBar()
            return
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        page = console()
        with Progress(*columns, TimeElapsedColumn(), console=page) as progress:
            self.beside = page.print
            try:
                yield RichBar(progress, words, total)
            finally:
                self.beside = None

    def booked(self) -> tuple[int, int]:
        """What the ledger says of parcels: calls that were made, effects that happened."""
        file = self.folder / "ledger.db"
        if not file.exists():
            return 0, 0
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=10)) as book:
            try:
                [calls] = book.execute(COUNT.format("called")).fetchone()
                [effects] = book.execute(COUNT.format("booked")).fetchone()
            except sqlite3.OperationalError:  # its tables are about to be made
                return 0, 0
            return calls, effects


COUNT: Final = "SELECT count(*) FROM {} WHERE instance LIKE 'parcel-%'"


class NoBar:
    """Nobody looks."""

    def set(self, done: int) -> None:
        """Say nothing."""


class RichBar:
    """A bar that fills."""

    def __init__(self, progress: Progress, words: str, total: int) -> None:
        self.progress = progress
        self.task = progress.add_task(words, total=total)

    def set(self, done: int) -> None:
        """So much is done."""
        self.progress.update(self.task, completed=done)


def summary_table(chapters: Iterable[Chapter]) -> Table:
    """What was shown, chapter by chapter."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("")
    table.add_column("CHAPTER", no_wrap=True)
    table.add_column("WHAT HAPPENED", overflow="fold")
    table.add_column("TOOK", justify="right", no_wrap=True)
    for chapter in chapters:
        mark = Text("✓", style="green") if chapter.held else Text("✗", style="bold red")
        took = f"{chapter.seconds:.1f}s"
        table.add_row(mark, Text(chapter.title), Text(chapter.shown), Text(took, style="dim"))
    return table
