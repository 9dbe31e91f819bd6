"""Stores of both kinds."""

import pytest

from tests.views.kit import Books


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path):
    """A store of this test."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/pawl.db"
    return request.getfixturevalue("postgres").fresh()


@pytest.fixture
def books(url):
    """A store with read models; closed after the test."""
    made = Books(url)
    yield made
    made.close()
