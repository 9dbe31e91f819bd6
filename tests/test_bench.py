"""The benches themselves: small runs, and whether their checks can fail."""

import asyncio
import json
from importlib import import_module

import pytest

from bench import wake
from pawlflow.embedded import Pawl


@pytest.mark.parametrize(
    ("name", "arguments", "figure"),
    [
        ("foreach", ["--items", "200"], "items_per_s"),
        ("parked", ["restart", "--instances", "50"], "first_commit_s"),
        ("pawl_steps", ["latency", "--workflows", "3"], "p50_ms"),
        ("fairness", ["run", "alone", "--seconds", "0"], "p99_ms"),
        ("pressure", ["run", "functions", "--instances", "50"], "rss_mb"),
        pytest.param("wake", ["--instances", "1000"], "wake_p50_ms", marks=pytest.mark.slow),
    ],
)
def test_a_small_run_gives_a_line_of_figures(name, arguments, figure, tmp_path, capsys):
    """What a bench says on the command line is one object that other programs read."""
    bench = import_module(f"bench.{name}")

    code = bench.main([*arguments, "--folder", str(tmp_path)])

    line = json.loads(capsys.readouterr().out)
    assert code == 0
    assert line["engine"] == "pawl"
    assert line[figure] > 0
    assert list(tmp_path.iterdir()) == []


# Waking


def line_of(p50: float, *ratios: float, calm: bool = True) -> dict[str, object]:
    """What a run of the wake bench is judged by."""
    emits = [{"cpu_ratio": ratio} for ratio in ratios]
    return {"wake_p50_ms": p50, "calm": calm, "emits": emits}


@pytest.mark.parametrize(
    ("line", "gate", "code"),
    [
        (line_of(5.0, 1.0, 1.5, 1.2), True, 0),
        (line_of(5.1, 1.0, 1.5, 1.2), True, 1),
        (line_of(5.0, 1.0, 1.6, 1.2), True, 1),
        (line_of(5.1, 1.0, 1.5, 1.2, calm=False), True, 0),
        (line_of(5.0, 1.0, 1.6, 1.2, calm=False), True, 1),
        (line_of(5.1, 1.0, 1.6, 1.2), False, 0),
    ],
)
def test_a_limit_that_is_passed_is_told_by_the_exit_code(line, gate, code):
    """With --gate; wall time on a busy machine proves nothing, CPU time does."""
    assert wake.exit_code(line, gate=gate) == code


@pytest.mark.parametrize("instances", [wake.FEW, 100_000])
def test_nobody_is_woken_twice(instances):
    """Groups, those who are signalled and the last two are different instances."""
    grouped = [
        one for m in wake.MATCHES for n in range(wake.ROUNDS + 1) for one in wake.group(m, n)
    ]
    signalled = [*wake.spread(instances), instances - 1, instances - 2]

    assert sorted(grouped) == list(range(wake.GROUPED))
    assert len({*grouped, *signalled}) == wake.GROUPED + wake.WAKES + 2 <= instances
    assert len({wake.key_of(one) for one in signalled}) == len(signalled)
    assert {wake.key_of(one) for one in wake.group(10, 3)} == {"10-3"}


def test_too_few_instances_are_refused(capsys):
    """There would be nothing left to compare with."""
    with pytest.raises(SystemExit) as stopped:
        wake.main(["--instances", "10"])
    assert stopped.value.code == 2
    assert "at least 1000" in capsys.readouterr().err


def test_a_wrong_crowd_is_no_result(tmp_path):
    """The test of the test: one too many woken, and one that was awake already."""
    asyncio.run(wake_wrongly(tmp_path))


async def wake_wrongly(folder):
    """Ten wait for one event, and nine of them are expected."""
    ten = wake.group(10, 0)
    (folder / "flows.yaml").write_text(wake.FLOWS)
    async with Pawl(f"sqlite:///{folder}/pawl.db") as pawl:
        pawl.load(folder / "flows.yaml")
        await wake.start(pawl, "parked", [*ten, wake.GROUPED])

        with pytest.raises(AssertionError):
            await wake.emit(pawl, wake.key_of(ten[0]), ten[:9])
        assert wake.count(pawl) == 10
        assert len(await wake.signal(pawl, [wake.GROUPED])) == 1
        with pytest.raises(AssertionError):
            await wake.signal(pawl, [wake.GROUPED])


def test_a_crowd_that_fails_says_so(tmp_path, capfd):
    """Its own process shows why; whoever asked is not left waiting."""
    with wake.crowd(tmp_path / "crowd.db") as end, pytest.raises(wake.CrowdGoneError):
        wake.ask(end, "signal", [1])
    assert "KeyError" in capfd.readouterr().err
