"""Flows: workflows written as Python functions, read once into the same shape as YAML."""
