"""The graph of steps: an order, its cycles, its parts, and who comes before whom.

Steps are numbers here, and `parents[i]` are the steps that step i depends on. Nothing recurses, and
everything is linear in steps and edges, or nearly so (see `unrelated`).
"""

from collections.abc import Iterable, Sequence

Parents = Sequence[Sequence[int]]
Question = tuple[int, int]  # (step, target): does target come before step?

CHUNK = 4_096  # targets asked about in one pass: 512 bytes of mask a step, 25 MB for 50,000 steps


def sort_steps(parents: Parents) -> list[int]:
    """The steps in an order that respects dependencies. Steps on or behind a cycle are missing."""
    children: list[list[int]] = [[] for _ in parents]
    for step, before in enumerate(parents):
        for parent in before:
            children[parent].append(step)
    waiting = [len(before) for before in parents]
    order = [step for step, count in enumerate(waiting) if count == 0]
    for step in order:  # grows while it is walked
        for child in children[step]:
            waiting[child] -= 1
            if waiting[child] == 0:
                order.append(child)
    return order


def find_cycles(parents: Parents, order: Sequence[int]) -> list[list[int]]:
    """One cycle for each knot, each starting with its first step in the file.

    Every step that is missing from the order has a parent that is missing too. Following the first
    such parent again and again must end in a cycle; each step is walked once.
    """
    missing = set(range(len(parents))).difference(order)
    seen_in: dict[int, int] = {}  # step: the walk that came by
    cycles = []
    for start in sorted(missing):
        path = []
        step = start
        while step not in seen_in:
            seen_in[step] = start
            path.append(step)
            step = next(parent for parent in parents[step] if parent in missing)
        if seen_in[step] == start:
            cycles.append(rotated(path[path.index(step) :]))
    return cycles


def rotated(cycle: list[int]) -> list[int]:
    """The same cycle, starting with its smallest step."""
    first = cycle.index(min(cycle))
    return cycle[first:] + cycle[:first]


def unrelated(
    parents: Parents, order: Sequence[int], questions: Iterable[Question]
) -> set[Question]:
    """The questions whose target does not come before the step.

    Direct dependencies are answered at once. For the others each step gets a mask with one bit per
    target that lies before it, built along the order, a few thousand targets at a time: a search
    per question would be quadratic in a plan whose steps all look far back.
    """
    open_questions = not_direct(parents, questions)
    targets = sorted({target for _, target in open_questions})
    answered_no: set[Question] = set()
    for start in range(0, len(targets), CHUNK):
        bits = {target: 1 << i for i, target in enumerate(targets[start : start + CHUNK])}
        before = masks(parents, order, bits)
        answered_no.update(
            (step, target)
            for step, target in open_questions
            if target in bits and not before[step] & bits[target]
        )
    return answered_no


def not_direct(parents: Parents, questions: Iterable[Question]) -> list[Question]:
    """The questions that are not about a direct dependency."""
    asked: dict[int, list[int]] = {}
    for step, target in questions:
        asked.setdefault(step, []).append(target)
    return [
        (step, target)
        for step, targets in asked.items()
        for target in sorted(set(targets).difference(parents[step]))
    ]


def masks(parents: Parents, order: Sequence[int], bits: dict[int, int]) -> list[int]:
    """For each step, the bits of the marked steps before it."""
    before = [0] * len(parents)
    for step in order:
        mask = 0
        for parent in parents[step]:
            mask |= before[parent] | bits.get(parent, 0)
        before[step] = mask
    return before


def parts(parents: Parents) -> list[list[int]]:
    """The steps grouped by connection, direction ignored; in file order."""
    leader = list(range(len(parents)))

    def find(step: int) -> int:
        while leader[step] != step:
            leader[step] = leader[leader[step]]
            step = leader[step]
        return step

    for step, before in enumerate(parents):
        for parent in before:
            a, b = find(step), find(parent)
            leader[max(a, b)] = min(a, b)
    groups: dict[int, list[int]] = {}
    for step in range(len(parents)):
        groups.setdefault(find(step), []).append(step)
    return list(groups.values())
