"""A journal in which everything happens, and what SQL says of it."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import psycopg

from pawlflow.app import open_store, read_models_at
from pawlflow.effects.headers import instance_uuid
from pawlflow.projections.following import Follower
from pawlflow.store.port import Store
from pawlflow.store.postgres_url import is_postgres, where_of
from pawlflow.store.views import ReadModels
from pawlflow.testing.host import Host
from pawlflow.testing.runner import Play, plan_started
from tests import scenarios

EVERYTHING = (
    "undo-runs-last-completed-first",
    "a-failed-undo-stops-the-others",
    "a-late-success-during-compensation-is-undone",
    "changes-run-a-whole-fan-again",
    "the-items-of-an-earlier-fan-are-undone-with-their-own-list",
    "each-run-of-a-revised-step-is-undone",
    "children-of-items-run-side-by-side",
    "a-child-undoes-its-work-before-it-reports",
    "a-validation-failure-is-corrected-with-feedback",
    "a-human-may-retry-with-other-input",
    "a-signal-completes-a-wait-with-its-data",
    "an-open-gate-blocks-the-run",
    "a-transient-failure-is-retried-and-can-still-succeed",
    "a-completed-run-publishes-its-life-in-order",
    "a-broadcast-reaches-the-wait-that-asks-for-its-value",
)


def live_through(url: str, *names: str, after_each: Callable[[], object] = lambda: None) -> None:
    """Play scenarios one after the other into one store, by the real engine."""
    for name in names:
        scenario = scenarios.scenario_named(name)
        made = []

        def host(cell, plan, answer, crash, made=made) -> Host:
            made.append(Host(cell, plan, answer, crash, lambda: open_store(url)))
            return made[0]

        play = Play(scenario, plan_started(scenario), None, host)
        try:
            play.run()
        finally:
            made[0].close()
        after_each()


class Books:
    """A store and its read models, to be followed and looked into."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.store: Store = open_store(url)
        self.models: ReadModels = read_models_at(url)

    def follower(self, **more: Any) -> Follower:
        """One that begins where the rows are, and rests for nobody."""
        more.setdefault("rest", lambda _: None)
        return Follower(self.store, self.models, instance_uuid, **more)

    def rows(self) -> tuple[list[Any], list[Any]]:
        """All that the views show, in order."""
        steps = "tenant_id, workflow_instance_id, step_index, item, round, id"
        return (
            self.ask("SELECT * FROM workflow_instance ORDER BY tenant_id, id"),
            self.ask(f"SELECT * FROM workflow_step ORDER BY {steps}"),
        )

    def ask(self, sql: str) -> list[dict[str, Any]]:
        """What SQL says, by column, on a connection of its own."""
        return ask(self.url, sql)

    def close(self) -> None:
        """Both."""
        self.models.close()
        self.store.close()


def ask(url: str, sql: str) -> list[dict[str, Any]]:
    """What a program of somebody else reads."""
    if is_postgres(url):
        where = where_of(url)
        with psycopg.connect(where.url) as db:
            db.execute(f'SET search_path TO "{where.schema}"')
            db.execute("SET timezone TO 'UTC'")
            cursor = db.execute(sql)
            names = [each.name for each in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor]
    with closing(apsw.Connection(str(file_of(url)), flags=apsw.SQLITE_OPEN_READONLY)) as db:
        db.row_trace = lambda cursor, row: dict(zip(names_of(cursor), row, strict=True))
        return db.execute(sql).fetchall()


def names_of(cursor: apsw.Cursor) -> list[str]:
    """The columns of an answer."""
    return [each[0] for each in cursor.get_description()]


def change(url: str, sql: str) -> None:
    """Change rows behind our back."""
    if is_postgres(url):
        where = where_of(url)
        with psycopg.connect(where.url) as db:
            db.execute(f'SET search_path TO "{where.schema}"')
            db.execute(sql)
        return
    with closing(apsw.Connection(str(file_of(url)))) as db:
        db.execute(sql)


def file_of(url: str) -> Path:
    """The file of a SQLite store."""
    return Path(url.removeprefix("sqlite:///"))


def opened(url: str) -> Iterator[Books]:
    """Books that are closed after a test."""
    books = Books(url)
    yield books
    books.close()
