"""Stores as sides of a move, by their URLs."""

from typing import cast

from pawlflow.app import file_of, open_store, postgres
from pawlflow.store.moves import Side
from pawlflow.store.postgres_url import is_postgres
from pawlflow.store.sqlite_move import Journals, SqliteSide


def side_of(url: str) -> Side:
    """A store as one side of a move; made if it is missing. Raises StoreError."""
    if is_postgres(url):
        postgres()  # raises UrlError without its driver
        from pawlflow.store.postgres_move import PostgresSide

        return PostgresSide(url)
    path = file_of(url)
    store = open_store(url)
    try:
        return SqliteSide(cast("Journals", store), path)
    except BaseException:
        store.close()
        raise
