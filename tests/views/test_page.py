"""docs/sql.md: every query runs on the store it is for, and its tables have every column."""

import re
from pathlib import Path

import pytest

from tests.views.kit import EVERYTHING, Books, live_through

PAGE = (Path(__file__).parent.parent.parent / "docs" / "sql.md").read_text()
QUERIES = re.findall(r"^```sql(?: title=\"(\w+)\")?\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| (`.*?) \|", re.MULTILINE)
SPEC = {  # what spec 004 adds, and what it says is there
    "workflow_instance": "current_step_index step_count last_event_at state request_json",
    "workflow_step": "command_subject command_json command_published_at idempotency_key "
    "compensation_subject compensation_json request_json response_json state step_index",
}


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def filled(request, tmp_path_factory):
    """A store with some rows."""
    url = f"sqlite:///{tmp_path_factory.mktemp('page')}/pawl.db"
    if request.param == "postgres":
        url = request.getfixturevalue("postgres").fresh()
    books = Books(url)
    live_through(url, *EVERYTHING[:2])
    books.follower().catch_up()
    yield request.param, books
    books.close()


@pytest.mark.req("R164")
def test_every_query_of_the_page_runs(filled):
    """On the store it names, or on both."""
    kind, books = filled
    mine = [sql for title, sql in QUERIES if title.lower().startswith(("", kind)[bool(title)])]
    assert len(mine) == len(QUERIES) - 1
    answers = [books.ask(sql) for sql in mine]
    assert sum(map(bool, answers)) >= 3  # of runs in virtual time not every question finds one


@pytest.mark.req("R164", "R81")
@pytest.mark.parametrize("view", ["workflow_instance", "workflow_step", "workflow_watermark"])
def test_the_page_has_every_column_and_no_other(filled, view):
    """By name; and the columns of spec 004 are among them."""
    _, books = filled
    [row] = books.ask(f"SELECT * FROM {view} LIMIT 1")
    if view == "workflow_watermark":
        part = PAGE.split("`workflow_watermark` says")[1]
    else:
        part = PAGE.split(f"## {view}")[1]
    table = part.split("\n\n|", 1)[1].split("\n\n", 1)[0]
    told = [name for cell in ROW.findall("|" + table) for name in re.findall(r"`(\w+)`", cell)]

    assert sorted(told) == sorted(row)
    assert set(SPEC.get(view, "").split()) <= set(row)


def test_both_stores_have_the_same_columns_in_the_same_order(filled):
    """A query that is written for one is a query for the other."""
    _, books = filled
    [row] = books.ask("SELECT * FROM workflow_step LIMIT 1")
    names = list(row)
    assert names[:4] == ["tenant_id", "workflow_instance_id", "workflow", "id"]
    assert names[-1] == "last_event_at"
