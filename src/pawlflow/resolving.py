"""Resolving: the secrets that a call's definition names, put in just before it is carried out."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from pawlflow.definition.canonical import definition_from_bytes, hash_of_bytes
from pawlflow.definition.shape import Step, Workflow
from pawlflow.effects.secrets import NOTHING, Hidden, Reference, Secrets, references, resolve
from pawlflow.model.ids import CellId, Digest
from pawlflow.model.intents import Call

KNOWN_MAX: Final = 256  # definitions whose references are remembered
Named = dict[tuple[str, str], tuple[Reference, ...]]  # by step and direction


class Resolving:
    """Finds what a definition says, and asks for the values away from the loop."""

    def __init__(self, provider: Secrets, definition_of: Callable[[CellId], bytes]) -> None:
        self.provider = provider
        self.definition_of = definition_of
        self.known: dict[Digest, Named] = {}

    async def resolve(self, call: Call) -> tuple[Any, Hidden]:
        """The parameters of a call with secrets in their places, and these to be hidden.

        Raises SecretMissing, SecretTooShort, SecretUnavailable.
        """
        wanted = self.wanted(call)
        if not wanted:
            return call.params.value, NOTHING
        tenant, params = call.cell.tenant, call.params.value
        filled, values = await asyncio.to_thread(resolve, params, wanted, self.provider, tenant)
        return filled, Hidden(values)

    def wanted(self, call: Call) -> tuple[Reference, ...]:
        """The references that the definition of a call has for it."""
        data = self.definition_of(call.cell)
        digest = hash_of_bytes(data)
        if digest not in self.known:
            if len(self.known) >= KNOWN_MAX:
                self.known.clear()
            self.known[digest] = named_in(definition_from_bytes(data))
        return self.known[digest].get((call.step, call.direction), ())


def named_in(workflow: Workflow) -> Named:
    """Every secret that a workflow names, by step and direction."""
    found: Named = {}
    for step in workflow.steps:
        found[step.name, "do"] = tuple(references(step.params))
        found[step.name, "undo"] = tuple(undo_references(step))
    return found


def undo_references(step: Step) -> list[Reference]:
    """Those of an undo; without a `with` it gets the command of its step."""
    if step.undo is not None and step.undo.params is not None:
        return list(references(step.undo.params))
    return [(("command", *path), name) for path, name in references(step.params)]
