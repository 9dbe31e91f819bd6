"""`pawl demo`: the whole story on a store of its own, nothing to configure, nothing left behind."""

import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import Any, Final

import click

from pawlflow.cli.demo_stage import Stage
from pawlflow.cli.demo_steps import LEDGER
from pawlflow.cli.demo_story import Chapter, crash, gate, proof, saga
from pawlflow.cli.output import FAILED, print_json
from pawlflow.cli.session import Session, session, told

FILES: Final = Path(__file__).parent / "demo_files"
TERMINATED: Final = 128 + signal.SIGTERM  # as a shell tells of a process that the signal ended
WIDTH: Final = 30  # of a command; after a longer one its words go below
TITLES: Final[dict[str, Callable[[Stage], Chapter]]] = {
    "An order whose payment fails, and is undone": saga,
    "A release that waits for a human": gate,
    "A crash, and nothing lost": crash,
    "Every decision made again": proof,
}


@click.command(help="Watch the whole story in half a minute; nothing to set up.")
@click.option("--keep", is_flag=True, help="Keep the folder, to look around in it.")
def command(keep: bool, **options: Any) -> None:
    """Four chapters, all of them real; exit 1 if one does not end as it must."""
    here = session(options)
    with leaving_in_order():
        folder = Path(tempfile.mkdtemp(prefix="pawl-demo-"))
        try:
            with told(here):
                chapters = tell(here, folder)
            finish(here, chapters, folder if keep else None)
        finally:
            if not keep:
                shutil.rmtree(folder, ignore_errors=True)
    sys.exit(0 if all(chapter.held for chapter in chapters) else FAILED)


@contextmanager
def leaving_in_order() -> Iterator[None]:
    """By SIGTERM this process would be gone at once, its folder and its children left behind.

    So it leaves the way it does after Ctrl-C, which an event loop knows how to take.
    """
    asked: list[int] = []

    def leave(number: int, _: object) -> None:
        asked.append(number)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one must not cut the end short
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a background job of a shell
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    except KeyboardInterrupt:
        if asked:
            sys.exit(TERMINATED)
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def tell(here: Session, folder: Path) -> list[Chapter]:
    """Every chapter, in a store of its own."""
    for file in sorted(FILES.glob("*.yaml")):
        shutil.copy(file, folder / file.name)
    os.environ[LEDGER] = str(folder / "ledger.db")
    stage = Stage(folder, quiet=here.as_json)
    chapters = []
    for number, (title, play) in enumerate(TITLES.items(), start=1):
        stage.heading(f"{number}. {title}")
        began = time.perf_counter()
        chapter = play(stage)
        chapter.title, chapter.seconds = title, time.perf_counter() - began
        chapters.append(chapter)
    return chapters


def finish(here: Session, chapters: list[Chapter], kept: Path | None) -> None:
    """A table of what was shown, and what to try next."""
    if here.as_json:
        print_json({"chapters": chapters, "folder": None if kept is None else str(kept)})
        return
    from pawlflow.cli.demo_stage import summary_table
    from pawlflow.cli.screen import draw

    click.echo()
    draw(summary_table(chapters))
    click.echo("\nWhat to try next:\n")
    for line, words in commands_for(kept).items():
        gap = " " * (WIDTH - len(line)) if len(line) <= WIDTH else f"\n{' ' * (WIDTH + 2)}"
        click.echo(f"  {click.style(line, bold=True)}{gap}  {click.style(words, dim=True)}")


def commands_for(kept: Path | None) -> dict[str, str]:
    """Commands that work as they stand."""
    pawl = program()
    if kept is None:
        return {
            f"{pawl} demo --keep": "the same, and its files stay for you to look around",
            f"{pawl} schema workflow": "what a workflow may say, for your editor",
            f"{pawl} --help": "every verb",
        }
    worker = "--worker pawlflow.cli.demo_steps"
    order = """'{"sku": "mug", "amount": 12, "card": "good"}'"""
    return {
        f"cd {kept}": "where it all is",
        f"{pawl} ls": "everything that ran",
        f"{pawl} why order-1": "why the order failed",
        f"{pawl} show release-1 --at 2": "the release as it was before it was approved",
        f"{pawl} trace parcel-01": "every turn of a parcel, with its causes and keys",
        f"{pawl} run order.yaml {worker} --input {order}": "an order that goes well",
        f"rm -r {kept}": "and all is gone",
    }


def program() -> str:
    """What to type for this program: its name, or its path where the shell would not find it."""
    here = Path(sys.argv[0]).absolute()
    if shutil.which("pawl") is not None or here.name != "pawl" or not here.is_file():
        return "pawl"
    return quote(str(here))
