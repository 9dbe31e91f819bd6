"""A node: an engine that shares the shards of a store with others, on any number of machines.

It owns some shards at a time, and carries on with what is in them. What is for other shards goes by
mail to the nodes that own those; what happens there is looked for in the store.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import Any, Final

from pawlflow.app import engine_on
from pawlflow.effects.runner import Runner
from pawlflow.elsewhere import Elsewhere
from pawlflow.engine import outcomes
from pawlflow.engine.actions import Notify, Reply, Stopped
from pawlflow.engine.drivers import Engine
from pawlflow.engine.node import Share, share_of
from pawlflow.engine.places import shard_of, shard_of_address
from pawlflow.engine.shard import Limits, Shards
from pawlflow.hosting import Hosted
from pawlflow.model.ids import CellId, InstanceId, Tenant
from pawlflow.readmodels import ReadModelWorker
from pawlflow.retaining import gone
from pawlflow.runs import NOTHING, Closed
from pawlflow.store.port import SHARDS, Address, Mail, ShardHead, StoreError
from pawlflow.store.sharing import Membership, SharedStore, View
from pawlflow.trouble import PawlError

log = logging.getLogger("pawl.node")
LOOK_S: Final = (0.02, 1.0)  # between two looks at an instance of another node
FOLLOW_S: Final = 0.2  # after a commit the rows of SQL views are looked after
LOOK_SELDOM_S: Final = 10.0  # and that often if nothing happens: commits of others are theirs
STUCK_S: Final = 10.0  # a loop that does not answer for so long is no engine any more
DRAWN_MAX: Final = 1_000  # ids tried for one that is this node's own
STEPPING_S: Final = 0.03  # of one tenant alone for a commit: a node has its loop for itself


class Node(Hosted):
    """An engine among others on one store."""

    def __init__(self, url: str, *, read_models: bool = False, **options: Any) -> None:
        own: dict[str, Any] = {"driver": "thread", "limits": Limits(stepping_s=STEPPING_S)}
        super().__init__(url, **own | options)
        self.rows = ReadModelWorker(url, lambda: self.held, every_s=LOOK_SELDOM_S)
        self.shows_rows = read_models
        self.looking: asyncio.TimerHandle | None = None
        self.membership: Membership | None = None
        self.elsewhere: Elsewhere
        self.move: asyncio.Task[None]
        self.moved_at = 0.0  # when shards were last taken or given away
        self.moving = False
        self.answered_at = 0.0
        self.settled = asyncio.Event()  # it has looked around, and taken what is its share
        self.leaving = False

    # Coming and going

    def new_engine(self) -> Engine:
        """An engine without a shard yet. Raises StoreError if the store cannot be shared."""
        if not isinstance(self.store, SharedStore):
            message = f"{self.url} is one process's own: nodes share a file, or postgresql://"
            raise StoreError("node.store", message)
        return engine_on(self.store, self, clock=self.clock, limits=self.limits, heads=())

    async def take_part(self) -> None:
        """Join the others, and wait until this node has its share."""
        loop = asyncio.get_running_loop()
        driver = self.driver

        def answer(reply: Reply) -> None:
            loop.call_soon_threadsafe(driver.answer, reply)

        def told(view: View) -> bool:
            loop.call_soon_threadsafe(self.changed_view, view)
            return time.monotonic() - self.answered_at < STUCK_S

        self.answered_at = time.monotonic()
        self.elsewhere = Elsewhere(self.shared.again(), answer)
        driver.engine.forward = self.elsewhere.take
        driver.engine.mailed = self.poke_others
        self.membership = await driver.ask(lambda: self.shared.join(told))
        self.membership.look()  # what it saw before, nobody heard
        await self.settled.wait()
        if self.shows_rows:
            await asyncio.to_thread(self.rows.start)

    def notify(self, action: Notify) -> None:
        """Wake those who wait; the rows of the SQL views follow a moment later."""
        super().notify(action)
        if self.shows_rows and self.looking is None:
            loop = asyncio.get_running_loop()
            self.looking = loop.call_later(FOLLOW_S, self.follow)

    def follow(self) -> None:
        """There is something new for the SQL views."""
        self.looking = None
        self.rows.poke()

    def new_runner(self) -> Runner:
        """Who carries out calls here; others do elsewhere."""
        made = super().new_runner()
        made.alone = False
        return made

    async def close(self) -> None:
        """Hand everything over to the other nodes, and stop."""
        if self.store is None or self.leaving:
            return
        self.leaving = True
        if self.membership is not None:
            await self.retention.close()
            await self.services.close()
            await asyncio.to_thread(self.rows.stop)
            while self.moving:
                await asyncio.wait([self.move])
            self.let_go(tuple(self.core.heads), "this node leaves")
            await self.driver.ask(lambda: None)  # what was under way is durable now
            await asyncio.to_thread(self.membership.close)
            await asyncio.to_thread(self.elsewhere.close)
        await super().close()
        self.leaving = False

    @property
    def name(self) -> str:
        """What the other nodes know this one by."""
        return self.membership.node if self.membership is not None else ""

    @property
    def shared(self) -> SharedStore:
        """The store, as one that several share."""
        assert isinstance(self.store, SharedStore)
        return self.store

    @property
    def core(self) -> Shards:
        """What this node knows of its shards."""
        return self.driver.engine.core

    @property
    def held(self) -> tuple[int, ...]:
        """The shards that are this node's now."""
        return tuple(sorted(self.core.heads))

    # Shards come and go

    def changed_view(self, view: View) -> None:
        """The nodes were looked at: what follows from it for this one?"""
        self.answered_at = time.monotonic()
        if self.leaving or self.moving or self.membership is None:
            return
        if view.began < self.moved_at:  # it shows what was before
            self.membership.look()
            return
        share = share_of(view, self.held)
        if share.lost:
            self.let_go(share.lost, "another node has taken them over")
        if share.lost or share.release or share.take:
            self.moving = True
            self.move = asyncio.ensure_future(self.move_shards(share))
        else:
            self.settled.set()

    async def move_shards(self, share: Share) -> None:
        """Give away what is too much, take what nobody has."""
        assert self.membership is not None
        try:
            if share.release:
                self.let_go(share.release, "other nodes have come")
            if given := share.lost + share.release:  # what is lost, it must not say to have
                await self.driver.ask(lambda: self.shared.release(given))
                self.membership.tell()
            if share.take:
                self.gain(await self.driver.ask(lambda: self.shared.claim(share.take)))
        except StoreError as error:
            log.warning("shards could not be moved, which is tried again: %s", error)
        finally:
            self.moved_at = time.monotonic()
            self.moving = False
            self.settled.set()
            self.membership.look()

    def gain(self, heads: Sequence[ShardHead]) -> None:
        """These are this node's now: what is in flight there is offered again."""
        if not heads:
            return
        outcomes.gain(self.core, heads)
        self.core.took_over |= dict.fromkeys((head.shard for head in heads), self.clock.now())
        self.retention.look()  # what is over there is this node's to remove
        log.info("owns %s more shards, %s of %s", len(heads), len(self.core.heads), SHARDS)
        self.driver.poke()

    def poke_others(self, mail: Sequence[Mail]) -> None:
        """A commit has put mail into the boxes of others."""
        shards = {each.shard for each in mail} - self.core.heads.keys()
        if shards:
            self.shared.poke(sorted(shards))

    def let_go(self, shards: Sequence[int], why: str) -> None:
        """These are no longer this node's: it says nothing more about what is in them."""
        outcomes.lose(self.core, shards, why)
        self.driver.kick()

    def stopped(self, action: Stopped) -> None:
        """Shards went to other nodes; or the store failed, and nothing more happens here."""
        if action.code != "shard.elsewhere":
            super().stopped(action)
            return
        log.info("lets go of %s shards: %s", len(action.shards), action.message)
        gone = set(action.shards)

        def is_gone(cell: CellId) -> bool:
            return shard_of(cell) in gone

        self.runner.abandon(is_gone)
        self.services.abandon(is_gone)
        moved = PawlError(action.code, action.message)
        for waiting in (self.closing, self.changing):
            lines: dict[Address, Any] = waiting  # futures of either kind
            for address in [each for each in lines if shard_of_address(each) in gone]:
                for future in lines.pop(address):
                    if not future.done():
                        future.set_exception(moved)

    # What other nodes own

    def key_for(self, tenant: Tenant, given: str | None) -> InstanceId:
        """A new id is one of this node's own shards: it needs no mail."""
        key = super().key_for(tenant, given)
        if given is None and self.core.heads:
            for number in range(DRAWN_MAX):
                if shard_of_address((tenant, key)) in self.core.heads:
                    break
                key = InstanceId(f"{key[:-4]}{number:04x}")  # its other digits are chance enough
        return key

    async def closed(self, address: Address, seconds: float | None) -> Closed:
        """Wait until an instance is closed, here or on another node."""
        async with asyncio.timeout(seconds):
            wait = LOOK_S[0]
            while True:
                if shard_of_address(address) in self.core.heads:
                    try:
                        return await super().closed(address, None)
                    except PawlError as error:
                        if error.code != "shard.elsewhere":
                            raise
                self.refuse_if_stopped()
                found = self.reader.load([address]).get(address)
                if found is None:
                    raise gone(self.reader, *address)
                if found.head.closed_at is not None:
                    return Closed(NOTHING)
                await asyncio.sleep(wait)
                wait = min(2 * wait, LOOK_S[1])

    async def changed(self, address: Address, turn: int) -> None:
        """Wait until an instance has more turns than these, here or on another node."""
        wait = LOOK_S[0]
        while True:
            if shard_of_address(address) in self.core.heads:
                try:
                    return await super().changed(address, turn)
                except PawlError as error:
                    if error.code != "shard.elsewhere":
                        raise
            self.refuse_if_stopped()
            found = self.reader.story(address, turn)
            if found is not None and found.head.turn > turn:
                return None
            await asyncio.sleep(wait)
            wait = min(2 * wait, LOOK_S[1])
