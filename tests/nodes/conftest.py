"""Stores that nodes share."""

import pytest


@pytest.fixture(params=["postgres", "sqlite"])
def url(request, tmp_path):
    """A store of its own."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/pawl.db"
    return request.getfixturevalue("postgres").fresh()
