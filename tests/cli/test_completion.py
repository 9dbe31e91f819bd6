"""Completion, in real shells: verbs, options, and names that the store knows."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pawlflow.cli.complete import complete, words_of
from pawlflow.cli.completion import table_of
from pawlflow.cli.main import VERBS, main
from tests.cli.kit import pawl
from tests.cli.live_kit import Place

BIN = Path(sys.executable).parent
TRY_BASH = r"""
source "$1"
COMP_LINE=$2 COMP_POINT=${#2}
read -ra COMP_WORDS <<< "$2"
[[ $2 == *' ' ]] && COMP_WORDS+=("")
COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
_pawl
printf '%s\n' "${COMPREPLY[@]}"
complete -p pawl >&2
"""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory) -> Path:
    """The scripts of all shells, in a folder."""
    folder = tmp_path_factory.mktemp("scripts")
    for shell in ("bash", "zsh", "fish"):
        done = pawl("completion", shell)
        assert done.exit_code == 0
        (folder / f"pawl.{shell}").write_text(done.stdout)
    return folder


@pytest.fixture(scope="module")
def stocked(tmp_path_factory) -> Path:
    """A store with an instance that waits at a gate, and one whose id has a colon."""
    place = Place(tmp_path_factory.mktemp("stocked"))
    for key in ("r-1", "north:1", "north:2"):
        workflow, stubs = place.folder / "release.yaml", place.folder / "stubs.yaml"
        done = place.pawl("run", workflow, "--stubs", stubs, "--id", key, "--timeout", 1)
        assert done.exit_code == 75, done.output
    return place.folder


@pytest.fixture
def shop(place: Place, stocked: Path) -> Place:
    """A copy of that store, in the current folder."""
    for file in stocked.glob("pawl.db*"):
        shutil.copy(file, place.folder)
    (place.folder / "pawl.toml").write_text('db = "sqlite:///pawl.db"\n')
    return place


def run(command: list[str], folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """A shell, with `pawl` on its path and nothing about it in the environment."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PAWL_")}
    env |= {"PATH": f"{BIN}{os.pathsep}{env['PATH']}", **more}
    return subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=40
    )


def bash(scripts: Path, folder: Path, line: str, **more: str) -> list[str]:
    """What bash offers after a line."""
    done = run(
        ["bash", "--norc", "-c", TRY_BASH, "try", str(scripts / "pawl.bash"), line], folder, **more
    )
    assert "complete -F _pawl pawl" in done.stderr
    return [word for word in done.stdout.splitlines() if word]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("pawl rep", ["replay"]),
        ("pawl review a", ["approve"]),
        ("pawl --tenant x review ", ["approve", "claim", "ls", "reject", "settle", "show"]),
        ("pawl show --le", ["--lens"]),
        ("pawl show --lens k", ["kernel"]),
        ("pawl show --lens=k", ["kernel"]),
        ("pawl show --tena", ["--tenant"]),
        ("pawl show r", ["r-1"]),
        ("pawl show north:", ["1", "2"]),  # bash ends a word at a colon
        ("pawl resume r-1 ", ["build", "gate", "health", "promote"]),
        ("pawl retry r-1 pro", ["promote"]),
        ("pawl show r-1 --step h", ["health"]),
        ("pawl review approve r", ["r-1/gate"]),
        ("pawl review approve r-1/gate --role ", ["ReleaseManager"]),
        ("pawl ls --workflow ", ["release"]),
        ("pawl ls --state wai", ["waiting"]),
        ("pawl run rel", ["release", "release.yaml"]),
        ("pawl check st", ["stubs.yaml"]),
        ("pawl explain receipt.u", ["receipt.unknown"]),
        ("pawl new p", ["python"]),
        ("pawl completion ", ["bash", "zsh", "fish"]),
        ("pawl schedules show ", ["nightly"]),
        ("pawl --db sqlite:///none.db show ", []),
        ("pawl --db postgresql://x show ", []),
        ("pawl --tenant nobody show ", []),
        ("pawl zzz ", []),
    ],
)
def test_bash_offers_what_may_come_next(scripts, shop, line, offered):
    """Asked through the function that bash itself calls."""
    (shop.folder / "nightly.yaml").write_text(NIGHTLY)
    assert shop.pawl("apply", "-f", "nightly.yaml").exit_code == 0

    assert sorted(bash(scripts, shop.folder, line)) == sorted(offered)


NIGHTLY = """\
apiVersion: pawl.dev/v1
kind: Schedule
metadata: {name: nightly}
spec: {schedule: "0 3 * * *", workflow: release}
"""


RULES = """\
apiVersion: pawl.dev/v1
kind: Policy
metadata: {{name: {name}, version: {version}}}
spec:
  cedar: '@id("{name}-{version}") permit(principal, action, resource);'
"""


POLICIES = [
    ("pawl policy show ", ["money", "people", "release"]),
    ("pawl policy show r", ["release"]),
    ("pawl policy show money ", []),
    ("pawl policy retire ", ["people", "release"]),
    ("pawl policy retire m", []),
    ("pawl policy retire pe", ["people"]),
    ("pawl --tenant nobody policy show ", []),
    ("pawl --db sqlite:///none.db policy show ", []),
    ("pawl --db sqlite:///broken.db policy show ", []),
]


