"""The project as a stranger meets it: metadata, locks, verbs, and no address that is not ours."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
MAKEFILE = (ROOT / "Makefile").read_text()
EXTRAS = {"postgres", "nats", "http", "server", "cedar", "otel", "agents", "mcp", "all"}
# Written apart, so that this file does not name what it looks for.
REGISTRIES = [
    *("pypi" + ".org", "python" + "hosted.org", "npmjs" + ".org", "yarnpkg" + ".com"),
    *("--index" + "-url", "--extra-index" + "-url", "--find" + "-links"),
]
MAY_NAME_OPTIONS = {"Makefile"}  # turns them off, by name


def tracked() -> list[Path]:
    """List the files that git tracks or would track; without git, all that are not hidden."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
        names = [ROOT / name for name in listed.decode().split("\0") if name]
    except (OSError, subprocess.CalledProcessError):  # no git, or an archive without history
        names = [p for p in ROOT.rglob("*") if "/." not in f"/{p.relative_to(ROOT)}"]
    return [path for path in names if path.is_file() and path.suffix != ".pyc"]


def registries_in(text: str) -> list[str]:
    """Give the registry addresses and options that a text names."""
    return [name for name in REGISTRIES if name in text]


def unpinned(lock: str) -> list[str]:
    """Give the requirements of a lock that lack an exact version or a hash."""
    entries = re.sub(r"\\\n\s*", " ", lock).splitlines()
    return [
        line for line in entries if not re.match(r"[\w.-]+==[^ ]+ .*--hash=sha256:\w{64}", line)
    ]


def public_targets(makefile: str) -> list[str]:
    """Give the phony targets that are meant for people."""
    phony = re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    return [name for line in phony for name in line.split() if not name.startswith("_")]


def test_metadata():
    """Name, licence, versions of Python, the command and the extras are what we promise."""
    assert (PROJECT["name"], PROJECT["license"]) == ("pawlflow", "Apache-2.0")
    assert PROJECT["requires-python"] == ">=3.11"
    stated = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    assert stated == ["3.11", "3.12", "3.13", "3.14"]
    assert PROJECT["scripts"] == {"pawl": "pawlflow.cli.main:entry"}
    assert set(PROJECT["optional-dependencies"]) == EXTRAS
    assert all((ROOT / name).is_file() for name in (PROJECT["readme"], *PROJECT["license-files"]))


def test_all_means_all():
    """The extra `all` brings every other one."""
    (everything,) = PROJECT["optional-dependencies"]["all"]
    named = everything.removeprefix("pawlflow[").removesuffix("]").split(",")
    assert set(named) == EXTRAS - {"all"}


def test_every_dependency_has_a_lower_bound():
    """An old version that we never tried is not accepted in silence."""
    extras = PROJECT["optional-dependencies"]
    wanted = [
        *PROJECT["dependencies"],
        *(need for name in extras if name != "all" for need in extras[name]),
    ]
    assert [need for need in wanted if ">=" not in need] == []


def test_core_dependencies_are_used():
    """The core brings exactly what the package imports."""
    modules = {"pyyaml": "yaml", "jsonschema-rs": "jsonschema_rs", "tzdata": "zoneinfo"}
    names = [re.split(r"[><=\[; ]", need)[0] for need in PROJECT["dependencies"]]
    source = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    used = set(re.findall(r"^\s*(?:import|from) (\w+)", source, re.MULTILINE))
    assert [name for name in names if modules.get(name, name) not in used] == []


def test_the_wheel_carries_its_types():
    """`py.typed` lies in the package that the wheel is made of."""
    (package,) = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert (ROOT / package / "py.typed").is_file()


def test_the_wheel_ships_what_is_no_module(tmp_path):
    """Templates, completion scripts, SQL and the demo's workflows are in the wheel."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    [wheel] = tmp_path.glob("*.whl")
    shipped = set(zipfile.ZipFile(wheel).namelist())
    source = ROOT / "src"
    folders = ("cli/templates", "cli/completions", "cli/demo_files", "store/sql")
    files = [path for name in folders for path in (source / "pawlflow" / name).rglob("*")]
    wanted = {str(path.relative_to(source)) for path in files if path.is_file()}
    assert len(wanted) > 30
    assert wanted - shipped == set()


@pytest.mark.parametrize("name", ["build", "core", "dev"])
def test_locks_are_pinned(name):
    """Every requirement has an exact version and hashes, and nothing says where it came from."""
    lock = (ROOT / "requirements" / f"{name}.txt").read_text()
    assert unpinned(lock) == []
    assert registries_in(lock) == []


@pytest.mark.parametrize(("name", "wanted"), [("core", []), ("dev", ["build", "dev", "docs"])])
def test_locks_are_complete(name, wanted):
    """Each lock holds the dependencies it was made from."""
    lock = (ROOT / "requirements" / f"{name}.txt").read_text()
    groups = PYPROJECT["dependency-groups"]
    needs = [*PROJECT["dependencies"], *(need for group in wanted for need in groups[group])]
    names = [re.split(r"[><=\[; ]", need)[0] for need in needs]
    assert [name for name in names if not re.search(rf"^{name}==", lock, re.MULTILINE)] == []


def test_no_file_names_a_registry():
    """Where packages come from is the business of the machine, not of the project."""
    texts = {path: path.read_bytes().decode(errors="ignore") for path in tracked()}
    named = {path.name for path, text in texts.items() if registries_in(text)}
    assert named <= MAY_NAME_OPTIONS
    assert not any(name.endswith((".org", ".com")) for name in registries_in(MAKEFILE))


def test_the_readme_names_both_commands():
    """A stranger finds the two commands in the first screen."""
    first_screen = "\n".join((ROOT / "README.md").read_text().splitlines()[:25])
    assert "make demo" in first_screen
    assert "make test" in first_screen


def test_help_lists_every_verb():
    """`make` alone is enough to find one's way."""
    shown = subprocess.run(
        ["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert [name for name in public_targets(MAKEFILE) if f"make {name} " not in shown] == []


def test_the_finders_find():
    """A loose pin, a missing hash, an address and an unlisted verb are each seen."""
    good = "a==1.0 ; python_version < '4' \\\n    --hash=sha256:" + "0" * 64 + "\n"
    assert unpinned(good + "b>=1\nc==2\n") == ["b>=1", "c==2"]
    assert registries_in("see https://pypi" + ".org/x") == ["pypi" + ".org"]
    assert public_targets(".PHONY: one two _three\n.PHONY: four\n") == ["one", "two", "four"]
