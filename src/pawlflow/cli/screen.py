"""Screens: where a person watches. A live tree on a terminal, plain lines anywhere else."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from types import TracebackType
from typing import Any, Final, Protocol, Self

import click
from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress import Progress as Bars

from pawlflow.cli.output import note
from pawlflow.cli.render import instance_tree, lines_for
from pawlflow.cli.typed import typed, typed_waiting
from pawlflow.engine.clock import SystemClock

PIPE_WIDTH: Final = 200  # nothing is cut where nobody's terminal ends
FRAMES_PER_S: Final = 8  # enough for a running clock
Shown = Mapping[str, Any]
Progress = Callable[[int, int], None]


class Screen(Protocol):
    """What an instance is shown on as it moves."""

    watched: bool  # does anybody look? If not, nothing need be read for it

    def __enter__(self) -> Self:
        """Begin."""
        ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End, leaving the last picture."""
        ...

    def update(self, shown: Shown) -> None:
        """The instance has moved."""
        ...

    def say(self, words: str) -> None:
        """A word beside the picture."""
        ...


class Nowhere:
    """Nobody watches."""

    watched = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def update(self, shown: Shown) -> None:
        """Say nothing."""

    def say(self, words: str) -> None:
        """Say it to whoever reads the errors."""
        note(words)


class Lines(Nowhere):
    """One line for each change."""

    watched = True

    def __init__(self, *, err: bool) -> None:
        self.err = err
        self.before: Shown | None = None

    def update(self, shown: Shown) -> None:
        """Print what has changed."""
        for line in lines_for(self.before, shown):
            click.echo(line, err=self.err)
        self.before = shown


class LiveTree(Nowhere):
    """The tree of `show`, drawn again while its clock runs."""

    watched = True

    def __init__(self, *, err: bool) -> None:
        self.clock = SystemClock()
        self.command = click.get_current_context(silent=True)  # of whom the picture is
        self.shown: Shown | None = None
        self.live = Live(
            console=console(err=err),
            get_renderable=self.picture,
            refresh_per_second=FRAMES_PER_S,
        )

    def __enter__(self) -> Self:
        self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.live.stop()

    def say(self, words: str) -> None:
        """Say it above the picture."""
        self.live.console.print(f"note: {typed(words)}")

    def picture(self) -> RenderableType:
        """The instance as it was last seen, at this moment."""
        with nullcontext() if self.command is None else self.command.scope(cleanup=False):
            return "" if self.shown is None else instance_tree(self.shown, self.clock.now())

    def update(self, shown: Shown) -> None:
        """Keep it for the next picture."""
        first = self.shown is None
        self.shown = typed_waiting(shown)
        if first:
            self.live.refresh()


def screen_for(*, err: bool, quiet: bool = False) -> Screen:
    """The screen for this stream; a quiet verb shows only what somebody looks at."""
    stream = sys.stderr if err else sys.stdout
    if stream.isatty():
        return LiveTree(err=err)
    return Nowhere() if quiet else Lines(err=err)


def console(*, err: bool = False) -> Console:
    """A console for what others have written: their words are no markup."""
    stream = sys.stderr if err else sys.stdout
    width = None if stream.isatty() else PIPE_WIDTH
    return Console(file=stream, width=width, markup=False, emoji=False, highlight=False)


def draw(renderable: RenderableType) -> None:
    """Put something on standard output; what fills a terminal's lines is left out of a pipe."""
    page = console()
    if page.is_terminal:
        page.print(renderable)
        return
    with page.capture() as captured:
        page.print(renderable)
    for line in captured.get().splitlines():
        click.echo(line.rstrip())


@contextmanager
def progress_bar(words: str) -> Iterator[Progress | None]:
    """A bar on standard error where somebody watches; None elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    with Bars(console=console(err=True), transient=True) as bars:
        task = bars.add_task(words, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)
