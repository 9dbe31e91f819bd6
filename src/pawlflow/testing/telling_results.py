"""The result of a scenario in words: a line, and on failure expected against actual."""

from collections.abc import Iterator

from pawlflow.testing.runner import Result


def told(result: Result, mark: str | None = None) -> Iterator[str]:
    """A line per scenario; if it failed, what did not hold, and how the run ended."""
    word = mark or ("PASS" if result.passed else "FAIL")
    turns = "1 turn" if result.turns == 1 else f"{result.turns:,} turns"
    crashes = f", {result.crashes} crash points" if result.crashes else ""
    sampled = " (a seeded sample; --crash-all tries all)" if result.sampled else ""
    yield f"{word} {result.name} ({turns}{crashes}{sampled})"
    for refused in result.refused:
        yield f"  note: {refused}"
    if result.passed:
        return
    yield f"  {result.file}"
    for found in result.failures:
        yield "  " + found.message.replace("\n", "\n  ")
    if result.failure is not None:
        step = result.failure["step"] or "the workflow"
        why = f"{step}: {result.failure['message']} [{result.failure['code']}]"
        yield f"  the instance ended because of {why}"
    if result.open_steps:
        still = ", ".join(f"{step} {status}" for step, status in result.open_steps.items())
        yield f"  the run ended with open steps: {still}"
