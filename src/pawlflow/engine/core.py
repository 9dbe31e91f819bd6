"""What the shard core knows, and the way in: inputs line up here until they are stepped.

`shard.py` is the loop over it; `stepping.py` and `outcomes.py` are its other rooms.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from pawlflow.engine.actions import Action, Forward, Reply, Stopped
from pawlflow.engine.cells import Hot, Live
from pawlflow.engine.clock import Clock
from pawlflow.engine.fair import Inbox, Offer
from pawlflow.engine.places import shard_of
from pawlflow.engine.plans import Plans
from pawlflow.engine.staging import Staging
from pawlflow.engine.timers import Deadlines, Reoffers
from pawlflow.kernel.draft import Rejected
from pawlflow.model.ids import CellId, StepKey, TimeMs
from pawlflow.model.inputs import Input, StartInstance, Tick
from pawlflow.store.port import Address, Ref, ShardHead, Taken

TURNS_MAX: Final = 500  # a commit's share of 500 turns is lost in the cost of the turns (bench)
BYTES_MAX: Final = 1024 * 1024
STEPPING_S_MAX: Final = 0.016  # so that nobody waits longer for a commit to begin
STARTS_WAITING_MAX: Final = 40_000  # room for starts in memory; of it, one tenant gets half
WAITING_MAX: Final = 200_000  # inputs of any kind in memory, beyond which no start is taken


class Limits(msgspec.Struct, frozen=True):
    """How much goes into one commit. The simulator makes these small."""

    turns: int = TURNS_MAX
    bytes: int = BYTES_MAX
    stepping_s: float = STEPPING_S_MAX
    starts: int = 0  # room for starts in memory; 0: as much as by default


class Core:
    """What a node knows about the shards it owns, and what waits for them."""

    def __init__(
        self,
        heads: Iterable[ShardHead],
        clock: Clock,
        *,
        hot: Hot | None = None,
        limits: Limits | None = None,
        buggify: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self.heads = {head.shard: head for head in heads}
        self.clock = clock
        self.hot = hot or Hot()
        self.limits = limits or Limits()
        self.buggify = buggify
        self.plans = Plans()
        self.inbox = Inbox()
        self.deadlines = Deadlines()
        self.reoffers = Reoffers()
        self.out: list[Action] = []
        self.staging: Staging | None = None  # the batch whose commit is under way
        self.tips: dict[int, ShardHead] = {}  # where shards stand once that is durable
        self.unknowns = 0  # commits in a row whose outcome was unknown, and that were lost
        self.making: Staging | None = None  # the next batch: it is stepped while another commits
        self.loading: dict[Address, None] = {}
        self.held: set[int] = set()  # mail that is in the inbox, or on its way out of it
        self.mail_after = 0
        self.unreadable: list[tuple[int, Taken]] = []  # mail that is no input, by shard
        self.mail_waits = True  # there may be mail that was not read
        self.mail_reading = False
        self.recover_after: Ref | None = 0  # calls in flight up to here were offered again
        self.recovered = dict.fromkeys(self.heads)  # of these shards
        self.recovering = False
        self.silent: dict[Address, None] = {}  # cells whose calls are to be offered again
        self.full_until: TimeMs | None = None  # the store had no room: no starts until then
        self.took_over: dict[int, TimeMs] = {}  # by shard: older attempts get their time again
        self.met = TimeMs(0)  # when inputs of two tenants waited last
        self.began = self.took = 0.0  # the last commit: when, and for how long
        self.begun: dict[StepKey, TimeMs] = {}  # and those whose executor came later: at this time
        self.stopped: Stopped | None = None
        self.gains = 0  # how often shards were gained
        self.asked: dict[str, int] = {}  # what is being read: how often they had been gained then

    def tip(self, shard: int) -> ShardHead:
        """Where a shard stands, what is being written included."""
        return self.tips.get(shard) or self.heads[shard]

    def unwritten(self) -> Mapping[Address, Live]:
        """Cells that are ahead of what is durable, whatever becomes of the commit under way."""
        return {} if self.making is None else self.making.touched

    def is_stale(self, what: str) -> bool:
        """Was this asked for before shards were gained? Then it says nothing about those."""
        return self.asked.get(what) != self.gains

    def submit(
        self,
        cell: CellId,
        incoming: Input,
        token: int | None = None,
        size: int = 0,
        *,
        fresh: bool = False,
    ) -> None:
        """Take an input from this process. Its answer comes as a Reply, once it is durable."""
        refused = self.refuses(cell, incoming)
        if refused is not None:
            if token is not None:
                self.out.append(Reply(token, refused))
            return
        offer = Offer(cell, (cell.tenant, cell.key), incoming, token, 0, size)
        if fresh and (shard := shard_of(cell)) in self.heads and offer.address not in self.hot:
            self.hot.put(Live(cell, None, shard, None))
        self.put(offer)

    def refuses(self, cell: CellId, incoming: Input) -> Rejected | None:
        """Is there no place for this now? Only beginnings are turned away, whatever waits.

        A receipt answers a call, and of those only so many are under way; others have a caller. A
        tenant may fill as much room as it leaves free, so the next one always finds some.
        """
        if self.stopped is not None:
            return Rejected(self.stopped.code, self.stopped.message)
        if isinstance(incoming, StartInstance):
            if self.full_until is not None:
                return Rejected("store.full", "the disk is full; what runs goes on")
            inbox, mine = self.inbox, self.inbox.starts_of.get(cell.tenant, 0)
            room = (self.limits.starts or STARTS_WAITING_MAX) - inbox.starts
            if mine >= room or inbox.count >= WAITING_MAX:
                return Rejected("engine.overloaded", f"{inbox.count} inputs wait already")
        return None

    def put(self, offer: Offer, *, front: bool = False) -> None:
        """Line up an input for its cell."""
        hot = offer.address in self.hot.cells  # what is live is ours
        if not hot and shard_of(offer.cell) not in self.heads:
            self.forward(offer)
            return
        self.inbox.put(offer, hot=hot, front=front)

    def forward(self, offer: Offer) -> None:
        """Another node owns its shard. What came by mail waits there, and so does time."""
        self.held.discard(offer.mail)
        if not offer.mail and not isinstance(offer.input, Tick):
            self.out.append(Forward(offer.cell, offer.input, offer.token))

    def knows_open(self, address: Address) -> bool:
        """Is this instance live and not closed? False says nothing: it may have to be read."""
        live = self.hot.cells.get(address)
        return live is not None and live.head is not None and live.head.closed_at is None

    def delivers_at_once(self, address: Address) -> bool:
        """May a send be stepped in its own batch? Not if an older one may still be in the mail."""
        unread = self.mail_waits or self.mail_reading or (self.staging and self.staging.mail)
        return not unread and address in self.hot.cells and address not in self.inbox.waiting

    def poked(self) -> None:
        """Somebody says that there is mail. A hint: it may be wrong."""
        self.mail_waits = True
