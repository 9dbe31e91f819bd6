"""WfFormat files of every layout, and everything that can be wrong with one."""

import json

import pytest

from pawlflow.importing.names import effect_name, step_names
from pawlflow.importing.trace import measure
from tests.importing.kit import DATA, divided, flat, read, refused

A = {"id": "a", "name": "a"}

LAYOUTS = [
    (
        "jobs-1.0.json",
        ["split_id0000001", "left_id0000002", "right_id0000003", "join_id0000004"],
        ["split", "left", "right", "join"],
    ),
    (
        "tasks-1.3.json",
        ["split_id0000001", "left_id0000002", "right_id0000003", "join_id0000004"],
        ["split", "left", "right", "join"],
    ),
    ("tasks-1.4.json", ["split", "work_2", "work_3", "join"], ["split", "work", "work", "join"]),
    (
        "split-1.5.json",
        ["lab-split", "lab-work_2", "lab-work_3", "lab-join"],
        ["lab.SPLIT", "bash", "bash", "join"],
    ),
    ("split-1.6.json", ["split", "left", "right", "join"], ["split", "left", "right", "join"]),
]


@pytest.mark.req("R221")
@pytest.mark.parametrize(("file", "steps", "effects"), LAYOUTS, ids=lambda each: str(each)[:14])
def test_every_layout_tells_the_same_graph(file, steps, effects):
    """One diamond in five versions of the format: the same edges, runtimes and critical path."""
    trace = read((DATA / file).read_bytes())

    assert [task.parents for task in trace.tasks] == [(), (0,), (0,), (1, 2)]
    assert [task.runtime_ms for task in trace.tasks] == [1_500, 2_250, 750, 1_000]
    assert (measure(trace.tasks).critical_ms, trace.makespan_ms) == (4_750, 6_500)
    assert step_names(trace.tasks) == steps
    assert [effect_name(task) for task in trace.tasks] == effects
    assert trace.version == file.removesuffix(".json").partition("-")[2]
    assert trace.name.startswith("diamond-")
    assert trace.notes == ()


def test_parents_and_children_are_one_graph():
    """An edge is an edge, whichever side tells of it, and how often; one-sided ones are noted."""
    both = read(
        divided(
            {"id": "a", "children": ["b", "b"]},
            {"id": "b", "parents": ["a", "a"]},
            {"id": "c", "parents": ["b"]},
            {"id": "d", "children": []},
            {"id": "e", "children": ["c"]},
        )
    )
    alone = read(divided({"id": "a", "children": ["b"]}, {"id": "b"}))

    assert [task.parents for task in both.tasks] == [(), (0,), (1, 4), (), ()]
    assert "2 edges stand in `parents` or `children` alone; all are kept" in both.notes
    assert alone.tasks[1].parents == (0,)
    assert not any("alone" in words for words in alone.notes)


def test_references_are_ids_since_1_5_and_names_before():
    """Where a word is one task's id and another's name, the layout decides."""
    tasks = [{"id": "x", "name": "y"}, {"id": "y", "name": "x"}, {"id": "z", "parents": ["x"]}]

    assert read(divided(*tasks)).tasks[2].parents == (0,)
    assert read(flat(*tasks)).tasks[2].parents == (1,)


def test_names_may_be_shared_as_long_as_nobody_is_meant_by_one():
    """Ids tell the tasks apart; without them a shared name is only refused as a parent."""
    by_id = read(flat({"id": 1, "name": "x"}, {"id": 2, "name": "x"}, {"id": 3, "parents": [2]}))
    unnamed = read(flat({"name": "x"}, {"name": "x"}, under="jobs"))

    assert by_id.tasks[2].parents == (1,)
    assert step_names(by_id.tasks) == ["x_1", "x_2", "task-3"]
    assert step_names(unnamed.tasks) == ["x", "x-2"]


@pytest.mark.parametrize(
    ("seconds", "ms"),
    [(0, 0), (0.0004, 0), (0.0005, 1), (0.051992, 52), (12, 12_000), (1e9, 10**12), (None, None)],
)
def test_runtimes_are_rounded_to_milliseconds(seconds, ms):
    """Half a millisecond counts as one; what nobody wrote down stays unknown."""
    trace = read(divided(A, ran=[{"id": "a", "runtimeInSeconds": seconds}]))

    assert trace.tasks[0].runtime_ms == ms


