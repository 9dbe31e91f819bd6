"""Stores of both kinds."""

import pytest

from tests.views.kit import Books

DAILY = {
    "test_rows_followed_live_and_rows_rebuilt_are_the_same",
    "test_of_two_who_follow_one_shard_only_one_writes_a_page",
    "test_an_engine_keeps_them_fresh_if_it_is_told_to",
}


def pytest_generate_tests(metafunc):
    """Each test on SQLite; on a server daily where that is another path, the rest by night."""
    if "url" in metafunc.fixturenames:
        marks = [] if metafunc.definition.name in DAILY else [pytest.mark.slow]
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
