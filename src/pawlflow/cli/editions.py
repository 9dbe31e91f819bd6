"""Editions: a definition that changed under the version it had before is told to who publishes it.

It is no error: while a workflow is written it changes all the time. But two instances of one
version may then do different things, and nobody sees it in a list.
"""

from collections.abc import Iterable
from typing import Final

from pawlflow.app import is_there
from pawlflow.cli.output import note
from pawlflow.cli.session import Session, reading
from pawlflow.definition.canonical import definition_bytes, hash_of_bytes
from pawlflow.definition.shape import Workflow
from pawlflow.model.ids import Digest
from pawlflow.store.port import Filter, Store

OPEN: Final = ("created", "queued", "running", "waiting", "escalated", "compensating")
COUNTED_MAX: Final = 1_000  # instances in flight: beyond that the number says no more


def note_changed(here: Session, workflows: Iterable[Workflow]) -> None:
    """Say which of these are published already, under the same version and with other content."""
    if not is_there(here.url):
        return
    with reading(here) as store:
        known = {
            (each.name, each.version): each.definition for each in store.published(here.tenant)
        }
        for workflow in workflows:
            before = known.get((workflow.name, workflow.version))
            if before not in (None, hash_of_bytes(definition_bytes(workflow))):
                note(changed_words(here, store, workflow, before))


def changed_words(here: Session, store: Store, workflow: Workflow, before: Digest) -> str:
    """What that means for those in flight, and the way out."""
    wanted = Filter(tenant=here.tenant, workflow=workflow.name, states=OPEN, limit=COUNTED_MAX)
    running = sum(head.definition == before for head in store.instances(wanted))
    return (
        f"{workflow.name} changed, and is still version {workflow.version}: instances in flight "
        f"({running:,} now) keep the old definition, and new ones get this one; "
        f"raise metadata.version to {workflow.version + 1} to tell them apart"
    )
