"""Stores: where frames become durable. `port` says what a store promises, the rest keep it."""
