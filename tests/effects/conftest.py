"""What tests of real functions need: engines of every kind, and workflows in files."""

import pytest

from pawlflow import Pawl
from tests.effects.kit import written

SAGA = """
  failurePolicy: compensate
  steps:
    - name: book
      run: hotel.book
      with: {night: "${ input.night }"}
      undo: {run: hotel.cancel, with: {room: "${ result.room }"}}
    - name: pay
      run: card.pay
      dependsOn: [book]
      retryPolicy: {maxRetries: 2, backoff: constant, initialDelay: 1ms}
  output: {room: "${ steps.book.room }", paid: "${ steps.pay }"}
"""


@pytest.fixture(params=["memory", "inline", "thread"])
def engine(request, tmp_path):
    """A function that makes the engine: in memory, and on a file by both drivers."""

    def make(**more):
        if request.param == "memory":
            return Pawl("memory:", **more)
        return Pawl(f"sqlite:///{tmp_path}/pawl.db", driver=request.param, **more)

    make.kind = request.param
    return make


@pytest.fixture
def saga(tmp_path):
    return written(tmp_path, "saga", SAGA)
