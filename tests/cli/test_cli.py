"""The command line as such: exit codes, JSON, paths that lead nowhere, interrupts."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pawlflow.cli.main import PLANNED, SECTIONS, VERBS
from pawlflow.errors import explanations
from tests.cli.kit import ROOT, changed, pawl


@pytest.mark.parametrize("verb", ["check", "test"])
def test_what_is_not_there_is_not_found(verb, tmp_path):
    """A path that does not exist, and a folder with nothing in it: exit 4."""
    missing = pawl(verb, tmp_path / "nope.yaml")
    empty = pawl(verb, tmp_path)

    assert (missing.exit_code, empty.exit_code) == (4, 4)
    assert "no such file" in missing.output
    assert "cli.nothing" in empty.output
    told = pawl(verb, tmp_path / "nope.yaml", "--json").stdout
    assert "cli.not_found" in told


def test_a_path_that_leads_nowhere_hides_no_findings(shop):
    """It is a finding like any other, and the rest is checked."""
    changed(shop, "timeout: 30s", "timeout: 30x", "order.yaml")

    result = pawl("check", shop / "order.yaml", shop / "nope.yaml", "--json")

    codes = [found["code"] for found in json.loads(result.stdout)]
    assert codes == ["duration.bad", "cli.not_found"]
    assert result.exit_code == 4


def test_more_that_is_not_there(shop):
    """A journal that does not exist, a folder without one, a workflow instead of a scenario."""
    assert pawl("journal", "show", shop / "nope").exit_code == 4
    assert pawl("journal", "verify", shop).exit_code == 0
    result = pawl("test", shop / "order.yaml")
    assert result.exit_code == 4
    assert "no document of kind: Scenario" in result.output


def test_a_file_that_cannot_be_read_is_named(shop, monkeypatch):
    """Whatever the system says about it; what is no file at all is not waited for."""

    def refuse(*_: object) -> bytes:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", refuse)
        result = pawl("check", shop / "order.yaml")
    assert result.exit_code == 4
    assert "Permission denied [cli.unreadable]" in result.output

    device = pawl("check", "/dev/zero")
    assert device.exit_code == 4
    assert "/dev/zero is not a regular file" in device.output


@pytest.mark.req("R212")
def test_a_file_beyond_the_limit_is_not_read_to_its_end(tmp_path):
    """A sparse gigabyte is refused by its first megabytes."""
    path = tmp_path / "huge.yaml"
    with path.open("wb") as file:
        file.truncate(1 << 30)

    result = pawl("check", path)

    assert result.exit_code == 3
    assert "larger than 8,388,608 bytes" in result.output


def run_as_process(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command as its own process, after some code."""
    script = f"import sys\n{code}\nfrom pawlflow.cli.main import entry\nentry()"
    return subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False
    )


def test_an_interrupt_ends_with_130(shop):
    """Wherever it comes, with a word and without a traceback."""
    interrupted = run_as_process(
        "import pawlflow.cli.test as t\n"
        "def stop(*_, **__): raise KeyboardInterrupt\n"
        "t.run_scenario = stop",
        "test",
        str(shop),
    )
    assert interrupted.returncode == 130
    assert interrupted.stderr.strip() == "interrupted"


def test_a_process_ends_as_the_verb_does(shop):
    """Help and version are fine, usage is 2 (as JSON where asked for), a failed scenario is 1."""
    assert run_as_process("", "--help").returncode == 0
    assert run_as_process("", "--version").stdout.startswith("pawl 0.")
    assert run_as_process("", "test", str(shop)).returncode == 0
    unknown = run_as_process("", "chekc")
    assert (unknown.returncode, "Did you mean" in unknown.stderr) == (2, True)
    told = run_as_process("", "chekc", "--json")
    assert json.loads(told.stdout)["error"]["code"] == "cli.usage"
    changed(shop, "state: completed", "state: failed")
    assert run_as_process("", "test", str(shop)).returncode == 1


def test_scenarios_run_on_the_store_that_is_named(shop, monkeypatch, tmp_path):
    """In memory, or on new SQLite files; the database named is left alone, PAWL_DB unread."""
    assert pawl("test", shop, "--db", "memory:").exit_code == 0
    monkeypatch.setenv("PAWL_DB", "postgresql://x")
    assert pawl("test", shop).exit_code == 0
    named = tmp_path / "x.db"
    assert pawl("--db", f"sqlite:///{named}", "test", shop, "--crash-everywhere").exit_code == 0
    assert not named.exists()
    other = pawl("test", shop, "--db", "mysql://x")
    assert (other.exit_code, "store.url" in other.output) == (2, True)


@pytest.mark.req("R94")
def test_every_code_can_be_explained():
    """One, all, as text and as JSON; an unknown one gets a suggestion."""
    one = pawl("explain", "receipt.unknown")
    assert "Way out:" in one.output
    assert len(json.loads(pawl("explain", "--json").stdout)) == len(explanations())
    assert len(pawl("explain").output.splitlines()) == len(explanations())
    assert json.loads(pawl("explain", "step.cycle", "--json").stdout)["code"] == "step.cycle"
    unknown = pawl("explain", "receipt.unknwon")
    assert unknown.exit_code == 4
    assert "did you mean receipt.unknown" in unknown.output
    assert pawl("explain", "zzz").exit_code == 4


def test_schemas_are_json():
    """For editors, of both kinds."""
    for kind in ("workflow", "scenario"):
        assert json.loads(pawl("schema", kind).stdout)["$schema"]


def test_the_version_is_known():
    """As text and as JSON."""
    assert pawl("version").output.startswith("pawl 0.")
    assert set(json.loads(pawl("version", "--json").stdout)) == {"version", "python"}


def test_an_unknown_verb_gets_a_suggestion():
    """Usage errors are exit 2."""
    result = pawl("chekc")
    assert result.exit_code == 2
    assert "Did you mean 'check'?" in result.output
    assert "There is no verb 'zzz'. Verbs are:" in pawl("zzz").output
    assert "'dev' is not in this version" in pawl("dev").output


def test_help_imports_no_verb():
    """Help lists every verb without importing one: it must answer at once."""
    code = (
        "import sys\n"
        "from pawlflow.cli.main import main\n"
        "try:\n    main(['--help'])\n"
        "except SystemExit:\n    pass\n"
        "heavy = {'yaml', 'cbor2', 'jsonschema_rs', 'rich', 'pawlflow.definition.load'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.endswith("[]\n")
    for verb in VERBS:
        assert f"  {verb}" in done.stdout
        assert pawl(verb, "--help").exit_code == 0


def test_every_verb_is_on_the_page():
    """docs/cli.md names each, and help lists each in one section."""
    page = (ROOT / "docs" / "cli.md").read_text()
    listed = [verb for verbs in SECTIONS.values() for verb in verbs]

    assert sorted(listed) == sorted(VERBS)
    assert not PLANNED & set(VERBS)
    assert [verb for verb in VERBS if f"`{verb} " not in page and f"`{verb}`" not in page] == []
