"""The graph of steps, against a slow and obvious version of itself."""

from hypothesis import given
from hypothesis import strategies as st

from pawlflow.definition import graph
from pawlflow.definition.graph import find_cycles, parts, sort_steps, unrelated


@st.composite
def graphs(draw, *, acyclic=False):
    """Parents of up to twelve steps."""
    size = draw(st.integers(1, 12))
    rows = []
    for step in range(size):
        most = step - 1 if acyclic else size - 1
        row = st.lists(st.integers(0, most), unique=True, max_size=4) if most >= 0 else st.just([])
        rows.append(draw(row))
    return rows


def ancestors(parents, step):
    """Everything before a step, by walking up."""
    found, todo = set(), list(parents[step])
    while todo:
        parent = todo.pop()
        if parent not in found:
            found.add(parent)
            todo += parents[parent]
    return found


@given(graphs())
def test_steps_are_sorted_or_on_or_behind_a_cycle(parents):
    """The order respects dependencies, and leaves out exactly what can never start."""
    order = sort_steps(parents)
    for at, step in enumerate(order):
        assert set(parents[step]) <= set(order[:at])
    circular = {step for step in range(len(parents)) if step in ancestors(parents, step)}
    stuck = {step for step in range(len(parents)) if ancestors(parents, step) & circular}
    assert set(order) == set(range(len(parents))) - stuck - circular


@given(graphs())
def test_cycles_are_cycles(parents):
    """Each goes along dependencies back to its start, and every knot has one."""
    cycles = find_cycles(parents, sort_steps(parents))
    for cycle in cycles:
        assert cycle[0] == min(cycle)
        assert len(set(cycle)) == len(cycle)
        for step, parent in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
            assert parent in parents[step]
    named = {step for cycle in cycles for step in cycle}
    for step in range(len(parents)):
        if step in (before := ancestors(parents, step)):
            assert named & (before | {step})


@given(graphs(acyclic=True), st.integers(1, 3))
def test_unrelated_is_the_complement_of_ancestors(parents, chunk):
    """Whatever the number of targets in one pass."""
    every = [(a, b) for a in range(len(parents)) for b in range(len(parents))]
    before, graph.CHUNK = graph.CHUNK, chunk
    try:
        found = unrelated(parents, sort_steps(parents), every)
    finally:
        graph.CHUNK = before
    assert found == {(a, b) for a, b in every if b not in ancestors(parents, a)}


@given(graphs())
def test_parts_are_connected_and_apart(parents):
    """Each step is in one part; no dependency crosses two; each part hangs together."""
    groups = parts(parents)
    home = {step: i for i, group in enumerate(groups) for step in group}
    assert sorted(home) == list(range(len(parents)))
    assert all(home[step] == home[p] for step, before in enumerate(parents) for p in before)
    both = [set(before) for before in parents]
    for step, before in enumerate(parents):
        for parent in before:
            both[parent].add(step)
    for group in groups:
        assert ancestors(both, group[0]) | {group[0]} == set(group)
