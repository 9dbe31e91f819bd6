"""Kin: the instances that one waits for, and the one that waits for it, as their store has them.

A projection is told of them by whoever has a store; without, it tells what the journal alone says.
"""

from typing import Final

from pawlflow.kernel.replay import read_turn
from pawlflow.model.ids import InstanceId, Tenant
from pawlflow.model.inputs import StartInstance
from pawlflow.model.kin import Parent
from pawlflow.projections.reading import UnknownInstanceError, story_of
from pawlflow.projections.story import Story
from pawlflow.store.port import Head, Store

TURNS_ALL: Final = (1 << 63) - 1  # after so many there is nothing but the head


class Kin:
    """Looks other instances of a tenant up."""

    def __init__(self, store: Store, tenant: Tenant, *, driven: bool = True) -> None:
        self.store = store
        self.tenant = tenant
        self.driven = driven  # does a process own the store?

    def head(self, key: str) -> Head | None:
        """What may be asked of an instance at once; None if there is none (yet)."""
        image = self.store.story((self.tenant, InstanceId(key)), TURNS_ALL)
        return None if image is None else image.head

    def story(self, key: str) -> Story | None:
        """The story of an instance; None if there is none (yet)."""
        try:
            return story_of(self.store, self.tenant, InstanceId(key))
        except UnknownInstanceError:
            return None

    def was_removed(self, key: str) -> bool:
        """Was there an instance of this id whose time is over?"""
        return self.store.removed((self.tenant, InstanceId(key))) is not None

    def parent(self, key: str) -> Parent | None:
        """Who waits for an instance; None if nobody does, or there is no such instance."""
        story = self.story(key)
        first = read_turn(story.turns[0][0], story.payloads).input if story else None
        return first.parent if isinstance(first, StartInstance) else None
