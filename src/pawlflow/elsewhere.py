"""Elsewhere: inputs for cells that other nodes own. They go by mail, and their answers come back.

A thread posts what has gathered in one transaction, pokes the owners, and looks for the answers
that somebody waits for: soon at first, then less often.
"""

import logging
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Final

from pawlflow.app import outcome_of
from pawlflow.engine.actions import Accepted, Forward, Reply
from pawlflow.engine.clock import SystemClock
from pawlflow.engine.places import mail_of
from pawlflow.kernel.draft import Rejected
from pawlflow.model.inputs import Receipt, StartInstance
from pawlflow.shedding import BEGINS, Room, crowded, full
from pawlflow.store.port import Mail, Store, StoreError
from pawlflow.store.sharing import SharedStore

log = logging.getLogger("pawl.node")
LOOK_S: Final = (0.002, 0.1)  # between two looks for answers: first, and at most
AT_ONCE: Final = 500
STARTS_MAX: Final = 20_000  # on their way; of these, one tenant gets half
ANSWER_S_MAX: Final = 60.0  # nodes fall, and are replaced within seconds


class Elsewhere:
    """The way to other nodes, with a handle on the store of its own."""

    def __init__(self, store: Store, answer: Callable[[Reply], object]) -> None:
        assert isinstance(store, SharedStore)
        self.store: Store = store
        self.shared: SharedStore = store
        self.answer = answer  # called on whatever thread
        self.clock = SystemClock()
        self.given: SimpleQueue[Forward | None] = SimpleQueue()
        self.waiting: dict[int, Forward] = {}  # by the number of its mail
        self.looks: dict[int, float] = {}  # how long it has been waited for
        self.room = Room(STARTS_MAX)
        self.closed = False
        self.thread = threading.Thread(target=self.work, name="pawl-elsewhere", daemon=True)
        self.thread.start()

    def take(self, action: Forward) -> None:
        """An input for another node."""
        if self.closed:
            self.refuse(action)
        elif not begins(action) or self.room.enter(action.cell.tenant):
            self.given.put(action)
        elif action.token is not None:
            self.answer(Reply(action.token, full(action.cell.tenant)))

    def close(self) -> None:
        """Post what is there, and wait for no more answers."""
        self.closed = True
        self.given.put(None)
        self.thread.join()
        self.store.close()

    def work(self) -> None:
        """On the thread."""
        wait = LOOK_S[0]
        while True:
            gathered, ended = self.gather(wait if self.waiting else None)
            if gathered:
                self.post(gathered)
                wait = LOOK_S[0]
            if ended:
                self.give_up("engine.closed", "the node was closed; it is in the mailbox")
                return
            if self.waiting:
                self.look(wait)
                wait = min(2 * wait, LOOK_S[1])

    def gather(self, seconds: float | None) -> tuple[list[Forward], bool]:
        """What is to be posted, and whether that was all. Waits for something to do."""
        found: list[Forward] = []
        try:
            while len(found) < AT_ONCE:
                given = self.given.get(timeout=seconds)
                if given is None:
                    return found, True
                found.append(given)
                seconds = 0  # only what is there
        except Empty:
            return found, False
        return found, False

    def post(self, gathered: list[Forward]) -> None:
        """Put it into the mailbox. What cannot be put there is told, or tried again."""
        try:
            gathered = self.admitted(gathered)
            mail: list[Mail] = [self.letter(each) for each in gathered]
            numbers = self.store.post(mail)
            self.shared.poke(dict.fromkeys(each.shard for each in mail))
        except StoreError as error:
            log.warning("inputs for other nodes wait: %s", error)
            for each in gathered:
                if each.token is not None:
                    self.settle(each, Rejected(error.code, str(error)))
                elif isinstance(each.input, Receipt):  # may come twice, and must come once
                    self.given.put(each)
            return
        for number, each in zip(numbers, gathered, strict=True):
            if each.token is not None:
                self.waiting[number], self.looks[number] = each, 0.0

    def admitted(self, gathered: list[Forward]) -> list[Forward]:
        """All but the starts of tenants that have too many in the mailbox; they are told so."""
        starts = [each for each in gathered if begins(each)]
        crowd = crowded(self.store, {each.cell.tenant for each in starts})
        for each in starts:
            if each.cell.tenant in crowd:
                self.settle(each, full(each.cell.tenant))
        return [each for each in gathered if not begins(each) or each.cell.tenant not in crowd]

    def letter(self, each: Forward) -> Mail:
        """An input as mail; each start is counted, and has an answer of its own."""
        key = f"{BEGINS}{self.clock.entropy().hex()}" if begins(each) else None
        return mail_of(each.cell, each.input, key)

    def look(self, waited: float) -> None:
        """Which answers are there?"""
        try:
            found = self.shared.answers(list(self.waiting))
        except StoreError as error:
            self.give_up(error.code, str(error))
            return
        for number, taken in found.items():
            each = self.waiting.pop(number)
            del self.looks[number]
            outcome = outcome_of(taken, each.cell.key)
            self.settle(each, outcome)
        for number in [each for each in self.waiting if self.is_late(each, waited)]:
            late = "the owner has not answered yet; the request is in its mailbox"
            del self.looks[number]
            self.settle(self.waiting.pop(number), Rejected("store.busy", late))

    def is_late(self, number: int, waited: float) -> bool:
        """Has it been waited for long enough?"""
        self.looks[number] += waited
        return self.looks[number] > ANSWER_S_MAX

    def give_up(self, code: str, message: str) -> None:
        """Nobody can say what became of what is in the mailbox."""
        waiting, self.waiting, self.looks = self.waiting, {}, {}
        for each in waiting.values():
            self.settle(each, Rejected(code, message))

    def refuse(self, action: Forward) -> None:
        """It comes too late."""
        if action.token is not None:
            self.answer(Reply(action.token, Rejected("engine.closed", "the node was closed")))

    def settle(self, each: Forward, outcome: Accepted | Rejected) -> None:
        """Tell the caller."""
        assert each.token is not None
        if begins(each):
            self.room.leave(each.cell.tenant)
        self.answer(Reply(each.token, outcome))


def begins(action: Forward) -> bool:
    """Is it a start that somebody waits for?"""
    return action.token is not None and isinstance(action.input, StartInstance)
