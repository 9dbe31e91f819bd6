"""Every promise of the port, kept by each store we ship."""

import pytest

from pawlflow.store.memory import MemoryStore
from pawlflow.store.sqlite import SqliteStore
from pawlflow.testing.conformance import StoreConformance
from pawlflow.testing.conformance_mail import MailPromises
from pawlflow.testing.conformance_removal import RemovalPromises
from pawlflow.testing.conformance_search import SearchPromises

SHOWS = {
    "R225": [name for name in vars(MailPromises) if name.startswith("test_")],
    "R151": [
        "test_an_older_owner_is_fenced",
        "test_an_acknowledgement_needs_its_fence",
        "test_a_stale_fence_anywhere_refuses_everything",
    ],
    "R216": [name for name in vars(SearchPromises) if name.startswith("test_")],
    "R218": [name for name in vars(RemovalPromises) if name.startswith("test_")],
    "R183": ["test_instances_come_newest_first", "test_instances_are_filtered"],
    "R43": ["test_blobs_are_kept_once_and_shared"],
    "R211": [
        "test_blobs_are_kept_once_and_shared",
        "test_a_snapshot_stands_for_the_turns_before_it",
    ],
}
for requirement, names in SHOWS.items():
    for name in names:
        pytest.mark.req(requirement)(getattr(StoreConformance, name))


class TestMemoryStore(StoreConformance):
    """The reference: what it does is what the port means."""

    def open(self):
        """New and empty."""
        return MemoryStore()

    def reopen(self, store):
        """On what the closed one left."""
        store.close()
        return MemoryStore(store.shared)


class TestSqliteStore(StoreConformance):
    """The embedded default."""

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path):
        self.path = tmp_path / "pawl.db"

    def open(self):
        """New and empty."""
        return SqliteStore(self.path)

    def reopen(self, store):
        """On what the closed one left."""
        store.close()
        return SqliteStore(self.path)
