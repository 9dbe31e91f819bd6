"""The shard core: inputs in, actions out. It does no I/O, knows no thread and no clock of its own.

Drain what waits, step each input, append, and only then publish, reply and acknowledge. There is no
batching timer: while a commit is under way the next batch is stepped on top of it, and taken back
should it fail. All owned shards share a commit, each with a frame of its own. The drivers and the
fault simulator run this same code.
"""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Final

from pawlflow.engine import actions as act
from pawlflow.engine import outcomes
from pawlflow.engine.cells import Live, rebuild
from pawlflow.engine.core import TURNS_MAX as TURNS_MAX
from pawlflow.engine.core import Core
from pawlflow.engine.core import Limits as Limits
from pawlflow.engine.fair import Offer
from pawlflow.engine.marks import reached
from pawlflow.engine.places import offer_of, shard_of, shard_of_address
from pawlflow.engine.staging import Staging
from pawlflow.engine.stepping import FOR_SHARDS, step_offer
from pawlflow.engine.timers import PAGE
from pawlflow.kernel.draft import Rejected, open_intents
from pawlflow.model.codec import CodecError
from pawlflow.model.ids import CellId, Digest, TimeMs, WorkflowName
from pawlflow.model.inputs import StartInstance, Tick
from pawlflow.model.payload import PayloadError
from pawlflow.store.port import (
    Address,
    CellImage,
    Head,
    Mail,
    ShardHead,
    StoreConflictError,
    StoreError,
    StoreFullError,
    StoreUnknownError,
    Taken,
)

AHEAD_MS: Final = 50  # of journal time that a batch is stepped in while another commits
SHARED_S: Final = 0.003  # of stepping, while tenants meet: nobody waits long behind another
SHARED_MS: Final = 1_000  # since they met last
LOADS_MAX: Final = 500  # cells read at a time: as many as fit into a batch
MAIL_PAGE: Final = 500
RECOVERY_PAGE: Final = 200  # cells offered again at a time, so that new work is not held up
UNKNOWN_MAX: Final = 20  # a disk that fails so often in a row is broken
FULL_RETRY_MS: Final = 1_000


