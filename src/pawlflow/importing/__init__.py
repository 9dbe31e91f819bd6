"""Graphs of other systems, read into workflows and scenarios."""
