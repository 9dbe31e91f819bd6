"""What a recorded graph costs: python -m bench.graphs [STAGE ...] [--json FILE] [--gate].

A WfFormat file is read, made into documents, checked, compiled and run in virtual time on the
memory store. One promise is judged: none of it costs more per task of a large graph than 1.5 times
what it costs per task of a small one.
"""

import argparse
import json
import sys
from functools import partial
from pathlib import Path
from typing import Any, Final

from bench.timing import (
    Figure,
    Sample,
    Work,
    circumstances,
    microseconds,
    sample_apart,
    show,
    within,
    write_json,
)
from pawlflow.definition.load import load_text, load_workflows
from pawlflow.definition.plan import compile_plan
from pawlflow.importing.documents import Documents, documents
from pawlflow.importing.trace import Trace, measure
from pawlflow.importing.wfformat import read_wfformat
from pawlflow.testing.runner import Play, on_memory, plan_started, run_scenario
from pawlflow.testing.scenario import Scenario, read_scenario

SIZES: Final = (1_000, 10_000, 50_000)
GROWTH_MAX: Final = 1.5
TASKS_AT_LEAST: Final = 10_000  # per round and size: small graphs are done over and over
LANES: Final = 9
BLOCK: Final = 2 + 2 * LANES  # one fork, nine lanes of two, one join
DEPTH: Final = 5  # blocks behind each other
ARGUMENTS: Final = ["--threads", "4", "--seed", "17", "--out"]


