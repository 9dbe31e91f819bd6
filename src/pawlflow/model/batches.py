"""Batches: one act on many instances. What may enter such a cell, and what happens in it.

The request says what is done, to whom and why; the targets come in pages and are fixed by the last
one. The records keep the rules of inputs.py and events.py: tags never change, fields are only
appended.
"""

from typing import Final, Literal

from pawlflow.model.ids import CellId, InstanceId, Tenant, WorkflowName
from pawlflow.model.payload import Payload
from pawlflow.model.records import Record

BATCH: Final = WorkflowName("$batch")

BatchVerb = Literal["cancel", "pause", "unpause", "resume", "retry", "signal"]


def batch_key(id_: str) -> InstanceId:
    """The key of the batch with this id."""
    return InstanceId(f"{BATCH}/{id_}")


def batch_cell(tenant: Tenant, id_: str) -> CellId:
    """The cell that sends an act to many instances."""
    return CellId(tenant, BATCH, batch_key(id_))


# Inputs


class OpenBatch(Record, frozen=True, tag="batch.open", gc=False):
    """Somebody wants something of many instances: what, of which, and why."""

    verb: BatchVerb
    where: str  # the filter that found the targets, in words
    by: str
    comment: Payload | None = None
    step: str = ""  # to be resumed or tried again; empty: all that are escalated
    event: str = ""  # of a signal
    given: Payload | None = None  # the data of a signal; or the input of another try


class AddTargets(Record, frozen=True, tag="batch.target", gc=False):
    """More instances, as a list of workflow and key; when they are complete the acts go out."""

    targets: Payload
    complete: bool


class TellBatch(Record, frozen=True, tag="batch.tell", gc=False):
    """What became of the act on one instance: done, or refused with a code."""

    key: InstanceId
    code: str = ""


# Events


class BatchOpened(Record, frozen=True, tag="batch.opened", gc=False):
    """The operation exists."""

    verb: BatchVerb
    where: str
    by: str
    comment: Payload | None = None
    step: str = ""
    event: str = ""
    given: Payload | None = None


class TargetsAdded(Record, frozen=True, tag="batch.targeted", gc=False):
    """These instances are meant; after the last page, they and no others."""

    targets: Payload
    complete: bool


class ActsSent(Record, frozen=True, tag="batch.sent", gc=False):
    """The act is on its way to the next so many instances."""

    count: int


class ActAnswered(Record, frozen=True, tag="batch.answered", gc=False):
    """What became of the act on one instance."""

    key: InstanceId
    code: str = ""


class BatchClosed(Record, frozen=True, tag="batch.closed", gc=False):
    """Every instance has answered."""

    done: int
    refused: int
    gone: int


BatchInput = OpenBatch | AddTargets | TellBatch
BatchEvent = BatchOpened | TargetsAdded | ActsSent | ActAnswered | BatchClosed
