"""What is written for a trace: names, timeouts, quotes, limits; and that it runs as it says."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pawlflow.definition.load import load_workflows
from pawlflow.importing.documents import TooLargeError, timeout_for
from pawlflow.importing.names import effect_name, step_names, workflow_name
from pawlflow.importing.trace import Task, Trace, measure
from pawlflow.model.ids import EFFECT_NAME, STEP_NAME, WORKFLOW_NAME
from pawlflow.testing.runner import run_scenario
from tests.importing.kit import DATA, imported, read, scenario_of

MINUTE = 60_000
WORDS = st.text(max_size=12) | st.sampled_from(
    ["null", "true", "on", "undo", "a", "A", "a-2", "1", "-", "x" * 99, "ID1", "b: c", "# d", "é"]
)


def trace_of(*tasks: Task, name: str = "") -> Trace:
    """A trace of these tasks."""
    return Trace(name=name, version="1.5", tasks=tasks)


@st.composite
def traces(draw):
    """Up to twelve tasks in any shape without a cycle, in any order, called anything."""
    size = draw(st.integers(1, 12))
    order = draw(st.permutations(range(size)))
    rows = []
    for at in range(size):
        before = (
            st.lists(st.sampled_from(order[:at]), unique=True, max_size=4) if at else st.just([])
        )
        rows.append((order[at], draw(before)))
    tasks = {
        number: Task(
            name=draw(WORDS.filter(bool)),
            id=draw(st.just("") | st.just(f"ID{number}")),
            kind=draw(st.just("") | WORDS),
            runtime_ms=draw(st.none() | st.integers(0, 3 * 86_400_000)),
            parents=tuple(parents),
        )
        for number, parents in rows
    }
    return trace_of(*(tasks[number] for number in range(size)), name=draw(WORDS))


def longest(tasks, number):
    """The longest path that ends with a task, by trying all."""
    before = [longest(tasks, parent) for parent in tasks[number].parents]
    return max(before, default=0) + (tasks[number].runtime_ms or 0)


@pytest.mark.req("R221")
@settings(max_examples=60)
@given(traces())
def test_a_run_takes_its_critical_path(trace):
    """With nothing else in the way the last task ends when the longest chain of runtimes does."""
    measures = measure(trace.tasks)
    expected = max(longest(trace.tasks, number) for number in range(len(trace.tasks)))
    scenario = scenario_of(imported(trace))

    result = run_scenario(scenario)

    assert result.failures == []
    assert result.actual["elapsed_ms"] == expected == measures.critical_ms
    assert scenario.expect.elapsed_ms == expected
    assert list(scenario.stubs) == step_names(trace.tasks)


@given(traces())
def test_what_is_written_is_what_was_read(trace):
    """A step for each task, in its order, with its parents; the same bytes every time."""
    made = imported(trace)

    workflows, findings = load_workflows(made.workflow, made.workflow_file)

    names = step_names(trace.tasks)
    assert [found for found in findings if found.code.startswith("lint.timeout")] == []
    (workflow,) = workflows
    assert [step.name for step in workflow.steps] == names
    for step, task in zip(workflow.steps, trace.tasks, strict=True):
        assert [edge.step for edge in step.depends_on] == [names[parent] for parent in task.parents]
        assert step.target == effect_name(task)
        assert step.timeout_ms >= 2 * (task.runtime_ms or 0)
    assert workflow.timeout_ms >= 2 * measure(trace.tasks).critical_ms
    assert imported(trace) == made


@given(st.lists(st.tuples(WORDS, WORDS, WORDS), max_size=20))
def test_names_are_names(words):
    """Whatever tasks are called: names that steps, effects and workflows may have, no two alike."""
    tasks = [Task(name=name, id=ident, kind=kind) for name, ident, kind in words]

    names = step_names(tasks)

    assert len(set(names)) == len(names)
    assert all(STEP_NAME.match(name) and name != "undo" for name in names)
    assert all(EFFECT_NAME.match(effect_name(task)) for task in tasks)
    assert all(WORKFLOW_NAME.match(workflow_name(name)) for name, _, _ in words)


@pytest.mark.parametrize(
    ("task", "step", "effect"),
    [
        (Task(name="blastall_ID000004", kind="blastall"), "blastall_id000004", "blastall"),
        (Task(name="mProject_00000017"), "mproject_00000017", "mProject"),
        (Task(name="NFCORE.SRA_TO_FTP"), "nfcore-sra_to_ftp", "nfcore.sra_to_ftp"),
        (Task(name="1000genome"), "task-1000genome", "task-1000genome"),
        (Task(name="undo", kind=r"C:\tools\Undo.exe"), "task-undo", "undo.exe"),
        (Task(name="42", kind="/usr/bin/python3 "), "task-42", "python3"),
        (Task(name="日本"), "task", "task"),
        (
            Task(name="from-the-very-beginning-" + "and-on-" * 9 + "to-the-end_17", kind="x"),
            "from-the-very-beginn--" + "and-on-and-on-and-on-and-on-and-on-to-the-end_17"[-41:],
            "x",
        ),
    ],
    ids=lambda each: getattr(each, "name", "")[:20],
)
def test_names_are_the_nearest_there_are(task, step, effect):
    """Lower case, no folders of programs, no numbers of tasks; long ones lose their middle."""
    assert step_names([task]) == [step]
    assert effect_name(task) == effect


def test_names_that_meet_are_numbered_in_the_order_of_the_file():
    """A number that is somebody's name already is passed over."""
    tasks = [Task(name=name) for name in ("a", "A", "a-2", "a!", "a-2")]

    assert step_names(tasks) == ["a", "a-2", "a-2-2", "a-3", "a-2-3"]


