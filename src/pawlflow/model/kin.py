"""Kin: what ties an instance to the one that started it."""

from pawlflow.model.ids import StepKey, StepName
from pawlflow.model.records import Record


class Parent(Record, frozen=True, tag="parent", gc=False):
    """The instance that waits for this one, and the attempt its outcome is the receipt of."""

    workflow: str
    key: str
    step_key: StepKey
    attempt: int
    step: StepName = StepName("")  # what people call it: `build`, or `build[2]`
    generation: int = 1  # how many stand above this one
