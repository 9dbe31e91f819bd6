"""What the tests of moves share."""

import asyncio
import shutil

import pytest

from tests.moving.kit import begin, post


@pytest.fixture(scope="session")
def in_flight(tmp_path_factory):
    """A file with everything in flight; nobody may write to it."""
    path = tmp_path_factory.mktemp("moving") / "flight.db"
    with pytest.MonkeyPatch.context() as patch:
        asyncio.run(begin(f"sqlite:///{path}", patch))
    post(f"sqlite:///{path}")
    return path


@pytest.fixture
def flight(in_flight, tmp_path):
    """The URL of a copy of it."""
    shutil.copy(in_flight, tmp_path / "flight.db")
    return f"sqlite:///{tmp_path}/flight.db"
