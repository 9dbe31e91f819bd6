"""The engine: the core and a real store. It carries out what the core asks for.

When it is called is a driver's matter: see `pawlflow.driving`.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Protocol, TypeVar

from pawlflow.engine import actions as act
from pawlflow.engine import outcomes
from pawlflow.engine.cells import is_trusted
from pawlflow.engine.clock import Clock
from pawlflow.engine.marks import reached
from pawlflow.engine.shard import Shards
from pawlflow.engine.system.beside import marks_beside
from pawlflow.kernel.draft import Rejected
from pawlflow.model.ids import Digest, TimeMs
from pawlflow.store.fair_mail import FairMail
from pawlflow.store.port import Address, CellImage, Mail, Store, StoreError

log = logging.getLogger("pawl.engine")
StoreAction = act.Append | act.Load | act.ReadMail | act.ReadDue | act.ReadInFlight | act.ReadHeads
Images = dict[Address, CellImage]
Broken = dict[Address, StoreError]
Marks = dict[Address, set[str]]
T = TypeVar("T")
ROUNDS_MAX: Final = 16  # before others get the loop: recovery may go on for many seconds
SAFETY_MS: Final = 30_000  # pokes are hints: the mailbox is looked at this often even without one


class Outside(Protocol):
    """Who is told what became durable. Called where the engine runs."""

    def publish(self, action: act.Publish) -> None:
        """Carry out effects."""
        ...

    def notify(self, action: act.Notify) -> None:
        """Turns were committed."""
        ...

    def stopped(self, action: act.Stopped) -> None:
        """The engine can do nothing more."""
        ...


class Engine:
    """The core and its store: one call of `pump` does all that can be done now."""

    def __init__(self, core: Shards, store: Store, clock: Clock, outside: Outside) -> None:
        self.core = core
        self.store = store
        self.mail = FairMail(store)
        self.clock = clock
        self.outside = outside
        self.rounds_max = ROUNDS_MAX
        self.reply: Callable[[act.Reply], None] = lambda _: None
        self.forward: Callable[[act.Forward], None] = self.refuse
        self.mailed: Callable[[Sequence[Mail]], None] = lambda _: None
        self.carry: Callable[[StoreAction], None] = lambda action: self.ask(action)()

    def pump(self) -> TimeMs | None:
        """Work; returns when there will be more to do. Never raises for itself."""
        return self.guarded(self.pump_on)

    def guarded(self, work: Callable[[], T]) -> T | None:
        """Do something. Whatever breaks in it is a defect of ours or a store that is unwell.

        Nothing is known to be durable any more: the shards stop, and everybody who waits is told.
        """
        try:
            return work()
        except StoreError as error:
            code, message = error.code, str(error)
        except Exception as error:
            log.exception("the engine broke")
            code, message = "engine.broken", f"{type(error).__name__}: {error}"
        outcomes.stop(self.core, code, message)
        for action in self.core.work(self.clock.now()):
            self.perform(action)
        return None

    def pump_on(self) -> TimeMs | None:
        """Work for some rounds; if there is more to do, it is time again at once.

        Once something was let out others get the loop, so that it begins.
        """
        for _ in range(self.rounds_max):
            actions = self.core.work(self.clock.now())
            if not actions:
                return self.core.next_wake()
            for action in actions:
                self.perform(action)
            if self.core.inbox.count and any(isinstance(each, act.Publish) for each in actions):
                break
        return self.clock.now()

    def drain(self) -> None:
        """Work until there is nothing to do now."""
        while (wake := self.pump()) is not None and wake <= self.clock.now():
            pass

    def perform(self, action: act.Action) -> None:
        """Carry out one action."""
        match action:
            case act.Publish():
                self.outside.publish(action)
            case act.Reply():
                self.reply(action)
            case act.Forward():
                self.forward(action)
            case act.Notify():
                self.outside.notify(action)
            case act.Stopped():
                self.outside.stopped(action)
            case _:
                self.carry(action)

    def refuse(self, action: act.Forward) -> None:
        """Say that another node owns it; whoever alone owned a store has been replaced."""
        if action.token is not None:
            refused = Rejected("shard.elsewhere", "another node owns it now")
            self.reply(act.Reply(action.token, refused))

    def ask(self, action: StoreAction) -> Callable[[], None]:
        """Do what is asked of the store, on whatever thread; gives how the core is told of it."""
        core, store = self.core, self.store
        match action:
            case act.Append():
                error = self.append(action)
                return lambda: core.appended(error, self.clock.now())
            case act.Load():
                cells = self.load(action)
                return lambda: core.loaded(*cells)
            case act.ReadMail():
                found = self.mail.read(action.shards, action.after, action.limit)
                return partial(core.mail_read, found)
            case act.ReadDue():
                return partial(core.due_read, store.due(action.shards, action.after, action.limit))
            case act.ReadInFlight():
                flying = store.in_flight(action.shards, action.after, action.limit)
                return partial(core.in_flight_read, flying)
            case act.ReadHeads():
                heads = store.heads(action.shards)
                return lambda: core.heads_read(heads, self.clock.now())

    def append(self, action: act.Append) -> StoreError | None:
        """Commit; gives what went wrong."""
        try:
            self.store.append(action.batch)
        except StoreError as error:
            return error
        if action.batch.mail:
            self.mailed(action.batch.mail)
        return None

    def load(self, action: act.Load) -> tuple[Images, dict[Digest, bytes], Broken, Marks]:
        """Read cells, and the definitions they run under."""
        images, broken = self.read_cells(action.cells)
        for address in [each for each, image in images.items() if not is_trusted(image)]:
            reached("snapshot.distrusted")
            whole = self.store.story(address)
            assert whole is not None
            images[address] = whole
        known = self.core.plans.known
        run_under = (Digest(image.head.definition) for image in images.values())
        wanted = [each for each in run_under if each and known.get(each) is None]
        definitions = self.store.definitions(list(dict.fromkeys([*action.definitions, *wanted])))
        marks = marks_beside(self.store, action.beside) if action.beside else {}
        return images, definitions, broken, marks

    def read_cells(self, cells: Sequence[Address]) -> tuple[Images, Broken]:
        """Cells by address; one that is damaged does not keep the others from being read."""
        try:
            return self.store.load(cells), {}
        except StoreError:
            images: Images = {}
            broken: Broken = {}
        for cell in cells:
            try:
                images |= self.store.load([cell])
            except StoreError as error:
                broken[cell] = error
        return images, broken