def test_what_is_missing_is_noted():
    """No runtime, a record without a task, a version that nobody has seen: all of it runs."""
    trace = read(
        divided(
            A,
            {"id": "b", "name": "b", "runtime": 2, "parents": None},
            {"id": "c", "name": "c"},
            ran=[{"id": "c", "runtimeInSeconds": 3}, {"id": "zz"}, {"name": "a"}],
            schemaVersion="7.1",
        )
    )
    unversioned = read(json.dumps({"workflow": {"tasks": [A], "execution": None}}).encode())

    assert [task.runtime_ms for task in trace.tasks] == [None, 2_000, 3_000]
    assert trace.notes == (
        "schemaVersion is 7.1; this reader was written for 1.0 to 1.6",
        "1 records of the execution are of no task, and left out",
        "1 of 3 tasks have no runtime; they answer at once",
    )
    assert (unversioned.name, unversioned.version) == ("", "unknown")


def test_what_is_not_asked_for_may_be_anything():
    """Files, machines and arguments are passed over; odd commands and names are no name."""
    odd = {"command": "rm -rf", "files": [[[]]], "machines": {"x": 1e300}}
    numbers = {"id": "b", "command": {"program": 7}, "category": 5, "name": None}
    data = divided({**A, **odd}, numbers, name={"x": 1}, author=[1])

    trace = read(b"\xef\xbb\xbf" + data)

    assert (trace.name, [task.kind for task in trace.tasks]) == ("", ["", "7"])
    assert trace.tasks[1].name == "b"


TASKS = "$.workflow.specification.tasks"
RAN = "$.workflow.execution.tasks"
PROBLEMS = [
    (b"[1]", "shape", "$: this is no WfFormat: expected `object`, got `array`"),
    (b'{"name": "x"}', "shape", "$.workflow: expected an object; got nothing"),
    (b'{"workflow": []}', "shape", "$.workflow: expected an object; got a list"),
    (
        b'{"workflow": {"a": 1, "b c": 2}}',
        "shape",
        "$.workflow: no tasks here; the fields are a, b",
    ),
    (b'{"workflow": {"tasks": []}}', "shape", "$.workflow.tasks: the list of tasks is empty"),
    (b'{"workflow": {"jobs": {}}}', "shape", "$.workflow.jobs: expected a list of tasks; got an"),
    (
        b'{"workflow": {"specification": 3}}',
        "shape",
        "$.workflow.specification: expected an object",
    ),
    (
        b'{"workflow": {"specification": {}}}',
        "shape",
        f"{TASKS}: expected a list of tasks; got not",
    ),
    (divided(A, 3), "shape", f"{TASKS}[1]: expected a task, which is an object; got the number 3"),
    (divided({"parents": []}), "shape", f"{TASKS}[0]: the task has neither an id nor a name"),
    (
        divided(A, A),
        "duplicate",
        f"{TASKS}[1].id: the id 'a' is given twice; the first is {TASKS}[0]",
    ),
    (divided({**A, "parents": "b"}), "shape", f"{TASKS}[0].parents: expected a list of tasks; got"),
    (divided({**A, "parents": [{}]}), "shape", f"{TASKS}[0].parents[0]: task 'a': expected the id"),
    (divided({**A, "parents": [""]}), "shape", f"{TASKS}[0].parents[0]: task 'a': expected the id"),
    (divided({**A, "parents": ["aa"]}), "unknown", f"{TASKS}[0].parents[0]: task 'a': 'aa' is not"),
    (divided({**A, "children": ["q"]}), "unknown", f"{TASKS}[0].children[0]: task 'a': 'q' is not"),
    (
        flat({"name": "x"}, {"name": "x"}, {"name": "y", "parents": ["x"]}),
        "ambiguous",
        "$.workflow",
    ),
    (
        divided({**A, "parents": ["a"]}),
        "cycle",
        f"{TASKS}[0].parents: tasks wait for each other in",
    ),
    (
        flat({"id": "b", "children": ["c"]}, {"id": "c", "children": ["b"]}),
        "cycle",
        "$.workflow.tas",
    ),
    (
        divided(A, ran=[5]),
        "shape",
        f"{RAN}[0]: expected a task, which is an object; got the number",
    ),
    (
        divided(A, ran=[{"id": "a"}, {"id": "a"}]),
        "duplicate",
        f"{RAN}[1]: task 'a' has two records",
    ),
    (
        divided(A, ran=[{"id": "a", "runtime": -1}]),
        "runtime",
        f"{RAN}[0].runtime: expected seconds",
    ),
    (
        divided(A, ran=[{"id": "a", "runtime": "5"}]),
        "runtime",
        f"{RAN}[0].runtime: expected seconds",
    ),
    (
        divided(A, ran=[{"id": "a", "runtime": True}]),
        "runtime",
        f"{RAN}[0].runtime: expected second",
    ),
    (
        divided({**A, "runtime": 1e30}),
        "runtime",
        f"{TASKS}[0].runtime: expected seconds, from 0 to",
    ),
    (
        b'{"workflow": {"tasks": [{"id": 1e999}]}}',
        "shape",
        "$.workflow.tasks[0]: not readable: Numb",
    ),
]


