"""The Python examples, run as the pages say: the same commands, on real files, the same words."""

import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from pawlflow.app import open_store
from pawlflow.definition.load import load_workflows
from pawlflow.projections.proof import verify_store

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAWL = [sys.executable, "-c", "from pawlflow.cli.main import entry; entry()"]
PROGRAMS = {"python": [sys.executable], "pawl": PAWL}


@pytest.fixture
def folder(tmp_path):
    """A copy of the examples, so that what they leave behind is left elsewhere."""
    shutil.copytree(EXAMPLES / "python", tmp_path / "python")
    shutil.copy(EXAMPLES / "order.yaml", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("page", "place"),
    [
        ("README.md", "."),
        ("docs/python.md", "python"),
        ("docs/flows.md", "python"),
        ("docs/loops.md", "python"),
        ("docs/secrets.md", "python"),
        ("docs/http.md", "python"),
        ("docs/events.md", "python"),
        ("docs/operating.md", "python"),
    ],
    ids=lambda each: each,
)
def test_a_page_prints_what_its_commands_print(page, place, folder):
    """Every console block, in the order of the page: what follows the prompt is run, and held."""
    blocks = consoles((ROOT / page).read_text())
    assert blocks
    for command, printed in blocks:
        assert run(command, folder / place) == printed


def test_a_saga_leaves_nothing_behind_but_its_journal(folder):
    """The room was booked under the key of its call, and given back; every decision verifies."""
    run("python saga.py", folder / "python")

    with sqlite3.connect(folder / "python" / "hotel.db") as hotel:
        assert hotel.execute("SELECT count(*) FROM booking").fetchone() == (0,)
    store = open_store(f"sqlite:///{folder}/python/trip.db")
    report = verify_store(store)
    store.close()
    assert (report.instances, report.differences) == (1, [])


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("python/*.yaml")), ids=lambda path: path.name)
def test_a_workflow_is_read_without_a_finding(path):
    """What `pawl check --strict` would say: nothing."""
    assert load_workflows(path.read_bytes(), path.name)[1] == []


def test_every_program_is_run_by_a_page():
    """An example that no page runs is nobody's example."""
    pages = [
        (ROOT / page).read_text()
        for page in (
            *("README.md", "docs/python.md", "docs/flows.md", "docs/loops.md"),
            *("docs/secrets.md", "docs/http.md"),
            *("docs/events.md", "docs/operating.md"),
        )
    ]
    commands = " ".join(command for page in pages for command, _ in consoles(page))
    left_out = [path for path in EXAMPLES.glob("python/*.py") if path.name not in commands]
    assert left_out == []


def consoles(text: str) -> list[tuple[str, str]]:
    """Give the commands of a page, each with what it prints."""
    found = []
    for block in CONSOLE.findall(text):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, printed = part.partition("\n")
            found.append((command, printed))
    return found


def run(command: str, cwd: Path) -> str:
    """Run a command as a reader does; gives what it prints."""
    program, *arguments = shlex.split(command)
    env = {name: value for name, value in os.environ.items() if not name.startswith("PAWL_")}
    done = subprocess.run(
        [*PROGRAMS[program], *arguments],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
