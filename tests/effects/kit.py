"""Workflows in files, on a loop of their own."""

import asyncio

HEAD = "apiVersion: pawl.dev/v1\nkind: Workflow\nmetadata: {name: NAME}\nspec:\n"


def written(folder, name, body):
    """A workflow in a file."""
    path = folder / f"{name}.yaml"
    path.write_text(HEAD.replace("NAME", name) + body)
    return path


def run(coroutine):
    """On a loop of its own, as a program does it."""
    return asyncio.run(coroutine)
