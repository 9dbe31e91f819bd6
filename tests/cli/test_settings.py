"""`pawl.toml`: where it is found, what it says, what goes before it, and how it is refused."""

import json
import os
from pathlib import Path

import pytest
from jsonschema_rs import validator_for

from pawlflow.cli.settings import KEYS, folders, load, settings_schema
from tests.cli.kit import ROOT, pawl

ORDER = """\
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: order}
spec:
  timeout: 1h
  steps:
    - {name: charge, run: card.charge, timeout: 30s}
    - name: gate
      approval: {role: Boss, expires: 1h}
      dependsOn: [charge]
"""
STEPS = """\
from pawlflow import step


@step(name="card.charge")
async def charge():
    return {}
"""


@pytest.fixture
def project(tmp_path, monkeypatch) -> Path:
    """A repository with a workflow, its steps and a folder inside; nothing in the environment."""
    for name in [name for name in os.environ if name.startswith("PAWL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = tmp_path / "repo"
    (folder / ".git").mkdir(parents=True)
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "order.yaml").write_text(ORDER)
    (folder / "steps.py").write_text(STEPS)
    monkeypatch.chdir(folder)
    return folder


def settings(folder: Path, text: str) -> None:
    """Write the file."""
    (folder / "pawl.toml").write_text(text)


def in_effect(*words: str) -> dict[str, tuple[object, str]]:
    """What `pawl doctor` says holds: value and source of each."""
    told = json.loads(pawl("doctor", *words, "--json").stdout)["settings"]
    return {each["name"]: (each["value"], each["source"]) for each in told}


def test_flags_go_before_the_environment_and_that_before_the_file(project, monkeypatch):
    """And the file before defaults; each says where it comes from."""
    settings(project, 'tenant = "file"\nby = "fay"\n')
    assert in_effect()["tenant"] == ("file", "file")
    monkeypatch.setenv("PAWL_TENANT", "env")
    assert in_effect()["tenant"] == ("env", "environment")
    assert in_effect("--tenant", "typed")["tenant"] == ("typed", "flag")
    assert in_effect()["by"] == ("fay", "file")
    monkeypatch.setenv("PAWL_BY", "eve")
    assert in_effect()["by"] == ("eve", "environment")
    assert in_effect()["db"] == ("sqlite:///.pawl/pawl.db", "default")
    assert in_effect()["limits.steps"] == (50_000, "default")
    assert set(in_effect()) == set(KEYS)


def test_doctor_names_file_and_line(project):
    """So that nobody has to look for what holds."""
    settings(project, '# mine\n\ntenant = "acme"\n')
    plain = pawl("doctor").stdout
    assert f"tenant        acme  (file {project / 'pawl.toml'}:3)" in plain
    assert "db            sqlite:///.pawl/pawl.db  (default)" in plain


def test_a_verb_does_what_the_file_says(project):
    """Store, worker, who acts and in which role, from a folder inside."""
    settings(
        project,
        'db = "sqlite:///data/shop.db"\nworker = "steps.py"\nby = "zoe"\nrole = "Boss"\n',
    )
    os.chdir(project / "deep" / "er")

    started = pawl("start", "../../order.yaml", "--id", "o-1")
    waited = pawl("wait", "o-1", "--timeout", "300ms", "--json")
    approved = pawl("review", "approve", "o-1/gate")
    shown = json.loads(pawl("show", "o-1", "--json").stdout)

    assert started.exit_code == 0
    assert waited.exit_code == 75  # the worker of the file did the first step
    assert approved.exit_code == 0, approved.output
    assert shown["state"] == "completed"
    assert shown["steps"]["gate"]["result"]["by"] == "zoe"
    assert (project / "data" / "shop.db").exists()
    assert not (project / "deep" / "er" / ".pawl").exists()


def test_a_role_filters_no_list_and_is_nobodys_new_role(project):
    """It is what reviews are decided in: `review ls` shows all, `reassign` still asks."""
    settings(project, 'worker = "steps.py"\nrole = "Clerk"\n')
    assert pawl("run", "order.yaml", "--id", "o-1", "--timeout", "300ms").exit_code == 75

    assert [each["role"] for each in json.loads(pawl("review", "ls", "--json").stdout)] == ["Boss"]
    refused = pawl("review", "approve", "o-1", "--json")
    assert json.loads(refused.stdout)["error"]["code"] == "approval.wrong_role"
    assert pawl("reassign", "o-1", "gate").exit_code == 2
    assert pawl("cancel", "--state", "waiting", "--yes").exit_code == 0


def test_json_can_be_switched_off_again(project, monkeypatch):
    """A flag for each way; the environment goes between."""
    settings(project, "json = true\n")
    assert pawl("version").stdout.startswith("{")
    assert pawl("version", "--no-json").stdout.startswith("pawl ")
    monkeypatch.setenv("PAWL_JSON", "false")
    assert pawl("version").stdout.startswith("pawl ")
    assert pawl("--json", "version").stdout.startswith("{")


def test_limits_hold_for_files(project):
    """Smaller ones refuse, larger ones accept what is refused by default."""
    settings(project, "[limits]\nsteps = 1\n")
    few = pawl("check", "order.yaml")
    assert (few.exit_code, "at most 1" in few.output) == (3, True), few.output
    settings(project, "limits = {bytes = 100}\n")
    assert "larger than 100 bytes" in pawl("check", "order.yaml").output
    big = project / "big.yaml"
    big.write_text(ORDER + "# " + "x" * (8 << 20) + "\n")
    settings(project, "limits.bytes = 20_000_000\n")
    assert pawl("check", big).exit_code == 0
    settings(project, "")
    assert pawl("check", big).exit_code == 3


def test_a_scenario_reads_its_workflow_within_the_limits(project):
    """The file beside it, too."""
    (project / "s.yaml").write_text(
        "apiVersion: pawl.dev/v1\nkind: Scenario\nmetadata: {name: s}\n"
        "spec: {workflow: ./order.yaml, expect: {steps: {charge: succeeded}}}\n"
    )
    assert pawl("test", "s.yaml").exit_code == 0
    settings(project, "limits.steps = 1\n")
    assert pawl("test", "s.yaml").exit_code == 3


@pytest.mark.parametrize(
    ("text", "place", "code", "message", "hint"),
    [
        ('tennant = "a"', "1:1", "settings.unknown", "'tennant'", "did you mean 'tenant'?"),
        ("\n  zzz = 1", "2:3", "settings.unknown", "'zzz'", "settings are: db, url"),
        ("json = 1", "1:8", "settings.value", "json cannot be 1", "true or false"),
        ('json = "yes"', "1:8", "settings.value", "cannot be 'yes'", "true or false"),
        ("tenant = ['a']", "1:10", "settings.value", "a list", "1 to 128"),
        ("tenant = ''", "1:10", "settings.value", "''", "1 to 128"),
        ("[db]\nx = 1", "1:2", "settings.value", "a table", "sqlite:///"),
        ('db = "shop.db"', "1:6", "settings.value", "'shop.db'", "sqlite:///"),
        ('url = "shop"', "1:7", "settings.value", "'shop'", "https://"),
        ('role = "7"', "1:8", "settings.value", "'7'", "a letter"),
        ('log = "loud"', "1:7", "settings.value", "'loud'", "debug, info"),
        ('log = "debug,info"', "1:7", "settings.value", "debug,info", "json"),
        ("[limits]\nbytes = 0", "2:9", "settings.value", "limits.bytes cannot be 0", "67,108,864"),
        ("[limits]\nbytes = true", "2:9", "settings.value", "be true", "bytes from 1"),
        ("limits.steps = 1.5", "1:16", "settings.value", "be 1.5", "steps from 1"),
        ("[limits]\nsize = 1", "2:1", "settings.unknown", "'size' under [limits]", "bytes, steps"),
        ("limits = {byts = 1}", "1:11", "settings.unknown", "'byts'", "did you mean 'bytes'?"),
        ("limits = 3", "1:1", "settings.unknown", "'limits'", ""),
        ("bytes = 3", "1:1", "settings.unknown", "'bytes'", "did you mean 'limits.bytes'?"),
        ("[sim]\nseeds = 3", "1:2", "settings.unknown", "'sim'", "settings are"),
        ("a b", "1:3", "settings.toml", "this is no TOML", "NAME = VALUE"),
        ('tenant = "a', "1:12", "settings.toml", "this is no TOML", "NAME = VALUE"),
        ('tenant = "a"\ntenant = "b"', "2:13", "settings.toml", "overwrite", "NAME = VALUE"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(project, text, place, code, message, hint):
    """File, line and column, and the way out; exit 2, for machines too."""
    settings(project, text)

    plain, told = pawl("ls"), pawl("ls", "--json")

    assert (plain.exit_code, told.exit_code) == (2, 2)
    assert f"pawl.toml:{place}: error: " in plain.output
    error = json.loads(told.stdout)["error"]
    assert error["code"] == code
    [found] = error["findings"]
    assert f"{found['line']}:{found['column']}" == place
    assert message in found["message"]
    assert hint in found["hint"]


def test_every_mistake_is_told_at_once(project):
    """In the order of the file."""
    settings(project, 'json = 1\nnope = 2\n[limits]\nsteps = "x"\n')
    findings = json.loads(pawl("ls", "--json").stdout)["error"]["findings"]
    assert [each["line"] for each in findings] == [1, 2, 4]


def test_a_broken_file_keeps_nobody_from_finding_out(project):
    """Help, explanations, versions, schemas and new projects are given anyway."""
    settings(project, "nope = 1")
    for words in (["explain", "settings.unknown"], ["version"], ["schema", "settings"], ["new"]):
        assert pawl(*words).exit_code == 0, words
    assert pawl("ls", "--help").exit_code == 0
    assert pawl("--help").exit_code == 0


def test_files_that_cannot_be_read(project, monkeypatch):
    """Not UTF-8, too large, a folder: each with its place; PAWL_SETTINGS names another, or none."""
    (project / "pawl.toml").write_bytes(b'by = "a"\ntenant = "\xff"\n')
    assert "pawl.toml:2:1" in pawl("ls").output
    (project / "pawl.toml").write_bytes(b"#" * (1 << 20) + b"\n")
    assert "settings.unreadable" in pawl("ls").output
    monkeypatch.setenv("PAWL_SETTINGS", str(project / "deep"))
    assert "settings.unreadable" in pawl("ls").output
    (project / "other.toml").write_text('tenant = "other"\n')
    monkeypatch.setenv("PAWL_SETTINGS", "other.toml")
    assert in_effect()["tenant"] == ("other", "file")
    monkeypatch.setenv("PAWL_SETTINGS", "")
    assert in_effect()["tenant"] == ("default", "default")


def test_where_it_is_looked_for(project):
    """Here, then above: as far as the repository reaches, or the home folder; not beyond."""
    above = project.parent
    settings(above, 'tenant = "above"\n')
    os.chdir(project / "deep")
    assert load().values == {}
    settings(project, 'tenant = "repo"\n')
    assert load().values == {"tenant": "repo"}
    settings(project / "deep", 'tenant = "near"\n')
    assert load().values == {"tenant": "near"}

    home = Path(os.environ["HOME"])
    (home / "a" / "b").mkdir(parents=True)
    settings(home, 'tenant = "home"\n')
    os.chdir(home / "a" / "b")
    assert load().values == {"tenant": "home"}
    outside = above / "x" / "y"
    outside.mkdir(parents=True)
    assert list(folders(outside)) == [outside]
    os.chdir(outside)
    assert load().values == {}


def test_a_folder_above_that_is_somebody_elses_is_passed_over(project, monkeypatch):
    """Its file could name a module to import."""
    if os.getuid() == 0:
        os.chown(project, 4711, -1)
    else:
        monkeypatch.setattr(os, "getuid", lambda: 4711)
    settings(project, 'worker = "evil.py"\n')
    os.chdir(project / "deep")
    assert load().values == {}
    os.chdir(project)
    assert load().values == {"worker": "evil.py"}


def test_a_folder_that_is_gone_has_no_settings(project):
    """Somebody removed the current folder."""
    gone = project / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    try:
        assert load().values == {}
    finally:
        os.chdir(project)


def test_the_schema_says_what_the_reader_accepts(project):
    """Editors refuse what `pawl` refuses."""
    schema = json.loads(pawl("schema", "settings").stdout)
    assert schema == settings_schema()
    validator = validator_for(schema)
    good = {"db": "sqlite:///x.db", "json": True, "limits": {"bytes": 9}, "role": "Boss"}
    assert validator.is_valid(good)
    for bad in ({"x": 1}, {"json": 1}, {"limits": {"bytes": 0}}, {"role": "7"}, {"tenant": ""}):
        assert not validator.is_valid(bad), bad


def test_the_page_has_every_setting():
    """docs/settings.md: each key and each variable."""
    page = (ROOT / "docs" / "settings.md").read_text()
    for name, key in KEYS.items():
        assert f"`{name.removeprefix('limits.')}`" in page, name
        assert key.environment in page
