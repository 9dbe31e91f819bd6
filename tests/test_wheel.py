"""The wheel, built and installed into an empty environment: what somebody who installs it has."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from pawlflow.cli.new import TEMPLATES, commands_in
from tests.pages_kit import Session, environment

ROOT = Path(__file__).resolve().parent.parent
EXIT = re.compile(r"#.*\bexit (\d+)")
# What `import pawlflow` must not bring along: it is paid for by every program and every tab.
HEAVY = {"apsw", "asyncio", "cbor2", "click", "jsonschema_rs", "msgspec", "rich", "yaml"}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


class Environment:
    """A virtual environment, and commands in it."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)

    def pip(self, *arguments: str) -> None:
        """Install something."""
        command = [str(self.bin / "python"), "-m", "pip", "--disable-pip-version-check", "-q"]
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def run(self, command: str, folder: Path, code: int = 0) -> str:
        """Type a command; gives what it prints."""
        env = {name: value for name, value in os.environ.items() if not is_ours(name)}
        env["PATH"] = f"{self.bin}{os.pathsep}{env['PATH']}"
        shell = ["bash", "-c", command]
        done = subprocess.run(
            shell, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == code, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout


def is_ours(name: str) -> bool:
    """Would this variable let the checkout, or another environment, be found?"""
    return name.startswith(("PAWL_", "PYTHON", "PYTEST_", "VIRTUAL_ENV", "COVERAGE"))


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The wheel and the source archive, by the build tools that are locked."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,), (archive,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, archive


@pytest.fixture(scope="module")
def empty(built, tmp_path_factory):
    """The wheel and what it needs, as locked, and nothing else."""
    made = Environment(tmp_path_factory.mktemp("empty") / "venv")
    made.pip("install", "--require-hashes", "-r", str(ROOT / "requirements" / "core.txt"))
    made.pip("install", "--no-deps", str(built[0]))
    made.pip("check")
    return made


@pytest.fixture(scope="module")
def with_pytest(built, tmp_path_factory):
    """The same with pytest, for projects that have tests of their own."""
    lock = (ROOT / "requirements" / "dev.txt").read_text()
    version = re.search(r"^pytest==(\S+)", lock, re.MULTILINE)
    made = Environment(tmp_path_factory.mktemp("tested") / "venv")
    made.pip("install", "--require-hashes", "-r", str(ROOT / "requirements" / "core.txt"))
    made.pip("install", "--no-deps", str(built[0]))
    made.pip("install", f"pytest=={version[1]}")
    return made


def test_the_wheel_holds_the_package_and_nothing_else(built):
    """No tests, no documents, no caches; types, licence and the command are in it."""
    with zipfile.ZipFile(built[0]) as wheel:
        names = wheel.namelist()
        (info,) = {name.split("/")[0] for name in names if ".dist-info/" in name}
        about = Parser().parsestr(wheel.read(f"{info}/METADATA").decode())
        entries = wheel.read(f"{info}/entry_points.txt").decode()
    assert {name.split("/")[0] for name in names} == {"pawlflow", info}
    assert not [name for name in names if "__pycache__" in name or name.endswith((".pyc", ".db"))]
    assert {"pawlflow/py.typed", f"{info}/licenses/LICENSE"} <= set(names)
    assert "pawl = pawlflow.cli.main:entry" in entries
    assert (about["Name"], about["Requires-Python"]) == ("pawlflow", ">=3.11")


def test_the_source_archive_gives_the_same_wheel(built, tmp_path):
    """Whoever builds from the archive gets the same files."""
    with tarfile.open(built[1]) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert contents(wheel) == contents(built[0])
    assert all((source / name).exists() for name in ("docs/tutorial.md", "tests", "zensical.toml"))


def contents(wheel: Path) -> dict[str, int]:
    """The files of a wheel with their check sums."""
    with zipfile.ZipFile(wheel) as opened:
        return {each.filename: each.CRC for each in opened.infolist()}


def test_the_command_answers(empty, tmp_path):
    """`pawl version`, in an empty folder, where nothing else is installed."""
    assert empty.run("pawl version", tmp_path) == "pawl 0.1.0\n"
    assert "sim" in empty.run("pawl --help", tmp_path)
    where = empty.run("python -c 'import pawlflow; print(pawlflow.__file__)'", tmp_path)
    assert str(ROOT) not in where


def test_the_demo_tells_its_story(empty, tmp_path):
    """The whole of it, killed processes included, from what the wheel ships."""
    empty.run("pawl demo", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_flow_runs_on_sqlite(empty, tmp_path):
    """The program of the front page, twice: the second time nothing is done again."""
    shutil.copy(ROOT / "examples" / "python" / "order.py", tmp_path)
    first = empty.run("python order.py", tmp_path)
    assert first == empty.run("python order.py", tmp_path) == "{'receipt': '12 for one mug'}\n"
    shown = json.loads(empty.run("pawl --db sqlite:///shop.db show order-1 --json", tmp_path))
    assert (shown["state"], shown["steps"]["charge"]["attempts"]) == ("completed", 1)
    empty.run("pawl --db sqlite:///shop.db replay --all", tmp_path)


def test_importing_is_cheap(empty, tmp_path):
    """`import pawlflow` alone brings none of what it needs later."""
    listed = empty.run("python -c 'import pawlflow, sys; print(*sys.modules)'", tmp_path)
    assert not HEAVY & set(listed.split())
    timed = "python -X importtime -c 'from pawlflow import Pawl, flow, step' 2>&1"
    brought = {line.rpartition("|")[2].strip() for line in empty.run(timed, tmp_path).splitlines()}
    assert {"pawlflow", "pawlflow.engine.core"} <= brought
    assert not {"click", "rich", "pytest"} & brought


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_new_project_passes_its_own_tests(template, with_pytest, tmp_path):
    """Every command of its README ends as it says there."""
    with_pytest.run(f"pawl new {template} shop", tmp_path)
    folder = tmp_path / "shop"
    commands = commands_in((folder / "README.md").read_text())
    assert any("pawl test" in command for command in commands)
    for command in commands:
        said = EXIT.search(command)
        with_pytest.run(command, folder, int(said[1]) if said else 0)


def test_the_tutorial_from_pip_install_on(built, tmp_path):
    """The page as a newcomer follows it: it makes its own environment, and installs this wheel."""
    wheel = tmp_path / "constraints.txt"
    wheel.write_text(f"pawlflow @ {built[0].as_uri()}\n")
    env = environment(tmp_path / "bin")
    base = tmp_path / "bin" / "python3"
    base.write_text(f'#!/bin/sh\nexec "{sys._base_executable}" "$@"\n')
    base.chmod(0o755)
    for name in ("python", "pawl", "pytest"):
        (tmp_path / "bin" / name).unlink()
    env |= {"PIP_CONSTRAINT": str(wheel), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    text = (ROOT / "docs" / "tutorial.md").read_text()

    told = Session(text, tmp_path, env, installs=True).run()

    assert [each for each in told if not each.is_right] == []
    assert "pip install pawlflow pytest" in [each.command for each in told]
