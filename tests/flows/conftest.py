"""Engines of every kind, for flows that run."""

from tests.effects.conftest import engine as engine  # the fixture
