"""Paths: `steps.checkout.tree` as one closure, the commonest expression of all."""

# Closures are made by the thousand: unevaluated annotations spare each a tuple of its own.
from __future__ import annotations

from operator import itemgetter
from typing import Any

from pawlflow.definition.express.cost import Env, Run
from pawlflow.definition.express.functions import look_up


def path(at: int, keys: tuple[str | int, ...]) -> Run:
    """The value in this place of the Env, and then down along constant keys."""
    if not keys:
        return itemgetter(at)
    if len(keys) > 1:
        return path_below(itemgetter(at), keys)
    key = keys[0]

    def run(env: Env) -> Any:
        value = env[at]
        return value.get(key) if type(value) is dict else look_up(value, key)

    return run


def path_below(base: Run, keys: tuple[str | int, ...]) -> Run:
    """What another closure gives, and then down along constant keys."""
    if not keys:
        return base

    def run(env: Env) -> Any:
        value = base(env)
        for key in keys:
            value = value.get(key) if type(value) is dict else look_up(value, key)
        return value

    return run
