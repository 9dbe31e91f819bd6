"""`pawl new`: each template is made in a folder, and does what its README says, as processes."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pawlflow.cli.new import TEMPLATES, commands_in
from tests.cli.kit import pawl

BIN = Path(sys.executable).parent
EXIT = re.compile(r"#.*\bexit (\d+)")
TYPED = {
    "saga": ["steps.py"],
    "approval": ["steps.py"],
    "agent": ["steps.py"],
    "python": ["flows.py", "main.py", "tests"],
}


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A line of a README, as somebody types it."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PAWL_")}
    env["PATH"] = f"{BIN}{os.pathsep}{env['PATH']}"
    env.pop("PYTEST_ADDOPTS", None)
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=50,
    )


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_does_what_its_readme_says(template, tmp_path):
    """Every command of the README ends as it says there: 0, unless it says otherwise."""
    made = shell(f"pawl new {template} shop", tmp_path)
    assert made.returncode == 0, made.stderr
    folder = tmp_path / "shop"

    for command in commands_in((folder / "README.md").read_text()):
        done = shell(command, folder)
        said = EXIT.search(command)
        wanted = int(said[1]) if said else 0
        assert done.returncode == wanted, f"{command}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_is_clean(template, tmp_path):
    """No warning of `pawl check`, its scenarios pass with every crash, and mypy is content."""
    name = f"{template}-of-mine"
    assert pawl("new", template, tmp_path / "here", "--name", name).exit_code == 0
    folder = tmp_path / "here"

    checked = shell("pawl check --strict .", folder)
    played = shell("pawl test . --crash-everywhere --json", folder)
    typed = shell(f"mypy --strict --cache-dir .mypy {' '.join(TYPED[template])}", folder)

    assert checked.returncode == 0, checked.stderr
    assert played.returncode == 0, played.stdout
    assert json.loads(played.stdout)["passed"] >= 1
    assert typed.returncode == 0, typed.stdout
    assert len((folder / "README.md").read_text().splitlines()) <= 20


def test_nothing_of_a_template_is_left_open(tmp_path):
    """The name stands wherever it belongs, and no placeholder is left."""
    for template in TEMPLATES:
        assert pawl("new", template, tmp_path / template, "--name", "bakery").exit_code == 0

        files = [path for path in (tmp_path / template).rglob("*") if path.is_file()]

        assert {".gitignore", "README.md", "pawl.toml"} <= {path.name for path in files}
        assert any(path.name.endswith(".scenario.yaml") for path in files)
        assert not [path for path in files if "@name@" in path.name + path.read_text()]
        assert not [path for path in files if path.suffix == ".in"]
        assert "bakery" in "".join(path.read_text() for path in files)


def test_without_a_template_they_are_listed():
    """A line each, and as JSON; --list says the same."""
    plain, listed = pawl("new"), pawl("new", "--list", "--json")

    assert [line.split()[0] for line in plain.stdout.splitlines()] == list(TEMPLATES)
    assert json.loads(listed.stdout) == [
        {"name": name, "about": about} for name, about in TEMPLATES.items()
    ]


def test_nothing_is_replaced(tmp_path):
    """Files that are in the way are named, and all of them are as they were; exit 5."""
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "README.md").write_text("mine")
    (folder / "steps.py").symlink_to(tmp_path / "nowhere.py")
    (folder / "notes.txt").write_text("also mine")

    done = pawl("new", "saga", folder, "--json")

    error = json.loads(done.stdout)["error"]
    assert (done.exit_code, error["code"]) == (5, "cli.exists")
    assert "README.md" in error["message"]
    assert "steps.py" in error["message"]
    assert "pawl.toml" not in error["message"]
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", "notes.txt", "steps.py"]
    assert (folder / "README.md").read_text() == "mine"
    assert not (tmp_path / "nowhere.py").exists()


def test_other_files_do_not_matter(tmp_path, monkeypatch):
    """The current folder will do, if nothing in it is in the way."""
    (tmp_path / "notes.txt").write_text("mine")
    monkeypatch.chdir(tmp_path)

    told = json.loads(pawl("new", "agent", ".", "--name", "blog", "--json").stdout)

    assert (told["name"], told["folder"]) == ("blog", ".")
    assert set(told["files"]) >= {"blog.yaml", "blog.scenario.yaml", "steps.py", ".gitignore"}
    assert told["next"][0].startswith("pawl check")
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_file_in_the_way_of_a_folder(tmp_path):
    """Of the project, or of one inside it."""
    (tmp_path / "shop").write_text("a file")
    assert pawl("new", "saga", tmp_path / "shop").exit_code == 5
    inner = tmp_path / "other"
    inner.mkdir()
    (inner / "tests").write_text("a file")
    done = pawl("new", "python", inner)
    assert done.exit_code == 5
    assert "tests" in done.output
    assert [path.name for path in inner.iterdir()] == ["tests"]


def test_what_was_begun_is_taken_away_again(tmp_path, monkeypatch):
    """A disk that fills up half-way leaves nothing of ours behind."""
    opened = Path.open

    def refuse(self, *words, **more):
        if self.name == "steps.py":
            raise OSError(28, "No space left on device", str(self))
        return opened(self, *words, **more)

    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "mine.txt").write_text("mine")
    monkeypatch.setattr(Path, "open", refuse)
    done = pawl("new", "saga", tmp_path / "shop", "--json")

    assert json.loads(done.stdout)["error"]["code"] == "cli.unwritable"
    assert done.exit_code == 4
    assert [path.name for path in (tmp_path / "shop").iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(
    ("words", "suggestion"),
    [
        (["--name", "My Shop!"], "--name my-shop"),
        (["--name", "7-eleven"], "--name saga-7-eleven"),
        (["--name", "true"], "--name saga-true"),
        (["--name", "shop-"], "--name shop"),
        (["--name", ""], "--name saga"),
        (["--name", "x" * 64], f"--name {'x' * 63}"),
        (["--name", "../evil"], "--name evil"),
        (["Brötchen"], "--name br-tchen"),
    ],
)
def test_names_that_cannot_be_used_are_refused(words, suggestion, tmp_path, monkeypatch):
    """With one that can; and nothing is made."""
    monkeypatch.chdir(tmp_path)

    done = pawl("new", "saga", *words, "--json")

    error = json.loads(done.stdout)["error"]
    assert (done.exit_code, error["code"]) == (2, "cli.name")
    assert error["message"].endswith(suggestion)
    assert list(tmp_path.iterdir()) == []
    suggested = suggestion.removeprefix("--name ")
    assert pawl("new", "saga", "x", "--name", suggested).exit_code == 0


def test_an_unknown_template_gets_a_suggestion():
    """Exit 2."""
    done = pawl("new", "sage")
    assert done.exit_code == 2
    assert "did you mean saga?" in done.output
    assert "there are saga, approval" in pawl("new", "zzz").output
