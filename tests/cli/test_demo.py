"""`pawl demo`, and what a terminal sees: real processes, real kills, a real screen."""

import json
import os
import pty
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pawlflow.cli import demo
from tests.cli.live_kit import PAWL, until

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A folder with a short name: the demo makes its own in it."""
    with tempfile.TemporaryDirectory(prefix="t", dir="/tmp") as folder:
        yield Path(folder)


def run_in(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The command in a folder, with a place of its own for temporary files."""
    env = {**os.environ, "TMPDIR": str(folder)}
    env.pop("PAWL_DB", None)
    return subprocess.run(
        [*PAWL, *words], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


def on_terminal(folder: Path, *words: str, columns: int = 90) -> tuple[int, str]:
    """The command on a terminal of some columns: how it ended, and every byte that was drawn."""
    primary, secondary = pty.openpty()
    env = {**os.environ, "TMPDIR": str(folder), "TERM": "xterm-256color", "COLUMNS": str(columns)}
    process = subprocess.Popen(
        [*PAWL, *words], cwd=folder, env=env, stdin=secondary, stdout=secondary, stderr=secondary
    )
    os.close(secondary)
    drawn = b""
    while True:
        try:
            data = os.read(primary, 65536)
        except OSError:  # the other end is closed
            break
        if not data:
            break
        drawn += data
    os.close(primary)
    return process.wait(40), drawn.decode()


@pytest.mark.req("R228")
def test_the_demo_is_whole_and_leaves_nothing(scratch):
    """Undo, a decision from a second process, two kills and the proof; then the folder is gone."""
    done = run_in(scratch, "demo", "--json")

    assert done.returncode == 0, done.stdout + done.stderr
    saga, gate, crash, proof = json.loads(done.stdout)["chapters"]
    assert all(each["held"] for each in (saga, gate, crash, proof))
    assert saga["figures"]["attempts"] == 2
    assert "approved by ann" in gate["shown"]
    assert crash["figures"]["effects"] == 100
    assert crash["figures"]["calls"] > 100  # some were in flight when their process was killed
    assert proof["figures"]["instances"] == 27
    assert sum(each["seconds"] for each in (saga, gate, crash, proof)) < 30
    assert list(scratch.iterdir()) == []


DEADLINE_S = 120.0  # for what takes three seconds where nothing else runs
TRIES = 5
SAGA, GATE, KILLS = "Reserve the goods", "Zoe asks for a release", "killed process"


@pytest.mark.parametrize(
    ("number", "line", "code", "said"),
    [
        (signal.SIGINT, KILLS, 130, "interrupted"),
        (signal.SIGTERM, KILLS, 143, ""),
        (signal.SIGTERM, SAGA, 143, ""),
        (signal.SIGTERM, GATE, 143, ""),
    ],
)
@pytest.mark.timeout(2 * DEADLINE_S)
def test_a_demo_that_is_cut_short_leaves_nothing(scratch, number, line, code, said):
    """By Ctrl-C or by SIGTERM, in any chapter: no process, no folder, and the code of a shell."""
    caught = caught_at(scratch, line)

    caught.send_signal(number)
    caught.send_signal(signal.SIGCONT)
    _, err = caught.communicate(timeout=DEADLINE_S)

    assert (caught.returncode, err.decode().strip()) == (code, said)
    assert list(scratch.iterdir()) == []


def caught_at(scratch: Path, line: str) -> "subprocess.Popen[bytes]":
    """A demo that stands still after it said this; if it was over by then, another one."""
    env = {**os.environ, "TMPDIR": str(scratch)}
    for _ in range(TRIES):
        pipe = subprocess.PIPE
        process = subprocess.Popen([*PAWL, "demo"], env=env, stdout=pipe, stderr=pipe)
        assert process.stdout is not None
        out, said = process.stdout.fileno(), b""
        while f"\n{line}" not in f"\n{said.decode(errors='ignore')}":
            more = os.read(out, 65536)
            assert more, said.decode()
            said += more
        process.send_signal(signal.SIGSTOP)
        os.set_blocking(out, False)
        with suppress(BlockingIOError):
            said += os.read(out, 65536)
        os.set_blocking(out, True)
        if b"What to try next" not in said and process.poll() is None:
            return process
        process.send_signal(signal.SIGCONT)
        process.communicate(timeout=DEADLINE_S)
    raise AssertionError(f"the demo was never caught at {line!r}")


def test_the_demo_tells_its_story_in_plain_lines(scratch):
    """Without a terminal: one line for each thing; what it says to try next works as it stands."""
    done = run_in(scratch, "demo", "--keep")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "\x1b" not in done.stdout
    assert "failed, rollback full" in done.stdout
    assert "100 effects happened, for 100 steps" in done.stdout
    assert "the same bytes" in done.stdout
    [folder] = scratch.iterdir()
    told = done.stdout.partition("What to try next:")[2]
    commands = [line.strip() for line in told.splitlines() if line.startswith("  pawl ")]
    assert len(commands) == 5
    shell = PAWL_SHELL.format(" ".join(f"'{word}'" for word in PAWL))
    for line in commands:
        command = re.split(r"\s{3,}", line)[0]
        tried = subprocess.run(
            ["sh", "-euc", shell + command], cwd=folder, capture_output=True, text=True, check=False
        )
        assert tried.returncode == 0, command + tried.stderr


def test_what_to_try_next_is_found_where_the_shell_would_not_find_it(tmp_path, monkeypatch):
    """By its path, unless its name is enough; whatever there is of blanks in the path."""
    program = tmp_path / "a b" / "pawl"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr("sys.argv", [str(program), "demo"])
    monkeypatch.setenv("PATH", "/usr/bin:/bin")

    by_path = list(demo.commands_for(None))
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    by_name = list(demo.commands_for(None))

    assert by_path == [each.replace("pawl", f"'{program}'", 1) for each in by_name]
    assert by_name[-1] == "pawl --help"


PAWL_SHELL = 'pawl() {{ {} "$@"; }}; '


def test_the_demo_draws_on_a_terminal(scratch):
    """A live tree, a bar that fills, a table; lines are drawn over, not below one another."""
    code, drawn = on_terminal(scratch, "demo")

    assert code == 0
    assert "\x1b[1A" in drawn
    assert "100/100" in drawn
    assert "CHAPTER" in drawn
    assert list(scratch.iterdir()) == []


def test_a_run_is_drawn_live(place):
    """The tree while it runs, and the output below it; a bar for a long replay."""
    run = ("run", "order.yaml", "--worker", "shop_steps.py", "--id", "o-1", "--input")
    db = ("--db", f"sqlite:///{place.db}")

    code, drawn = on_terminal(place.folder, *run, '{"amount": 1}', *db)
    again, more = on_terminal(place.folder, *run, '{"amount": 1}', *db)
    watched = on_terminal(place.folder, "watch", "o-1", *db)
    replayed = on_terminal(place.folder, "replay", "--all", *db)

    assert (code, again) == (0, 0)
    assert "order v1" in drawn
    assert drawn.rstrip().endswith("}")
    assert "note: o-1 was started before" in more
    assert (watched[0], "completed" in watched[1]) == (0, True)
    assert (replayed[0], "SAME" in replayed[1]) == (0, True)


@pytest.mark.parametrize("verb", ["history", "trace"])
def test_lines_end_where_the_terminal_does(place, verb):
    """On 80 columns none is longer; a pipe gets all of it."""
    given = json.dumps({"amount": 1, "note": "to be left with the neighbours " * 4})
    db = ("--db", f"sqlite:///{place.db}")
    place.pawl("run", "order.yaml", "--worker", "shop_steps.py", "--id", "o-1", "--input", given)

    code, drawn = on_terminal(place.folder, verb, "o-1", *db, columns=80)
    narrow, more = on_terminal(place.folder, verb, "o-1", *db, columns=40)

    lines = [line.rstrip() for line in PLAIN.sub("", drawn).splitlines()]
    piped = place.pawl(verb, "o-1").stdout.splitlines()
    assert (code, narrow) == (0, 0)
    assert max(map(len, lines)) <= 80
    assert max(len(line.rstrip()) for line in PLAIN.sub("", more).splitlines()[:-1]) <= 40
    for line, whole in zip(lines, piped, strict=False):
        assert line == whole if len(whole) <= 80 else (line[:-1], line[-1]) == (whole[:79], "…")
    assert verb == "trace" or any(len(whole) > 80 for whole in piped)


PLAIN = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def test_an_owner_is_named_above_the_picture(place):
    """Who follows on a terminal is told who drives."""
    with place.owner("run", "release.yaml", "--id", "r-1", "--stubs", "stubs.yaml"):
        until(lambda: place.waits_at("r-1", "gate"))
        db = ("--db", f"sqlite:///{place.db}", "--timeout", "300ms")
        code, drawn = on_terminal(place.folder, "wait", "r-1", *db)

    assert code == 75
    assert "drives" in drawn
    assert "still open" in drawn


def test_the_example_has_its_steps():
    """`pawl run order.yaml --worker order_steps.py` as the example says; stubs by its scenario."""
    run = ("run", "order.yaml", "--db", "memory:", "--input", '{"sku": "mug", "amount": 12}')

    done = run_in(ROOT / "examples", *run, "--worker", "order_steps.py")
    stubbed = run_in(ROOT / "examples", *run, "--stubs", "order.scenario.yaml")

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["charge"].startswith("c-")
    assert stubbed.returncode == 1
    assert "failed, rollback full" in stubbed.stderr
