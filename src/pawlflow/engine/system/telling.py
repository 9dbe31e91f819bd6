"""Telling: what an act of a batch led to, for the batch that counts it."""

from typing import Final

from pawlflow.engine.actions import Accepted
from pawlflow.engine.cells import Live
from pawlflow.engine.staging import Staging
from pawlflow.kernel.draft import Rejected
from pawlflow.model.batches import BATCH, TellBatch, batch_key
from pawlflow.model.inputs import (
    CancelInstance,
    Input,
    PauseInstance,
    ResumeStep,
    Signal,
    UnpauseInstance,
)
from pawlflow.model.journal import Send

ACTS: Final = (CancelInstance, PauseInstance, UnpauseInstance, ResumeStep, Signal)


def tell_batch(staging: Staging, live: Live, incoming: Input, outcome: Accepted | Rejected) -> None:
    """An act was done, or refused: the batch it is part of hears of both, in the same commit."""
    if isinstance(incoming, ACTS) and incoming.batch:
        told = TellBatch(live.id.key, outcome.code if isinstance(outcome, Rejected) else "")
        staging.send(live, Send(BATCH, batch_key(incoming.batch), told), at_once=False)
