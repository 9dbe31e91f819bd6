"""Read models in SQL: the rows behind the views of instances and steps, and how far they are.

They follow from the journal and can be thrown away. Beside them stands one watermark for each
shard, written in the transaction of the rows it speaks for: whoever is killed in between goes on
from there. Stores that speak SQL keep them; the engine knows nothing of them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from pawlflow.model.ids import Digest, InstanceId, Tenant, TimeMs
from pawlflow.store.port import Entry, Head, Ref

Time = str  # by RFC 3339, in UTC with milliseconds
UuidOf = Callable[[Tenant, InstanceId], str]  # what services know an instance by


class InstanceRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One instance. The fields are the columns of table read_instance, in order."""

    shard: int
    ref: Ref
    generation: int  # which building of the rows wrote it
    turn: int  # that it is as of
    tenant: str
    id: str
    uuid: str
    workflow: str
    version: int
    definition: str
    state: str  # in the words of spec 004
    status: str  # in ours
    rollback: str
    paused: bool
    current_step_index: int
    step_count: int
    request_json: str
    result_json: str
    error_step: str
    error_class: str
    error_code: str
    error_message: str
    started_by: str
    parent_id: str
    parent_step: str
    created_at: Time | None
    started_at: Time | None
    closed_at: Time | None
    last_event_at: Time


class StepRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One step, item or undo. The fields are the columns of table read_step, in order."""

    shard: int
    ref: Ref
    place: int
    direction: str  # do | undo
    generation: int
    key: str  # the step key of the present round, a UUID
    called: bool  # is somebody outside given the key?
    name: str
    step: str
    item: int | None
    step_index: int
    kind: str
    state: str
    status: str
    superseded: bool  # an earlier run: another row stands for the step
    attempt: int
    round: int
    role: str
    waits_for: str
    command_subject: str
    command_json: str
    command_published_at: Time | None
    response_json: str
    compensation_subject: str
    compensation_json: str
    failure_class: str
    failure_code: str
    error_message: str
    ready_at: Time | None
    started_at: Time | None
    completed_at: Time | None
    last_event_at: Time | None


class Mark(msgspec.Struct, frozen=True, gc=False):
    """The watermark of a shard: its rows are as of this entry, or of later ones."""

    shard: int
    generation: int
    seq: int
    hash: Digest  # of the frame that ends there
    at: TimeMs  # the journal's time there
    swept: bool  # nothing of an earlier building is left


class Standing(msgspec.Struct, frozen=True, gc=False):
    """A shard: how far its rows are, and where its journal ends."""

    mark: Mark
    seq: int
    hash: Digest

    @property
    def behind(self) -> int:
        """How many entries are not in the rows yet."""
        return max(self.seq - self.mark.seq, 0)


class Page(msgspec.Struct, frozen=True, gc=False):
    """Some frames of a shard, one after the other."""

    prev: Digest  # what the first of them follows on
    seq: int  # of the last entry
    hash: Digest  # of the last frame
    at: TimeMs
    entries: Sequence[Entry]


Rows = tuple[InstanceRow, list[StepRow]]  # of one instance


class ReadModels(Protocol):
    """Where the rows are kept. One thread at a time uses an object of this kind.

    Making one makes the tables and views if they are missing, or of another format.
    """

    exclusive: bool  # while this writes, does the engine wait?

    def standings(self) -> dict[int, Standing]:
        """Every shard, in one question."""
        ...

    def page(self, shard: int, after: int, entries: int) -> Page | None:
        """The frames that follow on a sequence, until so many entries are read; None at the end.

        Raises StoreError if nothing follows there though the journal goes on.
        """
        ...

    def cells(self, refs: Sequence[Ref]) -> dict[Ref, Head]:
        """The cells with these numbers."""
        ...

    def turns(self, shard: int, generation: int, refs: Sequence[Ref]) -> dict[Ref, int]:
        """As of which turn the rows of these instances are, if this building has written them."""
        ...

    def write(
        self,
        before: Mark,
        after: Mark,
        instances: Sequence[InstanceRow],
        steps: Sequence[StepRow],
        gone: Sequence[Ref] = (),
    ) -> bool:
        """Put rows in place, those of cells that are gone away, and move the watermark, at once.

        False, and nothing was written, if the watermark is no longer as it was before.
        """
        ...

    def restart(self, shards: Sequence[int]) -> None:
        """Let the rows of these shards be built again from the beginning of the journal."""
        ...

    def sweep(self, mark: Mark) -> int:
        """Take away what an earlier building left in a shard, little by little; how many rows."""
        ...

    def rows(self, refs: Sequence[Ref]) -> Mapping[Ref, Rows]:
        """The rows of these instances, as of one moment."""
        ...

    def stray(self) -> str | None:
        """A row of an instance or step that there is none of, in words."""
        ...

    def count(self) -> tuple[int, int]:
        """How many instances and steps have rows."""
        ...

    def close(self) -> None:
        """Give everything back."""
        ...