class Shards(Core):
    """The shards that one node owns."""

    # The loop

    def work(self, now: TimeMs) -> list[act.Action]:
        """Everything that can be done now. An empty list: nothing, until `next_wake`.

        While tenants meet, what a commit lets out begins before the next batch is stepped: else
        the functions of one would wait for the turns of another.
        """
        first = bool(self.out) and self.is_shared(now)
        if self.stopped is None and not first:
            if self.making is None:
                self.fire(now)
            if self.staging is None:
                self.offer_again(now)
            self.stage(now)
            self.ask()
        out, self.out = self.out, []
        return out

    def next_wake(self) -> TimeMs | None:
        """When there will be something to do even if nothing comes in; not before an answer."""
        if self.staging is not None:
            return None
        times = [self.deadlines.next_at(), self.reoffers.next_at(), self.full_until]
        return TimeMs(min((at for at in times if at is not None), default=0)) or None

    def fire(self, now: TimeMs) -> None:
        """Tell the cells whose time has come."""
        for tenant, key in self.deadlines.take_due(now):
            self.put(Offer(CellId(tenant, WorkflowName(""), key), (tenant, key), Tick()))

    def stage(self, now: TimeMs) -> None:
        """Step what waits into the next batch; its commit begins when no other is under way."""
        if self.full_until is not None:
            if self.full_until - FULL_RETRY_MS <= now < self.full_until:  # a clock may be set back
                return
            self.full_until = None  # perhaps there is room again: the next commit will tell
        if self.making and self.staging is None and not self.making.answers_something():
            self.making = None  # what it stands on is durable, and it came to nothing
        staging = self.making = self.making or Staging(now)
        self.refuse_unreadable(staging)
        if 0 <= now - staging.now <= AHEAD_MS:
            self.fill(staging, now)
        self.plans.look_again()
        if self.staging is None:
            self.commit(staging)
        elif not staging.offers and not staging.unreadable:
            self.making = None

    def refuse_unreadable(self, staging: Staging) -> None:
        """Mail that is no input has its answer too."""
        for shard, taken in self.unreadable:
            if shard not in self.heads:
                self.held.discard(taken.id)
            else:
                staging.shard(self.tip(shard), staging.now)
                staging.unreadable.append((shard, taken))
                staging.taken.append(taken)
        self.unreadable = []

    def fill(self, staging: Staging, now: TimeMs) -> None:
        """Step what waits, within the limits of a batch."""
        limits = self.limits
        turns = 1 if self.buggify("flush.split") else limits.turns
        began = at = self.clock.stopwatch()
        until, latest = (began + share - staging.took for share in self.shares(now))
        while staging.turns < turns and staging.bytes < limits.bytes:
            over = at > until and (at > latest or self.inbox.ready.tenants < 2)
            if over and staging.answers_something():
                break
            offer = staging.sends.popleft() if staging.sends else self.inbox.take()
            if offer is None:
                break
            if self.staging is not None and type(offer.input) in FOR_SHARDS:
                self.inbox.put(offer, hot=True, front=True)  # it looks at what is durable
                break
            step_offer(self, staging, offer)
            at = self.clock.stopwatch()
        staging.took += at - began

    def commit(self, staging: Staging) -> None:
        """Ask for a batch to be made durable, if there is anything in it."""
        staging.mail_leftovers()
        self.making = None
        if staging.answers_something():
            owned = [self.heads[shard] for shard in staging.fenced]
            self.staging = staging
            self.began = self.clock.stopwatch()
            self.out.append(act.Append(staging.seal(self.clock.entropy(), owned)))
            self.tips = {head.shard: head for head in staging.new_heads()}

    def shares(self, now: TimeMs) -> tuple[float, float]:
        """How long this batch may be stepped for one tenant, and for as long as several wait.

        One alone gets longer ones, for less cost. Where several wait, half as long as a commit
        takes, and four times that while they do. If they did lately, as long as a commit takes, or
        half as long while one is under way.
        """
        most, shared = self.limits.stepping_s, max(SHARED_S, self.took)
        if self.inbox.ready.tenants > 1:
            self.met = now
            return min(most, shared / 2), min(most, 2 * shared)
        if not self.is_shared(now):
            return most, most
        alone = min(most, shared if self.staging is None else shared / 2)
        return alone, alone

    def is_shared(self, now: TimeMs) -> bool:
        """Did inputs of several tenants wait lately?"""
        return abs(now - self.met) <= SHARED_MS

    def ask(self) -> None:
        """Ask for what is missing: cells, mail, deadlines, calls to offer again."""
        owned = tuple(self.heads)
        if not owned:
            return
        cells: list[Address] = []
        if not self.loading and (self.silent or self.inbox.cold.cells):
            silent = (each for each in islice(self.silent, LOADS_MAX) if each not in self.hot)
            cells = list(dict.fromkeys([*self.inbox.cold.pick(LOADS_MAX), *silent]))
            for batch in (self.staging, self.making):  # what is not written cannot be read yet
                if batch is not None and batch.touched:
                    cells = [each for each in cells if each not in batch.touched]
        if cells:
            self.loading = dict.fromkeys(cells)
            self.asked["cells"] = self.gains
            lines = [self.inbox.waiting[each][0] for each in cells if each in self.inbox.waiting]
            beside = tuple(each for each in cells if each in self.hot)
            self.out.append(act.Load(tuple(cells), self.plans.missing(lines), beside))
        if self.mail_waits and not self.mail_reading and len(self.held) < 2 * MAIL_PAGE:
            self.mail_reading, self.mail_waits = True, False
            self.asked["mail"] = self.gains
            self.out.append(act.ReadMail(owned, self.mail_after, MAIL_PAGE))
        if self.deadlines.must_read():
            self.deadlines.reading = True
            self.asked["due"] = self.gains
            self.out.append(act.ReadDue(owned, self.deadlines.horizon, PAGE))
        if self.recover_after is not None and not self.recovering and not self.silent:
            self.recovering = True
            self.asked["calls"] = self.gains
            shards = tuple(self.recovered)
            self.out.append(act.ReadInFlight(shards, self.recover_after, RECOVERY_PAGE))

    def offer_again(self, now: TimeMs) -> None:
        """Publish the open calls of silent cells once more, of what is durable."""
        for address in self.reoffers.take_silent(now):
            self.silent[address] = None
        if self.reoffers.sweep_at is not None and self.reoffers.sweep_at <= now:
            self.reoffers.sweep_at = None
            self.recover_after, self.recovered = 0, dict.fromkeys(self.heads)
        ahead = self.unwritten()
        silent = (each for each in islice(self.silent, LOADS_MAX) if each not in ahead)
        for address in [each for each in silent if each in self.hot]:
            del self.silent[address]
            live = self.hot.get(address)
            if live is None or live.cell is None or (live.head and live.head.quarantined):
                continue
            intents = tuple(open_intents(live.cell.state))
            if intents:
                reached("offered.again")
                self.out.append(act.Publish(intents, again=True))
                if address not in self.reoffers.placed:
                    self.reoffers.heard(address, now, calls=len(intents))

    # Answers of the driver

    def loaded(
        self,
        images: Mapping[Address, CellImage],
        definitions: Mapping[Digest, bytes],
        broken: Mapping[Address, StoreError] | None = None,
        beside: Mapping[Address, set[str]] | None = None,
    ) -> None:
        """Cells that were asked for; those that are missing do not exist, or cannot be read."""
        self.plans.add(definitions, self.wanted_definitions())
        if self.is_stale("cells"):  # a shard may have been lost, written elsewhere, and gained
            self.loading = {}
        for address in self.loading:
            if address not in self.hot and shard_of_address(address) in self.heads:
                self.hot.put(
                    self.live_of(address, images.get(address), (broken or {}).get(address))
                )
            if address in (beside or ()) and (live := self.hot.get(address)):
                live.beside = (beside or {})[address]
            self.inbox.place(address, hot=True)
        self.loading = {}

    def wanted_definitions(self) -> list[Digest]:
        """The definitions that the cells being read were to start with."""
        lines = (self.inbox.waiting.get(each) for each in self.loading)
        firsts = (line[0].input for line in lines if line)
        return [each.definition for each in firsts if isinstance(each, StartInstance)]

    def live_of(self, address: Address, image: CellImage | None, damage: StoreError | None) -> Live:
        """The live cell of an image, a cell that does not exist yet, or one that is broken."""
        if image is None:
            cell = CellId(address[0], WorkflowName(""), address[1])
            missing = Live(cell, None, shard_of(cell), None)
            missing.trouble = None if damage is None else Rejected(damage.code, str(damage))
            return missing
        try:
            plan = self.plans.of(Digest(image.head.definition)) if image.head.definition else None
            return rebuild(image, plan)
        except StoreError as error:
            reached("cell.damaged")
            broken = Live(image.head.cell, None, image.head.shard, image.head)
            broken.trouble = Rejected(error.code, str(error))
            return broken

    def appended(self, error: StoreError | None, now: TimeMs) -> None:
        """The outcome of the commit under way."""
        staging = self.staging
        assert staging is not None
        ahead = 0.0 if self.making is None else self.making.took  # it went on meanwhile
        self.took = self.clock.stopwatch() - self.began - ahead
        if error is not None:
            outcomes.unmake(self)
        match error:
            case None:
                self.staging = None
                outcomes.committed(self, staging, now)
            case StoreUnknownError():
                self.out.append(act.ReadHeads(tuple(staging.fenced)))
            case StoreConflictError():
                reached("commit.fenced")
                outcomes.lose(self, error.shards, str(error))
                outcomes.try_again(self, staging)
            case StoreFullError():
                reached("commit.full")
                self.full_until = TimeMs(now + FULL_RETRY_MS)
                outcomes.try_again(self, staging)
            case _:
                outcomes.stop(self, error.code, str(error))

    def heads_read(self, heads: Sequence[ShardHead], now: TimeMs) -> None:
        """Was the batch of unknown outcome applied? Neither is assumed: its id says so."""
        staging = self.staging
        assert staging is not None
        outcomes.unmake(self)
        mine = self.heads
        moved = [h.shard for h in heads if h.shard not in mine or h.epoch != mine[h.shard].epoch]
        applied = [head.batch == staging.id for head in heads if head.shard not in moved]
        if moved:
            outcomes.lose(self, moved, "another node owns them now")
        if applied and all(applied):
            reached("recover.unknown_applied")
            self.staging = None
            outcomes.forget(self, staging)
            outcomes.committed(self, staging, now)
        elif self.unknowns >= UNKNOWN_MAX:
            outcomes.stop(self, "store.io", f"{UNKNOWN_MAX} commits in a row failed: see the disk")
        else:
            reached("recover.unknown_lost")
            self.unknowns += 1
            outcomes.try_again(self, staging)

    def mail_read(self, rows: Sequence[Mail]) -> None:
        """Mail for the owned shards, oldest first."""
        self.mail_reading = False
        stale = self.is_stale("mail")
        self.mail_waits = self.mail_waits or stale or len(rows) >= MAIL_PAGE
        for row in rows:
            if not stale:
                self.mail_after = max(self.mail_after, row.id)
            if row.id not in self.held:
                self.held.add(row.id)
                self.take_mail(row)

    def take_mail(self, row: Mail) -> None:
        """Line up an input that came by mail; one that cannot be read is refused, on the record."""
        try:
            self.put(offer_of(row))
        except (CodecError, PayloadError) as error:
            reached("mail.unreadable")
            taken = Taken(row.id, "mail.unreadable", str(error))
            self.unreadable.append((row.shard, taken))

    def due_read(self, heads: Sequence[Head]) -> None:
        """Deadlines that were asked for."""
        self.deadlines.read(heads, stale=self.is_stale("due"))

    def in_flight_read(self, heads: Sequence[Head]) -> None:
        """Cells whose calls are to be offered again."""
        self.recovering = False
        if not self.is_stale("calls"):
            self.recover_after = heads[-1].ref if len(heads) >= RECOVERY_PAGE else None
        owned = (head for head in heads if head.shard in self.heads)
        self.silent |= {(head.cell.tenant, head.cell.key): None for head in owned}
