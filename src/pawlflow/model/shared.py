"""Shared: the fields that many events begin with. Nothing is ever appended here, nor taken away.

`step` is the index in the plan of the definition in force; `item` is -1 outside forEach.
"""

from pawlflow.model.failure import Failure
from pawlflow.model.records import Record


class OfUnit(Record, frozen=True):
    """Something happened to a step, or to one item of it."""

    step: int
    item: int


class OfAttempt(OfUnit, frozen=True):
    """Something became of an attempt; 0: none was ever made."""

    attempt: int


class OfFailure(OfAttempt, frozen=True):
    """An attempt failed."""

    failure: Failure