def test_policies_are_offered(scripts, shop):
    """To be shown any, to be retired those in force; one that was retired may be in force again."""
    (shop.folder / "broken.db").write_bytes(b"no database at all" * 100)
    acts = [("money", 1), ("people", 1), ("release", 1), "money", "people", ("people", 2)]
    for act in acts:
        if isinstance(act, str):
            assert shop.pawl("policy", "retire", act, "--by", "ann").exit_code == 0
            continue
        text = RULES.format(name=act[0], version=act[1])
        (shop.folder / "rules.yaml").write_text(text)
        assert shop.pawl("apply", "-f", "rules.yaml").exit_code == 0
    before = (shop.folder / "pawl.db").read_bytes()

    for line, offered in POLICIES:
        assert (line, sorted(bash(scripts, shop.folder, line))) == (line, offered)
    assert (shop.folder / "pawl.db").read_bytes() == before


def test_every_verb_and_option_is_offered(scripts, tmp_path):
    """The script knows what the verbs themselves say."""
    assert set(bash(scripts, tmp_path, "pawl ")) == set(VERBS)
    assert set(bash(scripts, tmp_path, "pawl run --")) >= {
        *("--input", "--id", "--worker", "--stubs", "--by", "--timeout"),
        *("--db", "--tenant", "--json", "--no-json", "--verbose", "--help"),
    }


def test_trouble_is_silent(scripts, shop):
    """A broken store, broken settings, a script without its table: nothing, and no trace."""
    (shop.folder / "broken.db").write_bytes(b"no database at all" * 100)
    assert bash(scripts, shop.folder, "pawl --db sqlite:///broken.db show ") == []
    (shop.folder / "pawl.toml").write_text("nonsense")
    assert bash(scripts, shop.folder, "pawl show ", PAWL_DB="sqlite:///pawl.db") != []
    assert bash(scripts, shop.folder, "pawl show ") == []
    for words in (["bash", "pawl show "], ["bash"], []):
        done = run([str(BIN / "pawl"), "__complete", *words], shop.folder)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_asking_leaves_the_store_as_it_was(scripts, shop):
    """No file is made, and none is changed."""
    before = {path.name: path.read_bytes() for path in shop.folder.iterdir() if path.is_file()}
    assert bash(scripts, shop.folder, "pawl show r") == ["r-1"]
    after = {path.name: path.read_bytes() for path in shop.folder.iterdir() if path.is_file()}
    assert after == before
    assert bash(scripts, shop.folder / "..", "pawl show ") == []
    assert not (shop.folder.parent / ".pawl").exists()


@pytest.mark.parametrize(
    ("words", "offered"), [(["show", "r"], ["r-1"]), (["policy", "show", ""], [])]
)
def test_an_answer_needs_few_imports(scripts, shop, words, offered):
    """A person waits for a tab: neither the engine, nor YAML, nor the verbs are imported."""
    table = json.dumps(table_of(main))
    code = (
        f"import sys\nsys.argv = ['pawl', '__complete', 'fish', *{words}]\n"
        "from pawlflow.cli.main import entry\nentry()\n"
        "heavy = {'yaml', 'msgspec', 'rich', 'jsonschema_rs', 'asyncio', 'pawlflow.app'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = run([sys.executable, "-c", code], shop.folder, _PAWL_TABLE=table)
    assert done.stdout.splitlines() == [*offered, "[]"]


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_offers_the_same(scripts, shop):
    """With what each means."""
    for line, offered in (
        ("pawl rep", "replay\t"),
        ("pawl show r", "r-1"),
        ("pawl new p", "python"),
    ):
        code = f"source {scripts / 'pawl.fish'}; complete -C '{line}'"
        done = run(["fish", "--no-config", "-c", code], shop.folder)
        assert [word for word in done.stdout.splitlines() if word.startswith(offered)], done


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_reads_its_script(scripts, shop):
    """The function is there, and is asked for `pawl`."""
    code = (
        "autoload -Uz compinit && compinit -u -D\n"
        f"source {scripts / 'pawl.zsh'}\n"
        "print -r -- $_comps[pawl]\n"
        "words=(pawl show r) CURRENT=3\n"
        "_describe() { print -rl -- ${(P)argv[-1]} }\n"
        "_pawl"
    )
    done = run(["zsh", "-f", "-c", code], shop.folder)
    assert done.stdout.splitlines() == ["_pawl", "r-1"], done


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("pawl show ", ["show", ""]),
        ("pawl show 'a b", ["show", "a b"]),
        ("pawl ", [""]),
        ("pawl", [""]),
        ("pawl show it's", ["show", "its"]),
        ('pawl ls --where "a == 1" ', ["ls", "--where", "a == 1", ""]),
    ],
)
def test_lines_are_read_as_a_shell_does(line, words):
    """Quotes that are still open are no trouble."""
    assert words_of(line) == words


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["show", "--", "-"], []),
        (["show", "--", "o"], ["one"]),
        (["show", "-"], ["--step", "-x", "--json"]),
        (["show", "--json", "--ste"], ["--step"]),
        (["check", "a", "b", "c"], [":files"]),
        (["show", "a", "b"], []),
        (["--nope", ""], ["show", "check"]),
        (["check", "--nope=", ""], [":files"]),
    ],
)
def test_the_cursor_is_found(words, offered):
    """Behind flags, after several files, beyond the last argument."""
    table = {
        "": {"options": {"--json": ["", None]}, "verbs": {"show": "", "check": ""}},
        "show": {"options": {"--step": ["", "step"], "-x": ["", None]}, "arguments": [["one"]]},
        "check": {"options": {}, "arguments": ["file"], "many": True},
    }
    assert [found.word for found in complete(table, words)] == offered
