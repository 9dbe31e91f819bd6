"""Stores of both kinds."""

import pytest

from tests.views.kit import Books


def pytest_generate_tests(metafunc):
    """Each test on SQLite; on a server daily where that is another path, the rest by night."""
    if "url" in metafunc.fixturenames:
        daily = metafunc.definition.get_closest_marker("req") is not None
        marks = [] if daily else [pytest.mark.slow]
        stores = ["sqlite", pytest.param("postgres", marks=marks)]
        metafunc.parametrize("url", stores, indirect=True)


@pytest.fixture
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
