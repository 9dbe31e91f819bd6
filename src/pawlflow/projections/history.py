"""History: the published events of an instance, each in its envelope. The list of `history --json`.

Everything is derived, ids too, so that the same journal gives the same envelopes for ever and
whoever hears an event twice can tell.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from pawlflow.kernel.draft import ENGINE
from pawlflow.kernel.replay import apply_turn, read_turn
from pawlflow.kernel.state import Instance
from pawlflow.model import events as ev
from pawlflow.model.codec import hash_of
from pawlflow.model.ids import Digest
from pawlflow.model.inputs import Input, Receipt
from pawlflow.model.journal import Turn
from pawlflow.model.records import write
from pawlflow.projections.causes import Causes, Place
from pawlflow.projections.payloads import payload_of
from pawlflow.projections.plain import time_told, uuid_told
from pawlflow.projections.publish import CLOSES, never_begun, published
from pawlflow.projections.story import Story, unbegun

TRACES_MAX: Final = 16_384  # of instances at work at one time
SCHEMA_VERSION: Final = 1  # of the envelope; grows only with a breaking change


def history(story: Story) -> list[dict[str, Any]]:
    """One envelope for each published name, in order."""
    return Teller(story).tell(story)


class Teller:
    """Tells a story as it grows: each call gives the envelopes of the turns not told yet."""

    def __init__(self, story: Story) -> None:
        self.state = unbegun(story)
        self.causes = Causes()
        self.ids: dict[Place, str] = {}  # of the first name of each event
        self.told = 0
        self.stopping: ev.InstanceStopping | None = None

    def tell(self, story: Story) -> list[dict[str, Any]]:
        """The envelopes of what came since the last call."""
        new = story.turns[self.state.turn :]
        turns = ((read_turn(data, story.payloads), sealed) for data, sealed in new)
        return [said for turn, sealed in turns for said in self.tell_turn(story, turn, sealed)]

    def tell_turn(self, story: Story, turn: Turn, sealed: Digest) -> Iterator[dict[str, Any]]:
        """One envelope for each name that a turn is published under."""
        cause = self.causes.of(self.state, turn.input)
        first = (cause and self.ids.get(cause)) or input_id(sealed, turn.input)
        frame = envelope_frame(story, turn)
        for index, (place, name, payload) in enumerate(self.publish(turn)):
            own = event_id(sealed, index)
            self.ids.setdefault(place, own)
            self.told += 1
            yield {
                "eventId": own,
                "eventType": name,
                **frame,
                "traceId": trace_id(self.state),
                "causationId": first if index == 0 else event_id(sealed, 0),
                "sequence": self.told,
                "payload": payload,
            }

    def publish(self, turn: Turn) -> Iterator[tuple[Place, str, dict[str, Any]]]:
        """Let a turn have happened, and give every name it is published under, and what it says."""
        state = self.state
        for index, event in enumerate(apply_turn(state, turn)):
            place = Place(turn.number, index)
            self.causes.see(state, event, place)
            if isinstance(event, ev.InstanceStopping):
                self.stopping = event
            never = never_begun(state) if isinstance(event, CLOSES) else []
            for step in never:
                untouched = {"step": state.plan.steps[step].name, "reason": "not_started"}
                yield place, "WorkflowStepCancelled", untouched
            for name in published(state, event)[len(never) :]:
                yield place, name, payload_of(state, event, self.stopping)


def envelope_frame(story: Story, turn: Turn) -> dict[str, Any]:
    """What all envelopes of a turn share."""
    batch: str = getattr(turn.input, "batch", "")
    return {
        "schemaVersion": SCHEMA_VERSION,
        "tenantId": story.cell.tenant,
        "correlationId": story.cell.key,
        "occurredAt": time_told(turn.stamps.now),
        "workflowInstanceId": story.cell.key,
        "actor": actor_of(turn.input),
        **({"batch": batch} if batch else {}),
    }


def actor_of(incoming: Input) -> str:
    """Who brought a turn about: a person, an executor, or the engine with its clocks."""
    if isinstance(incoming, Receipt):
        return "executor"
    by: str = getattr(incoming, "by", ENGINE)
    return by


def event_id(sealed: Digest, index: int) -> str:
    """The id of the published event at this index of a turn."""
    return uuid_told(hash_of("pawl.event-id.1", sealed, index))


def input_id(sealed: Digest, incoming: Input) -> str:
    """The id of a turn's input: the cause of what nothing earlier in the story caused."""
    return uuid_told(hash_of("pawl.input-id.1", sealed, write(incoming)))


def trace_id(state: Instance) -> str:
    """The id of a run, 32 hex digits. A hash, for step keys are made from the nonce itself.

    Whoever hears events must not be able to guess a key, and answer for an executor.
    """
    return traced(state.nonce)


@lru_cache(TRACES_MAX)
def traced(nonce: bytes) -> str:
    """The same, of what makes an instance its own: each of its commands and events has it."""
    return hash_of("pawl.trace-id.1", nonce)[:16].hex()
