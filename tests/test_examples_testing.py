"""The example of a tested project: its tests pass, with every crash too, and are typed."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "testing"
pytestmark = pytest.mark.req("R198")


@pytest.fixture
def folder(tmp_path):
    """A copy, outside of this project and its configuration."""
    return shutil.copytree(EXAMPLE, tmp_path / "shop", ignore=shutil.ignore_patterns("__pycache__"))


def python(folder: Path, *arguments: str) -> str:
    """Run a module there, as a user does."""
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=110
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_example_survives_every_crash(folder):
    """Async tests, plain tests and the scenario, each again with every crash."""
    said = python(folder, "pytest", "-p", "no:cacheprovider", "--pawl-crash-everywhere")

    assert "13 passed" in said
    assert "13 tests were run again with" in said


@pytest.mark.slow
def test_the_example_is_typed(folder):
    """Users' tests pass mypy strict."""
    files = [path.name for path in folder.glob("*.py")]
    assert "Success" in python(folder, "mypy", "--strict", "--cache-dir", ".mypy", *files)
