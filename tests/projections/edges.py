"""Every edge of the four vocabularies, and a run that shows it. docs/states.md is made from this.

`[*]` is before the first turn. An edge is shown between two turns, as `show --at TURN` shows it.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from pawlflow.kernel.replay import apply_turn
from pawlflow.kernel.state import Instance
from pawlflow.projections.lenses import LENSES, STEP_LENSES, lens, lens_steps
from pawlflow.projections.story import Story, sealed_turns, unbegun
from pawlflow.projections.units import named_units

Words = dict[tuple[str, str], str]  # (vocabulary, of what) -> word
NOTHING = "[*]"


class Edge(NamedTuple):
    """From one word to another, why, and where it can be seen."""

    before: str
    after: str
    because: str
    shown: str  # the name of a scenario, or of a run in tests/projections/played.py


def words(state: Instance) -> Words:
    """The instance, its steps and their undos in every vocabulary."""
    found = {(name, ""): word for name, word in lens(state).items()}
    units = [unit for _, unit in named_units(state)]
    for name in STEP_LENSES:
        for row in lens_steps(state, name, units):
            kind = "undo" if row["step"].startswith("undo/") else "steps"
            found[f"{name} {kind}", row["step"]] = row["state"]
    return found


def after_turns(story: Story) -> Iterator[Words]:
    """What is to be seen after each turn."""
    state = unbegun(story)
    for turn, _ in sealed_turns(story):
        for _ in apply_turn(state, turn):
            pass
        yield words(state)


def edges_between(seen: list[Words]) -> set[tuple[str, str, str]]:
    """Every edge: the vocabulary, and two words that follow each other."""
    return {
        (of, before.get((of, what), NOTHING), word)
        for before, after in pairwise([{}, *seen])
        for (of, what), word in after.items()
        if before.get((of, what), NOTHING) != word
    }


SLEEPS = "a-run-that-begins-with-a-sleep-is-running"
GATED = "a-gate-between-two-sleeps-is-awaiting-approval"
CORRECTED = "a-correction-that-is-let-go-awaits-its-agent"
PAUSED = "a-signal-during-a-pause-is-not-lost"
UNHEALTHY = "a-deployment-that-reports-no-health-is-rolled-back"
STUCK = "a-failed-undo-stops-the-others"
SKIPS = "skip-goes-on-without-the-result"
DONE = "a-completed-run-publishes-its-life-in-order"
ABORTED = "abort-is-the-default"
UNDONE = "a-full-rollback-has-three-names"
QUEUED, WARNED = "queue", "warned"

EDGES: dict[str, list[Edge]] = {
    "control-plane": [
        Edge(NOTHING, "Created", "it is created, and has no slot yet", SLEEPS),
        Edge("Created", "Running", "it has its slot: WorkflowInstanceStarted", SLEEPS),
        Edge("Running", "AssigningTask", "a step is ready; a pause holds it", PAUSED),
        Edge("AssigningTask", "AwaitingAgent", "AgentTaskAssigned", PAUSED),
        Edge("AwaitingAgent", "Running", "AgentTaskCompleted; a wait is open", UNHEALTHY),
        Edge("AwaitingAgent", "Correcting", "AgentTaskFailed, to be corrected", CORRECTED),
        Edge("Correcting", "AwaitingAgent", "AgentTaskReassigned", CORRECTED),
        Edge(
            "Correcting",
            "Failed",
            "a step has used up its corrections",
            "corrections-used-up-close-a-run-that-is-correcting",
        ),
        Edge("Running", "AwaitingApproval", "ApprovalRequested", GATED),
        Edge("AwaitingApproval", "Running", "ApprovalGranted", GATED),
        Edge(
            "AwaitingApproval",
            "Cancelled",
            "ApprovalRejected",
            "a-rejected-gate-cancels-by-default",
        ),
        Edge(
            "AwaitingApproval",
            "Escalated",
            "ApprovalExpired",
            "an-expired-gate-escalates-by-default",
        ),
        Edge("Running", "Compensating", "a step failed, and asks for compensation", UNHEALTHY),
        Edge("Compensating", "Failed", "compensation is complete", UNHEALTHY),
        Edge(
            "Escalated",
            "Running",
            "a human resumes",
            "a-wait-that-times-out-may-be-escalated-and-resumed",
        ),
        Edge("Escalated", "Cancelled", "a human cancels", "a-human-may-cancel-instead-of-resuming"),
        Edge("Running", "Completed", "WorkflowInstanceCompleted", SLEEPS),
    ],
    "kernel": [
        Edge(NOTHING, "running", "nothing is in flight yet", SLEEPS),
        Edge("running", "waiting", "a wait is open, or an effect in flight", SLEEPS),
        Edge("waiting", "running", "what was in flight came back; a pause holds the rest", PAUSED),
        Edge("waiting", "completed", "the last step is done", SLEEPS),
        Edge("waiting", "failed", "a step failed for good", ABORTED),
    ],
    "ioa": [
        Edge(NOTHING, "idle", "it is created", QUEUED),
        Edge("idle", "queued", "no slot is free", QUEUED),
        Edge("queued", "executing", "a slot is free", QUEUED),
        Edge("executing", "blocked", "a step needs a human", GATED),
        Edge("executing", "completed", "all steps are done", DONE),
        Edge("executing", "failed", "a step failed, and asks for no compensation", ABORTED),
        Edge("executing", "compensating", "a step failed, and asks for it", UNDONE),
        Edge("blocked", "executing", "the human has decided", GATED),
        Edge("blocked", "failed", "the time of the gate was up", "on-expire-fail-fails-the-gate"),
        Edge("compensating", "completed", "everything is undone", UNDONE),
        Edge("compensating", "failed", "an undo failed", STUCK),
    ],
    "ioa steps": [
        Edge(NOTHING, "pending", "its dependencies are not met yet", DONE),
        Edge("pending", "running", "it is attempted, or its wait is opened", DONE),
        Edge("running", "completed", "it succeeded", DONE),
        Edge("running", "skipped", "it failed, with `onFailure: skip`", SKIPS),
        Edge("running", "failed", "it failed for good", ABORTED),
    ],
    "ores": [
        Edge(NOTHING, "pending", "it is created", SLEEPS),
        Edge("pending", "in_progress", "it is started", SLEEPS),
        Edge("in_progress", "completed", "the last step is done", DONE),
        Edge("in_progress", "failed", "a step failed, and asks for no compensation", ABORTED),
        Edge("in_progress", "compensating", "a step failed, and asks for it", UNDONE),
        Edge("compensating", "compensated", "everything is undone", UNDONE),
        Edge("compensating", "failed", "an undo failed", STUCK),
    ],
    "ores steps": [
        Edge(NOTHING, "pending", "it has no row yet", DONE),
        Edge("pending", "in_progress", "its command is sent", DONE),
        Edge("in_progress", "completed", "its completion says so", DONE),
        Edge("in_progress", "completed_with_warnings", "its completion says so", WARNED),
        Edge("in_progress", "failed", "its completion says so, for good", ABORTED),
    ],
    "ores undo": [
        Edge(NOTHING, "in_progress", "its command is sent", UNDONE),
        Edge(NOTHING, "pending", "others are undone before it", STUCK),
        Edge("pending", "in_progress", "it is its turn", "undo-runs-last-completed-first"),
        Edge("in_progress", "completed", "its completion says so", UNDONE),
        Edge("in_progress", "failed", "its completion says so", STUCK),
    ],
}

VOCABULARIES = {
    **LENSES,
    **{f"{name} steps": known for name, known in STEP_LENSES.items()},
    "ores undo": ("pending", "in_progress", "completed", "failed"),
}

# Edges that nobody drew, and why they are there. All others of a vocabulary are impossible.
EARLY = "it was cancelled before it began"
AGAIN = "a reviewer asked for changes, and it is done again"
LATER = "a reviewer asked for changes, and it comes after them"
ALSO: dict[str, dict[tuple[str, str], str]] = {
    "ioa": {
        ("idle", "failed"): EARLY,
        ("idle", "compensating"): f"{EARLY}, under compensate: there is nothing to undo",
        ("queued", "failed"): EARLY,
        ("queued", "compensating"): f"{EARLY}, under compensate: there is nothing to undo",
    },
    "ores": {
        ("pending", "failed"): EARLY,
        ("pending", "compensating"): f"{EARLY}, under compensate: there is nothing to undo",
    },
    "ioa steps": {
        ("pending", "completed"): "an event is emitted, with nothing to wait for",
        ("pending", "skipped"): "its condition is false, or what it requires was skipped",
        ("pending", "failed"): "its input or condition cannot be computed",
        ("completed", "running"): AGAIN,
        ("completed", "pending"): LATER,
        ("skipped", "running"): AGAIN,
        ("skipped", "pending"): LATER,
        ("running", "pending"): "the gate itself, which asks again after them",
    },
    "ores steps": {
        ("pending", "completed"): "an event is emitted, with nothing to wait for",
        ("pending", "failed"): "its input or condition cannot be computed",
        ("completed", "in_progress"): AGAIN,
        ("completed", "pending"): LATER,
        ("completed_with_warnings", "in_progress"): AGAIN,
        ("completed_with_warnings", "pending"): LATER,
        ("failed", "in_progress"): AGAIN,
        ("failed", "pending"): LATER,
        ("in_progress", "pending"): "the gate itself, which asks again after them",
    },
    "ores undo": {("pending", "failed"): "its input cannot be computed"},
}
# The rules of `ioa`: what must never be seen.
FORBIDDEN = {
    ("idle", "executing"),
    ("failed", "executing"),
    ("compensating", "executing"),
    *(("completed", word) for word in LENSES["ioa"] if word != "completed"),
}
TERMINAL = {
    "control-plane": {"Completed", "Failed", "Cancelled"},
    "kernel": {"completed", "failed"},
    "ioa": {"completed", "failed"},
    "ores": {"completed", "compensated", "failed"},
    "ioa steps": {"completed", "failed", "skipped"},
    "ores steps": {"completed", "completed_with_warnings", "failed"},
    "ores undo": {"completed", "failed"},
}
