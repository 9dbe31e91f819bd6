-- Version 2 of a SQLite store. Never edited once released: a change is a migration of its own.

-- Who looks after a decision that waits.
ALTER TABLE review ADD COLUMN claimed_by TEXT;

-- States are kept in another format since: a cache that would only be passed over.
DELETE FROM snapshot;
