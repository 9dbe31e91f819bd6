"""Checkpoints of a loop: what may enter such a cell, and what happens in it.

A loop is a step whose function keeps results under names while it runs. They lie in a cell of their
own, known by the key of the call: the same over retries, another for each round. The records keep
the rules of inputs.py and events.py: tags never change, fields are only appended.
"""

from typing import Final

from pawlflow.model.ids import CellId, InstanceId, StepKey, StepName, Tenant, WorkflowName
from pawlflow.model.payload import Payload
from pawlflow.model.records import Record

LOOP: Final = WorkflowName("$loop")


def loop_key(key: StepKey) -> InstanceId:
    """The key of the cell that keeps the checkpoints of a call."""
    return InstanceId(f"{LOOP}/{key.hex()}")


def loop_cell(tenant: Tenant, key: StepKey) -> CellId:
    """The cell that keeps the checkpoints of a call."""
    return CellId(tenant, LOOP, loop_key(key))


# Inputs


class KeepCheckpoint(Record, frozen=True, tag="checkpoint.keep", gc=False):
    """Keep a result under its name; whose loop it is, and which attempt has it."""

    workflow: WorkflowName
    key: InstanceId
    step: StepName
    item: int
    round: int
    attempt: int
    name: str
    result: Payload


class CloseLoop(Record, frozen=True, tag="loop.close", gc=False):
    """The instance of the loop is closed: nobody will ask for its checkpoints any more."""


# Events


class LoopOpened(Record, frozen=True, tag="loop.opened", gc=False):
    """The first checkpoint of a loop is at hand: whose it is."""

    workflow: WorkflowName
    key: InstanceId
    step: StepName
    item: int
    round: int


class CheckpointKept(Record, frozen=True, tag="checkpoint.kept", gc=False):
    """The result of this name, for all attempts there will be."""

    name: str
    result: Payload
    attempt: int


class LoopClosed(Record, frozen=True, tag="loop.closed", gc=False):
    """Nothing more is kept; the results stay in the turns that kept them."""


LoopInput = KeepCheckpoint | CloseLoop
LoopEvent = LoopOpened | CheckpointKept | LoopClosed
