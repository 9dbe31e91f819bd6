"""What a store must do, as tests: for the author of any adapter.

    class TestMyStore(StoreConformance):
        def open(self):
            return MyStore(...)              # new and empty

        def reopen(self, store):
            store.close()
            return MyStore(...)              # on what the closed one left behind

pytest finds and runs every promise of `pawlflow.store.port` as a test of its own. The tests need
no fixture and no plugin: another runner makes an object for each and calls `teardown_method` after.
"""

from pawlflow.testing.conformance_journal import JournalPromises
from pawlflow.testing.conformance_mail import MailPromises
from pawlflow.testing.conformance_removal import RemovalPromises
from pawlflow.testing.conformance_rows import RowPromises
from pawlflow.testing.conformance_search import SearchPromises

__all__ = ["StoreConformance"]


class StoreConformance(JournalPromises, MailPromises, RowPromises, SearchPromises, RemovalPromises):
    """Every promise of the port. Subclass it, and give `open` and `reopen`."""
