"""`pawl import wfformat`: what it writes and prints, and all the ways it does not."""

import json
import shutil
from pathlib import Path

import pytest

from pawlflow.cli import importing
from pawlflow.importing import documents
from tests.cli.kit import ROOT, pawl
from tests.importing.kit import DATA, divided
from tests.test_examples_python import consoles, run

SKY = ROOT / "examples" / "graphs" / "sky-survey.json"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the example; it is the current one."""
    shutil.copy(SKY, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.req("R221")
@pytest.mark.parametrize("file", [SKY, *sorted(DATA.glob("*.json"))], ids=lambda file: file.stem)
def test_a_recording_is_imported_checked_and_run(file, folder):
    """Every version of the format: both files are valid, and the run takes its critical path."""
    made = json.loads(pawl("import", "wfformat", file, "-o", "out", "--json").stdout)
    checked = pawl("check", "out", "--json")
    tested = json.loads(pawl("test", "out", "--json").stdout)

    assert checked.exit_code == 0
    assert {found["code"] for found in json.loads(checked.stdout)} <= {"lint.steps"}
    (scenario,) = tested["scenarios"]
    assert scenario["passed"]
    assert scenario["actual"]["state"] == "completed"
    assert scenario["actual"]["elapsed_ms"] == made["critical_path_ms"]
    assert set(scenario["actual"]["steps"].values()) == {"succeeded"}
    assert len(scenario["actual"]["steps"]) == made["tasks"]


def test_the_page_shows_what_is_printed(folder):
    """docs/graphs.md, command by command."""
    blocks = consoles((ROOT / "docs" / "graphs.md").read_text())

    assert len(blocks) == 2
    for command, printed in blocks:
        assert run(command, folder) == printed


@pytest.mark.req("R221")
def test_an_imported_run_survives_a_crash_at_every_commit(folder):
    """The scenario is one like any other."""
    pawl("import", "wfformat", "sky-survey.json")

    result = pawl("test", "sky-survey.scenario.yaml", "--crash-everywhere")

    assert result.exit_code == 0, result.output
    assert "24 crash points" in result.output


def test_what_was_made_as_json(folder):
    """Everything that is printed, and the names of the critical path in full."""
    made = json.loads(pawl("--json", "import", "wfformat", "sky-survey.json").stdout)

    assert made == {
        "workflow": "sky-survey",
        "source": "sky-survey.json",
        "source_workflow": "sky-survey",
        "schema_version": "1.5",
        "files": {"workflow": "sky-survey.yaml", "scenario": "sky-survey.scenario.yaml"},
        "tasks": 11,
        "edges": 12,
        "levels": 6,
        "widest": 3,
        "critical_path_ms": 543_825,
        "critical_path": ["plan_1", "fetch_2", "clean_5", "align_8", "stack_9", "find-stars_10"],
        "runtimes_ms": 910_025,
        "parallelism": 1.673,
        "makespan_ms": 702_400,
        "notes": [],
    }


def test_what_was_passed_over_is_noted(folder):
    """On standard error, beside what was made; a recording without times runs in none."""
    Path("plain.json").write_bytes(divided({"id": "a"}, {"id": "b", "parents": ["a"]}))

    result = pawl("import", "wfformat", "plain.json")

    assert (result.exit_code, "recorded" in result.stdout) == (0, False)
    assert "note: 2 of 2 tasks have no runtime; they answer at once" in result.stderr
    assert "critical path  0s: a -> b\n" in result.stdout
    assert pawl("test", "plain.scenario.yaml").exit_code == 0


def test_nothing_is_replaced_by_accident(folder):
    """Either file in the way stops it, before anything is read; --force and --name go on."""
    Path("sky-survey.scenario.yaml").write_text("mine\n")

    refused = pawl("import", "wfformat", "sky-survey.json")
    untouched = Path("sky-survey.scenario.yaml").read_text()
    renamed = pawl("import", "wfformat", "sky-survey.json", "--name", "other")
    forced = pawl("import", "wfformat", "sky-survey.json", "--force")

    assert refused.exit_code == 5
    assert "sky-survey.scenario.yaml would be replaced: give --name" in refused.stderr
    assert untouched == "mine\n"
    assert (renamed.exit_code, forced.exit_code) == (0, 0)
    assert Path("other.yaml").read_text().split("\n")[3] == "  name: other"
    assert "kind: Scenario" in Path("sky-survey.scenario.yaml").read_text()


def test_the_same_recording_gives_the_same_bytes(folder):
    """Import is a function of the file and the name."""
    pawl("import", "wfformat", "sky-survey.json", "-o", "one")
    pawl("import", "wfformat", "sky-survey.json", "-o", "two")

    files = sorted(path.name for path in Path("one").iterdir())
    assert files == ["sky-survey.scenario.yaml", "sky-survey.yaml"]
    for name in files:
        assert Path("one", name).read_bytes() == Path("two", name).read_bytes()


@pytest.mark.parametrize(
    ("arguments", "exit_code", "words"),
    [
        (["nope.json"], 4, "no such file: nope.json [cli.not_found]"),
        (["."], 4, "is not a regular file [cli.unreadable]"),
        (["sky-survey.json", "--name", "Sky Survey"], 2, "did you mean 'sky-survey'? [cli.usage]"),
        (["sky-survey.json", "-o", "sky-survey.json/x"], 4, "cannot write to sky-survey.json/x"),
        (["bad.json"], 3, "[wfformat.unknown]"),
    ],
    ids=["missing", "folder", "name", "unwritable", "bad"],
)
def test_what_cannot_be_ends_clearly_and_writes_nothing(folder, arguments, exit_code, words):
    """The exit code, the thing, the way out; the folder as it was."""
    Path("bad.json").write_bytes(divided({"id": "a", "parents": ["b"]}))
    before = sorted(folder.rglob("*"))

    result = pawl("import", "wfformat", *arguments)
    told = json.loads(pawl("import", "wfformat", *arguments, "--json").stdout)

    assert result.exit_code == exit_code
    assert words in result.stderr
    assert told["error"]["code"] in result.stderr
    assert sorted(folder.rglob("*")) == before


@pytest.mark.req("R64")
def test_a_bad_recording_is_shown_like_a_bad_definition(folder):
    """File, line and column, the line itself with a caret, and a hint; as JSON with findings."""
    bad = SKY.read_text().replace('"parents": ["stack_9"]', '"parents": ["stakc_9"]')
    Path("bad.json").write_text(bad)

    shown = pawl("import", "wfformat", "bad.json").stderr.splitlines()
    told = json.loads(pawl("import", "wfformat", "bad.json", "--json").stdout)["error"]

    line = bad.split("\n").index(next(each for each in bad.split("\n") if "stakc_9" in each)) + 1
    (found,) = told["findings"]
    assert (found["line"], told["code"]) == (line, "wfformat.unknown")
    assert shown[0].startswith(f"bad.json:{line}:{found['column']}: error: $.workflow.")
    assert shown[1][shown[2].index("^") :].startswith('"stakc_9"')
    assert shown[3] == "  hint: did you mean 'stack_9'?"
    assert shown[4] == "nothing was written"


def test_what_is_too_large_names_the_limit(folder, monkeypatch):
    """Of the recording, and of the definition that would come of it; no setting raises it."""
    assert documents.STEPS_MAX == 50_000
    # A file of so many tasks takes seconds on a busy machine; the rule is the same for fewer.
    monkeypatch.setattr(documents, "STEPS_MAX", 500)
    Path("many.json").write_bytes(divided(*({"id": f"t{i}"} for i in range(501))))

    many = pawl("import", "wfformat", "many.json")
    monkeypatch.setattr(importing, "TRACE_BYTES_MAX", 1_000)
    large = pawl("import", "wfformat", "sky-survey.json")

    assert (many.exit_code, large.exit_code) == (3, 3)
    assert "501 tasks; a file may hold at most 500 steps, and no setting" in many.stderr
    assert "larger than 1,000 bytes" in large.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["many.json", "sky-survey.json"]


def test_a_full_disk_leaves_no_half(folder, monkeypatch):
    """Both files are written beside, then put in place; what was there before stays."""
    written = []

    def full(self: Path, data: bytes) -> int:
        written.append(self.name)
        if len(written) == 2:
            raise OSError(28, "No space left on device")
        with self.open("wb") as file:
            return file.write(data)

    monkeypatch.setattr(Path, "write_bytes", full)
    result = pawl("import", "wfformat", "sky-survey.json")

    assert (result.exit_code, len(written)) == (4, 2)
    assert "No space left on device [cli.unwritable]" in result.stderr
    assert [path.name for path in folder.iterdir()] == ["sky-survey.json"]


def test_whoever_watches_sees_it_go_on(folder, monkeypatch):
    """Five stages on a terminal, none elsewhere."""
    seen = []
    stage = importing.stages(lambda done, total: seen.append((done, total)))

    for _ in range(importing.STAGES):
        stage()

    assert seen == [(1, 5), (2, 5), (3, 5), (4, 5), (5, 5)]
    importing.stages(None)()


def test_the_formats_are_listed():
    """Without a format there is nothing to do; the help says which there are."""
    assert "wfformat" in pawl("import", "--help").stdout
    assert pawl("import", "nope", "x.json").exit_code == 2
