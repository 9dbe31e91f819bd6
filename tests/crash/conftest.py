"""What every trial of a crash is held against."""

from collections.abc import Iterator

import pytest

from tests.crash.parent import Nursery, Trial, outlines


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    """Where the processes come from."""
    made = Nursery()
    yield made
    made.close()


@pytest.fixture(scope="module")
def untouched(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The step histories of a run that nobody interrupted, on a disk that works."""
    trial = Trial(nursery, tmp_path_factory.mktemp("untouched") / "pawl.db", "inline")
    trial.finish()
    return outlines(trial.path)