def main(arguments: list[str]) -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(prog="bench.graphs", description=__doc__)
    parser.add_argument("stages", nargs="*", metavar="STAGE", help=f"of: {', '.join(ALL)}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    parser.add_argument("--gate", action="store_true", help="exit 1 if a limit is passed")
    options = parser.parse_args(arguments)
    print(", ".join(f"{name} {value}" for name, value in circumstances().items()))
    figures: list[Figure] = []
    unknown = [name for name in options.stages if name not in ALL]
    if unknown:
        parser.error(f"no stage {', '.join(unknown)}; there are: {', '.join(ALL)}")
    for name in options.stages or WORKS:
        found = by_size(name, ALL[name])
        show(found)
        figures += found
    if options.json:
        write_json(options.json, figures)
    failed = [figure.name for figure in figures if figure.verdict == "FAIL"]
    if failed:
        print(f"over its limit: {', '.join(failed)}; bench/README.md says how this is judged")
    return 1 if failed and options.gate else 0


def by_size(name: str, maker: Any) -> list[Figure]:
    """Microseconds per task at each size, and all but the first as a multiple of the first."""
    times = [max(1, TASKS_AT_LEAST // size) for size in SIZES]
    pairs = list(zip(SIZES, times, strict=True))
    taken = sample_apart([(partial(repeated, maker, size, n), n * size) for size, n in pairs])
    return [
        figure
        for size, each in zip(SIZES, taken, strict=True)
        for figure in told(name, size, each, taken[0])
    ]


def told(name: str, size: int, taken: Sample, smallest: Sample) -> list[Figure]:
    """The figures of one size."""
    label = f"{name}, {size:,} tasks"
    figures = [microseconds(label, taken, "µs/task")]
    if size != SIZES[0]:
        ratio = taken.best / smallest.best
        verdict = within(ratio, GROWTH_MAX)
        label = f"{label} / {SIZES[0]:,}"
        figures.append(
            Figure(name=label, value=ratio, unit="times", limit=GROWTH_MAX, verdict=verdict)
        )
    return figures


def repeated(maker: Any, size: int, times: int) -> Work:
    """The work of a stage on a graph of this size, done this often."""
    work = maker(size)

    def repeat() -> None:
        for _ in range(times):
            work()

    return repeat


# The stages, in order


def reading(size: int) -> Work:
    """From the bytes of a WfFormat file to a trace."""
    data = wfformat(size)
    assert len(read_wfformat(data, "bench.json").tasks) == size
    return partial(read_wfformat, data, "bench.json")


def importing(size: int) -> Work:
    """From a trace to the text of a workflow and a scenario."""
    trace = trace_of(size)
    return partial(imported, trace)


def checking(size: int) -> Work:
    """From the text of a workflow to its definition."""
    text = imported(trace_of(size)).workflow.encode()
    assert len(load_workflows(text, "bench.yaml")[0][0].steps) == size
    return partial(load_workflows, text, "bench.yaml")


def scenario_checking(size: int) -> Work:
    """From the text of both to a scenario that can be run."""
    made = imported(trace_of(size))
    assert len(scenario_of(made).stubs) == size
    return partial(scenario_of, made)


def compiling(size: int) -> Work:
    """From a definition to a plan."""
    return partial(compile_plan, scenario_of(imported(trace_of(size))).workflows[0])


def running(size: int) -> Work:
    """The instance itself: every task called, answered and committed, in virtual time."""
    scenario = scenario_of(imported(trace_of(size)))
    plan = plan_started(scenario)
    play = Play(scenario, plan, None, on_memory)
    play.run()
    assert play.host.state.closed == scenario.expect.elapsed_ms
    return lambda: Play(scenario, plan, None, on_memory).run()


def testing(size: int) -> Work:
    """The same as `pawl test` does it: run, told from the journal, every turn decided again."""
    scenario = scenario_of(imported(trace_of(size)))
    assert run_scenario(scenario).passed
    return partial(run_scenario, scenario)


WORKS: Final = {
    "read": reading,
    "write": importing,
    "check": checking,
    "compile": compiling,
    "run": running,
}
# For whoever asks: what `pawl check` and `pawl test` do with both files, minutes of it.
ALL: Final = {**WORKS, "check-both": scenario_checking, "test": testing}


# A graph


def wfformat(tasks: int) -> bytes:
    """A file as WfCommons writes it: chains of forks and joins behind one task, before another."""
    graph = layered(tasks)
    children: dict[str, list[str]] = {name: [] for name in graph}
    for name, parents in graph.items():
        for parent in parents:
            children[parent].append(name)
    specification = [
        {
            "name": name,
            "id": name,
            "parents": parents,
            "children": children[name],
            "inputFiles": [f"{parent}.dat" for parent in parents],
            "outputFiles": [f"{name}.dat"],
        }
        for name, parents in graph.items()
    ]
    execution = [
        {
            "id": name,
            "runtimeInSeconds": 0.25 + number * 7_919 % 60_000 / 1_000,
            "command": {"program": name.rpartition("_")[0], "arguments": [*ARGUMENTS, name]},
            "coreCount": 4,
            "memoryInBytes": 74_628_000 + number,
            "machines": ["worker-1"],
        }
        for number, name in enumerate(graph)
    ]
    files = [{"id": f"{name}.dat", "sizeInBytes": 1_024} for name in graph]
    workflow = {
        "specification": {"tasks": specification, "files": files},
        "execution": {"makespanInSeconds": 3_600.5, "executedAt": "x", "tasks": execution},
    }
    return json.dumps({"name": "bench", "schemaVersion": "1.5", "workflow": workflow}).encode()


def layered(tasks: int) -> dict[str, list[str]]:
    """Names and parents. Blocks stand DEPTH behind each other, and as many chains as are needed."""
    first, last = "begin_0", "end_0"
    graph: dict[str, list[str]] = {first: []}
    tails: list[str] = []
    number, before = 0, first
    while len(graph) + BLOCK + 1 <= tasks:
        before = first if number % DEPTH == 0 else before
        before = add_block(graph, number, before)
        number += 1
        if number % DEPTH == 0:
            tails.append(before)
    for extra in range(tasks - 1 - len(graph)):
        graph[f"extra_{extra:07d}"] = [first]
        tails.append(f"extra_{extra:07d}")
    graph[last] = [*tails, before] if before not in tails else tails
    assert len(graph) == tasks
    return graph


def add_block(graph: dict[str, list[str]], number: int, before: str) -> str:
    """A fork, lanes of two, a join; gives the join."""
    fork, join = f"fork_{number:07d}", f"join_{number:07d}"
    graph[fork] = [before]
    for lane in range(LANES):
        graph[f"left_{number:06d}{lane}"] = [fork]
        graph[f"right_{number:06d}{lane}"] = [f"left_{number:06d}{lane}"]
    graph[join] = [f"right_{number:06d}{lane}" for lane in range(LANES)]
    return join


def trace_of(size: int) -> Trace:
    """The graph as the reader has it."""
    return read_wfformat(wfformat(size), "bench.json")


def imported(trace: Trace) -> Documents:
    """The graph as files."""
    return documents(trace, measure(trace.tasks), name="bench", source="bench.json")


def scenario_of(made: Documents) -> Scenario:
    """The files as `pawl test` reads them."""
    (document,) = load_text(made.scenario, made.scenario_file)
    scenario, findings = read_scenario(document.node, load_file=lambda _: made.workflow)
    assert scenario is not None, findings
    return scenario


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
