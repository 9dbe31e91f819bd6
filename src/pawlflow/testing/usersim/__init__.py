"""A user's own workflow in the simulator's world: real engine, injected faults, virtual time."""
