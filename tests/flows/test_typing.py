"""Users' code under the type checkers: what is right passes, what is wrong is told."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SAMPLES = Path(__file__).parent / "samples"
MARK = re.compile(r"#: error(?: by (\w+))?")


def checked_by_mypy(path, folder):
    """The lines that mypy in strict mode complains about."""
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-error-summary"),
            *("--cache-dir", str(folder), str(path)),
        ],
        text=True,
        capture_output=True,
        check=False,
        cwd=folder,
    )
    assert ran.returncode in (0, 1), ran.stderr
    return {int(line) for line in re.findall(r"\.py:(\d+): error", ran.stdout)}, ran.stdout


def checked_by_pyright(path, folder):
    """The lines that pyright complains about."""
    ran = subprocess.run(
        [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, str(path)],
        text=True,
        capture_output=True,
        check=False,
        cwd=folder,
        env={"PATH": f"{Path(shutil.which('node')).parent}:/usr/bin:/bin", "HOME": str(folder)}
        | {"PYRIGHT_PYTHON_USE_BUNDLED_PYRIGHT": "1"},
    )
    assert ran.returncode in (0, 1), ran.stdout + ran.stderr
    return {int(line) for line in re.findall(r"\.py:(\d+):\d+ - error", ran.stdout)}, ran.stdout


CHECKERS = {"mypy": checked_by_mypy, "pyright": checked_by_pyright}


@pytest.mark.req("R229")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("checker", CHECKERS)
@pytest.mark.parametrize("name", ["right", "wrong"])
def test_users_code_is_checked(checker, name, tmp_path):
    """Exactly the lines that are marked are complained about."""
    if checker == "pyright" and shutil.which("node") is None:
        pytest.skip("pyright needs node")
    path = SAMPLES / f"{name}.py"
    lines = enumerate(map(MARK.search, path.read_text().splitlines()), 1)
    marked = {line for line, mark in lines if mark and mark[1] in (None, checker)}
    assert bool(marked) == (name == "wrong")
    found, said = CHECKERS[checker](path, tmp_path)
    assert found == marked, said
