"""The simulator: the real shard core under a seeded scheduler, faults, and watchful eyes."""
