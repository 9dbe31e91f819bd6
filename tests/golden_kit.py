"""Golden files: compared on every run, written only when asked for with --rewrite-golden."""

from collections.abc import Callable
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "golden"
Golden = Callable[[str, bytes], None]


def golden_of(request: pytest.FixtureRequest) -> Golden:
    """A function that holds bytes against a file, or writes the file."""
    rewrite = request.config.getoption("--rewrite-golden")

    def same(name: str, data: bytes) -> None:
        path = FOLDER / name
        if rewrite:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        assert path.read_bytes() == data, (
            f"{name} changed, and journals out there look like it: guard the change by `rules`"
        )

    return same
