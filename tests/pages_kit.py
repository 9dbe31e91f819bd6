"""A page as its reader uses it: its files are written, and its commands run, in order, in a folder.

- A block with a title is a file: ```python title="order.py"
- A `console` block is typed into a terminal; with a title, into another one of that name.
- What follows a prompt is compared with what the command prints on its standard output. `...`
  stands for anything within a line, and alone on a line for any lines. Times, durations and ids
  may be any. `# exit 1` behind a command is how it ends.
- A block that begins without a prompt goes on with what its terminal still prints: a command may
  wait there for what is done in another one.
- `sh` blocks install things, and are run where an empty environment is (tests/test_wheel.py).
- `text` is read, not run.
"""

import contextlib
import os
import queue
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import NamedTuple

FENCE = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?(?: [^\n]*)?\n(.*?)^```$", re.M | re.S)
EXIT = re.compile(r"# exit (\d+)$")
MARK = "@@pawl-page"
PATIENCE_S = 30.0
INSTALLING_S = 300.0  # of a command that installs things
READ_ONLY = ("text",)
# What is another each time.
VARIES = {
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:[\d.]+)?Z?": "TIME",
    r"\b\d\d:\d\d:\d\d(\.\d+)?": "TIME",
    r"\b\d\d-\d\d \d\d:\d\d\b": "TIME",
    r"\b\d+(\.\d+)?m?s\b": "SPAN",
    r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b": "ID",
    r"\b[0-9a-f]{32}\b": "ID",
    r" +": " ",
}


class Block(NamedTuple):
    """One fenced block."""

    language: str
    title: str
    text: str
    start: int  # of its text, on the page
    line: int


class Told(NamedTuple):
    """A command, what the page says it prints, and what it printed."""

    command: str
    expected: str
    actual: str
    code: int | None
    place: tuple[int, int]
    error: str

    @property
    def is_right(self) -> bool:
        """Did it do what the page says?"""
        return matches(self.expected, self.actual) and self.code in (None, code_of(self.command))


def blocks_of(text: str) -> list[Block]:
    """The blocks of a page, in order."""
    return [
        Block(
            found[1], found[2] or "", found[3], found.start(3), text.count("\n", 0, found.start())
        )
        for found in FENCE.finditer(text)
    ]


def matches(expected: str, actual: str) -> bool:
    """Is this what the page says?"""
    lines = [
        r"(?:.*\n)*" if line == "...\n" else re.escape(line).replace(r"\.\.\.", ".*")
        for line in plain(expected).splitlines(keepends=True)
    ]
    return re.fullmatch("".join(lines), plain(actual)) is not None


def plain(text: str) -> str:
    """The same without what is another each time."""
    for pattern, word in VARIES.items():
        text = re.sub(pattern, word, text)
    return text


def code_of(command: str) -> int:
    """How a command is to end."""
    found = EXIT.search(command)
    return int(found[1]) if found else 0


class Terminal:
    """A shell that reads what a reader types."""

    def __init__(self, folder: Path, env: dict[str, str], errors: Path) -> None:
        self.errors = errors
        with errors.open("w") as said:
            self.shell = subprocess.Popen(
                ["bash", "--noprofile", "--norc"],
                cwd=folder,
                env=env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
                bufsize=1,
                start_new_session=True,
            )
        self.lines: queue.Queue[str | None] = queue.Queue()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self) -> None:
        """Line by line, until the shell is gone."""
        assert self.shell.stdout is not None
        for line in self.shell.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def enter(self, command: str) -> None:
        """Type a command. Nothing of what comes after it is its input."""
        assert self.shell.stdin is not None
        self.shell.stdin.write(f"{{ {command}\n}} </dev/null\nprintf '%s %d\\n' '{MARK}' $?\n")

    def listen(
        self, expected: str, *, ends: bool, behind: bool, patience: float = PATIENCE_S
    ) -> tuple[str, int | None]:
        """What is printed until the command ends, or until the page has no more of it."""
        printed, code = "", None
        while True:
            done = code is not None or not ends
            if done and (matches(expected, printed) if behind or not ends else True):
                return printed, code
            try:
                line = self.lines.get(timeout=patience)
            except queue.Empty:
                return f"{printed}(nothing more for {patience:g} s)\n", code
            if line is None:
                return f"{printed}(the shell is gone)\n", code
            before, mark, after = line.partition(MARK)
            printed += before
            if mark:
                code = int(after)

    def close(self) -> None:
        """End the shell, and all that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.shell.pid, signal.SIGKILL)
        self.shell.wait()
        self.reader.join()
        for pipe in (self.shell.stdin, self.shell.stdout):
            assert pipe is not None
            pipe.close()


class Session:
    """One page, from its first block to its last."""

    def __init__(self, text: str, folder: Path, env: dict[str, str], *, installs: bool) -> None:
        self.blocks = blocks_of(text)
        self.folder = folder / "project"
        self.folder.mkdir()
        self.errors = folder / "errors"
        self.errors.mkdir()
        self.env = env
        self.installs = installs
        self.terminals: dict[str, Terminal] = {}

    def run(self) -> list[Told]:
        """Every command of the page, as far as each did what it should."""
        told: list[Told] = []
        try:
            for number, block in enumerate(self.blocks):
                if block.language == "console":
                    told += self.type_in(block, self.goes_on(number))
                elif block.language == "sh" and self.installs:
                    told += self.install(block)
                elif block.title:
                    path = self.folder / block.title
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(block.text)
                if self.installs and told and not told[-1].is_right:
                    break  # what comes after it would fail for that reason, slowly
        finally:
            for terminal in self.terminals.values():
                terminal.close()
        return told

    def goes_on(self, number: int) -> bool:
        """Is there more of what the last command of this block prints, further down?"""
        same = [b for b in self.blocks[number + 1 :] if is_same_terminal(b, self.blocks[number])]
        return bool(same) and not same[0].text.startswith("$ ")

    def type_in(self, block: Block, goes_on: bool) -> list[Told]:
        """The commands of one block."""
        terminal = self.terminal(block.title)
        parts = re.split(r"^(?=\$ )", block.text, flags=re.MULTILINE)
        told, at = [], block.start
        for number, part in enumerate(parts):
            if not part:
                continue
            command, _, expected = part.partition("\n") if part[0] == "$" else ("", "", part)
            place = (at + len(part) - len(expected), at + len(part))
            at += len(part)
            if command:
                terminal.enter(command.removeprefix("$ "))
            ends = not (goes_on and number == len(parts) - 1)
            behind = command.endswith("&")
            actual, code = terminal.listen(expected, ends=ends, behind=behind)
            error = terminal.errors.read_text()
            told.append(Told(command, expected, actual, code, place, error))
        return told

    def install(self, block: Block) -> list[Told]:
        """Commands that install things; what they print is theirs."""
        terminal = self.terminal("")
        told = []
        for command in block.text.splitlines():
            terminal.enter(command)
            _, code = terminal.listen("", ends=True, behind=False, patience=INSTALLING_S)
            told.append(Told(command, "", "", code, (0, 0), terminal.errors.read_text()))
        return told

    def terminal(self, name: str) -> Terminal:
        """The terminal of that name; opened when it is first used."""
        if name not in self.terminals:
            errors = self.errors / f"{len(self.terminals)}.txt"
            self.terminals[name] = Terminal(self.folder, self.env, errors)
            if self.installs and name:
                self.terminals[name].enter(". .venv/bin/activate")
                self.terminals[name].listen("", ends=True, behind=False)
        return self.terminals[name]


def is_same_terminal(one: Block, other: Block) -> bool:
    """Are both typed into the same one?"""
    return one.language == other.language == "console" and one.title == other.title


def mended(text: str, told: list[Told]) -> str:
    """The page with what its commands print now."""
    for each in reversed(told):
        if not matches(each.expected, each.actual):
            first, last = each.place
            text = text[:first] + each.actual + text[last:]
    return text


def environment(bin_folder: Path) -> dict[str, str]:
    """What a reader's shell has: the commands of this environment, and no settings of ours."""
    bin_folder.mkdir()
    entry = "from pawlflow.cli.main import entry; entry()"
    for name, how in {
        "python": "",
        "pawl": f"-c '{entry}'",
        "pytest": "-m pytest -p no:cacheprovider",
    }.items():
        shim = bin_folder / name
        shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" {how} "$@"\n')
        shim.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not is_ours(name)}
    path = f"{bin_folder}{os.pathsep}{os.environ['PATH']}"
    said = {"PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1"}
    return {**kept, **said, "PATH": path, "COLUMNS": "100", "TERM": "dumb", "USER": "you"}


def is_ours(name: str) -> bool:
    """Is this a variable that changes what is shown here?"""
    return name.startswith(("PAWL_", "PYTEST_", "VIRTUAL_ENV", "PYTHONPATH"))