@pytest.mark.parametrize(
    ("ms", "timeout"),
    [
        (0, MINUTE),
        (MINUTE, MINUTE),
        (MINUTE + 1, 2 * MINUTE),
        (90 * MINUTE, 120 * MINUTE),
        (10_080 * MINUTE, 10_080 * MINUTE),
        (10_080 * MINUTE + 1, 8 * 1_440 * MINUTE),
        (10**15, 36_500 * 1_440 * MINUTE),
    ],
)
def test_timeouts_are_such_as_people_write(ms, timeout):
    """A rung of a ladder, then whole days, at most what a definition may say."""
    assert timeout_for(ms) == timeout


def test_texts_are_quoted_and_hold_nothing_unseen():
    """The name of a workflow, whatever is in it, cannot become anything but text."""
    name = 'x"\\ \x00\x85\u2028\ufeff\ud800: {a: b} # ${ c } 😀' + "y" * 20_000
    made = imported(trace_of(Task(name="a\nb: c", id="q"), name=name))

    (workflow,), findings = load_workflows(made.workflow, made.workflow_file)

    assert findings == []
    assert workflow.description.startswith(
        'Imported from t.json (WfFormat 1.5), workflow x"\\      : {a: b} # ${ c } 😀yyy'
    )
    kept = workflow.metadata["annotations"]
    assert (kept["source"], kept["wfformat"]) == ("t.json", "1.5")
    assert "timeout: 1m}  # q\n" in made.workflow
    scenario_of(made)


def test_a_step_with_many_parents_has_several_lines():
    """No line is longer than an editor shows, and the file says what it said."""
    tasks = [Task(name=f"part-number-{i}") for i in range(40)]
    made = imported(trace_of(*tasks, Task(name="join", parents=tuple(range(40)))))

    assert max(map(len, made.workflow.splitlines())) <= 100
    (workflow,), _ = load_workflows(made.workflow, made.workflow_file)
    assert [edge.step for edge in workflow.steps[-1].depends_on] == [task.name for task in tasks]


@pytest.mark.parametrize(
    ("tasks", "length", "words"),
    [
        (50_001, 1, "50,001 tasks; a file may hold at most 50,000 steps"),
        (1_450, 1, "values; a file may hold at most 1,000,000 values"),
        (560, 60, "bytes of YAML; a file may hold at most 8,388,608 bytes"),
    ],
)
def test_more_than_is_read_is_not_written(tasks, length, words):
    """Steps, values and bytes: the limit is named."""
    dense = tasks < 2_000
    made = [
        Task(name=f"t{i:0{length}d}", parents=tuple(range(i)) if dense else ())
        for i in range(tasks)
    ]

    with pytest.raises(TooLargeError, match=re.escape(words)):
        imported(trace_of(*made))


def test_a_critical_path_beyond_all_durations_is_refused():
    """Each of the tasks is within a hundred years, and together they are not."""
    century = 36_500 * 1_440 * MINUTE
    first = Task(name="a", runtime_ms=century)

    assert "elapsed: 36500d\n" in imported(trace_of(first, Task(name="b"))).scenario
    with pytest.raises(TooLargeError, match="ms of critical path"):
        imported(trace_of(first, Task(name="b", runtime_ms=1, parents=(0,))))


def test_a_graph_is_measured():
    """Levels, width, the chain that takes longest, and how much could go on at a time."""
    trace = read((DATA / "split-1.5.json").read_bytes())

    found = measure(trace.tasks)

    assert (found.tasks, found.edges, found.levels, found.widest) == (4, 4, 3, 2)
    assert (found.critical, found.critical_ms, found.total_ms) == ((0, 1, 3), 4_750, 5_500)
    assert found.parallelism == pytest.approx(5_500 / 4_750)
    assert measure((Task(name="a"), Task(name="b"))).parallelism == 2