@pytest.mark.req("R221", "R63")
@pytest.mark.parametrize(
    ("data", "code", "message"),
    PROBLEMS,
    ids=[f"{row[1]}-{at}" for at, row in enumerate(PROBLEMS)],
)
def test_what_is_wrong_is_named_with_its_path_and_the_way_out(data, code, message):
    """The path, what was expected, what is there; and a hint in every case."""
    (found,) = refused(data)

    assert found.code == f"wfformat.{code}"
    assert found.message.startswith(message)
    assert (found.severity, bool(found.hint)) == ("error", True)


def test_the_execution_must_be_one_too():
    """A part that is there, but of another kind, is not passed over."""
    for execution in (3, {"tasks": {}}):
        data = {"workflow": {"specification": {"tasks": [A]}, "execution": execution}}
        (found,) = refused(json.dumps(data).encode())
        assert found.message.startswith("$.workflow.execution")


@pytest.mark.req("R64")
def test_a_problem_has_its_line_and_column():
    """The file is looked at again for the place, which the fast reader does not keep."""
    data = (DATA / "split-1.5.json").read_text().replace('_2", "lab.WORK_3"]', '_2", "x"]')

    (first, second) = refused(data.encode())

    lines = data.split("\n")
    assert [found.message.split(":")[0] for found in (first, second)] == [
        f"{TASKS}[3].parents[1]",
        f"{TASKS}[0].children[1]",
    ]
    for found in (first, second):
        assert lines[found.line - 1][found.column - 1 :].startswith('"x"')


def test_a_circle_is_shown_and_the_rest_is_not():
    """Each circle once, by the names of its tasks; what waits behind one is not reported."""
    (found,) = refused(
        divided(
            {"id": "a", "parents": ["c"]},
            {"id": "b", "parents": ["a"]},
            {"id": "c", "parents": ["b"]},
            {"id": "d", "parents": ["c"]},
        )
    )

    assert found.message.endswith("tasks wait for each other in a circle: a -> c -> b -> a")
    assert "take 'c' out of the parents of 'a'" in found.hint


def test_one_problem_does_not_hide_the_next_but_there_is_an_end():
    """Twenty are shown, the rest is counted, and nobody waits for suggestions to the rest."""
    tasks = [{"id": f"tasks-{i}", "parents": [f"task-{i}"]} for i in range(3_000)]

    findings = refused(divided(*tasks))

    assert [found.code for found in findings] == ["wfformat.unknown"] * 20 + ["report.full"]
    assert findings[-1].message == "2,980 more problems are not shown"
    assert findings[0].hint == "did you mean 'tasks-0'?"


@pytest.mark.parametrize(
    ("data", "place", "words"),
    [
        (b"", (1, 1), "the file is empty"),
        (b" \n ", (2, 2), "the file is empty"),
        (b'{"a":\n  NaN}', (2, 3), "invalid character"),
        (b'{"a": 1', (1, 8), "input data was truncated"),
        (b'{"a": [1,]}', (1, 10), "trailing comma"),
        (b'{"\xc3\xa9": "\xff"}', (1, 8), "byte 0xff is not UTF-8"),
        (b'{"a": ' + b"[" * 10**5 + b"]" * 10**5 + b"}", (1, 1), "lists and objects are nested"),
    ],
)
def test_what_is_no_json_is_said_where_it_shows(data, place, words):
    """Line and column of the byte that cannot be, whatever part of the file it is in."""
    (found,) = refused(data)

    assert (found.code, found.line, found.column) == ("wfformat.json", *place)
    assert found.message.startswith(f"not JSON: {words}")
