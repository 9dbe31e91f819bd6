"""Pawl: durable, event-sourced workflows for agents and business processes."""
