"""Small workflows for the tests of the test kit."""

import asyncio
import functools
from collections.abc import Callable
from typing import Any

from pawlflow.definition.load import load_workflows
from pawlflow.definition.shape import Workflow

HEAD = "apiVersion: pawl.dev/v1\nkind: Workflow\nmetadata: {name: %s}\nspec:\n"


def on_a_loop(test: Callable[..., Any]) -> Callable[..., None]:
    """An async test that makes its labs itself: without the fixture nobody else runs it."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


def workflow(name: str, *lines: str, steps: tuple[str, ...] = ()) -> Workflow:
    """A workflow of these lines and one-line steps."""
    below = "".join(f"    - {{{step}}}\n" for step in steps)
    text = HEAD % name + "".join(f"  {line}\n" for line in lines) + "  steps:\n" + below
    [found], findings = load_workflows(text, f"{name}.yaml")
    assert not [each for each in findings if each.severity == "error"], findings
    return found


ORDER = workflow(
    "order",
    "output: '${ steps.charge }'",
    steps=(
        "name: charge, run: card.charge, with: {amount: '${ input.amount }'}, timeout: 2m, "
        "retryPolicy: {maxRetries: 3, backoff: exponential, initialDelay: 1s, maxDelay: 60s}",
    ),
)
GATED = workflow(
    "gated",
    steps=(
        "name: gate, approval: {role: boss, expires: 24h, onExpire: fail}",
        "name: ship, run: parcel.ship, dependsOn: [gate]",
    ),
)
PARENT = workflow(
    "parent", "output: '${ steps.below }'", steps=("name: below, workflow: gated, timeout: 7d",)
)
