"""A store is carried to another place, with everything that is in flight there."""
