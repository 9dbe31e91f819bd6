"""The benches themselves: small runs, and whether their checks can fail."""

import asyncio
import json
from importlib import import_module

import pytest

from bench import judge, parked, services, wake
from bench import postgres as postgres_bench
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


@pytest.mark.slow
def test_services_are_measured_alone_and_in_batches(tmp_path, monkeypatch, capsys):
    """A server, an engine and a worker: every command is checked to be done, once."""
    monkeypatch.setattr(judge, "OUT", tmp_path / "out")
    few = ["--workflows", "30", "--in-flight", "10", "--rounds", "1", "--bare", "100"]
    assert services.main([*few, "--db", "sqlite", "--folder", str(tmp_path)]) == 0
    lines = judge.read_lines(capsys.readouterr().out)
    assert [line.get("mode") for line in lines] == [None, "plain", "batched"]
    assert all(line.get("steps_per_s", line.get("messages_per_s")) > 0 for line in lines)
    assert [each.name for each in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(
    ("measured", "calm", "gate", "code"),
    [(5_000, True, True, 0), (4_999, True, True, 1), (4_999, False, True, 0), (1, True, False, 0)],
)
def test_steps_over_a_busy_machine_prove_nothing(measured, calm, gate, code):
    """With --gate, and on a calm machine alone, too few steps a second are a failure."""
    gates = [services.gate_of("sqlite, batched", measured, services.LIMITS["batched"])]
    assert services.exit_code(gates, calm=calm, gate=gate) == code


@pytest.mark.parametrize(
    ("name", "arguments", "figure"),
    [
        ("pawl_steps", ["throughput", "--workflows", "6", "--in-flight", "3"], "steps_per_s"),
        ("parked", ["restart", "--instances", "20", "--kind", "wait"], "first_commit_s"),
        ("parked", ["idle", "--seconds", "0.1"], "seconds"),
    ],
)
def test_a_bench_runs_on_a_server_too(name, arguments, figure, postgres, capsys):
    """The same line of figures; the schema is one where nothing has run yet."""
    bench = import_module(f"bench.{name}")

    code = bench.main([*arguments, "--db", postgres.fresh()])

    line = json.loads(capsys.readouterr().out)
    assert code == 0
    assert line["engine"] == "pawl"
    assert line[figure] > 0


# Judging


@pytest.mark.parametrize(
    ("measured", "calm", "verdict", "missed"),
    [
        (8_000, True, "pass", []),
        (8_000, False, "pass", []),
        (7_999, True, "FAIL", ["speed"]),
        (7_999, False, "void", []),
    ],
)
def test_a_wall_on_a_busy_machine_is_void_unless_it_is_good(measured, calm, verdict, missed):
    """It neither passes nor fails."""
    gate = judge.at_least("speed", measured, 8_000, "steps/s", calm=calm)

    assert gate.verdict == verdict
    assert judge.failed([gate]) == missed


@pytest.mark.req("R213")
def test_statements_at_rest_are_counted_by_the_servers_log():
    """Those of the engine, between the last two marks, however they were sent."""
    log = f"""\
pawl|LOG:  statement: BEGIN
|LOG:  statement: SELECT '{parked.REST[0]}'
pawl|LOG:  execute <unnamed>: SELECT 1
pawl|DETAIL:  parameters: $1 = 'x'
|LOG:  statement: SELECT 2
pawl|LOG:  statement: COMMIT
|LOG:  statement: SELECT '{parked.REST[1]}'
pawl|LOG:  statement: SELECT 3
"""
    assert postgres_bench.asked_at_rest(log) == ["SELECT 1", "COMMIT"]


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
