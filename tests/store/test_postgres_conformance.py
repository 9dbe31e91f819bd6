"""Every promise of the port, kept by the PostgreSQL store on a real server."""

import pytest

from pawlflow.store.postgres import PostgresStore
from pawlflow.testing.conformance import StoreConformance


class TestPostgresStore(StoreConformance):
    """Each test has a schema of its own."""

    @pytest.fixture(autouse=True)
    def _schema(self, postgres):
        self.url = postgres.fresh()

    def open(self):
        """New and empty."""
        return PostgresStore(self.url)

    def reopen(self, store):
        """On what the closed one left."""
        store.close()
        return PostgresStore(self.url)
