"""Shedding: what begins something is turned away while too much of it waits. Nothing else ever is.

A start that another process posts bears a key, so the starts of a tenant that wait can be counted
by an index, and the same start posted twice is one.
"""

import threading
from collections.abc import Iterable
from hashlib import sha256
from typing import Final

from msgspec.structs import replace

from pawlflow.engine.places import mail_of
from pawlflow.kernel.draft import Rejected
from pawlflow.model.ids import CellId, Tenant
from pawlflow.model.inputs import Input, StartInstance
from pawlflow.model.system import EmitEvent
from pawlflow.store.port import Mail, Store

BEGINS: Final = "begin:"  # the keys of mail that begins something
WAITING_MAX: Final = 10_000  # of it, of one tenant: some seconds of work for its owner


def letter(cell: CellId, incoming: Input, entropy: bytes) -> Mail:
    """An input as mail; a start is known by what it says, an event is another each time."""
    mail = mail_of(cell, incoming)
    match incoming:
        case StartInstance():
            digest = sha256(mail.input).hexdigest()[:32]
            return replace(mail, key=f"{BEGINS}{cell.key}:{digest}")
        case EmitEvent():
            return replace(mail, key=f"{BEGINS}{entropy.hex()}")
        case _:
            return mail


class Room:
    """Room for starts on their way; a tenant may fill as much of it as it leaves free."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.used = 0
        self.by: dict[Tenant, int] = {}
        self.lock = threading.Lock()

    def enter(self, tenant: Tenant) -> bool:
        """One more, if there is room."""
        with self.lock:
            mine = self.by.get(tenant, 0)
            if mine >= self.most - self.used:
                return False
            self.used, self.by[tenant] = self.used + 1, mine + 1
            return True

    def leave(self, tenant: Tenant) -> None:
        """One less."""
        with self.lock:
            self.used -= 1
            if left := self.by.pop(tenant) - 1:
                self.by[tenant] = left


def crowded(store: Store, tenants: Iterable[Tenant], most: int = WAITING_MAX) -> set[Tenant]:
    """The tenants of whom so much waits to begin that no more may be posted."""
    return {each for each in tenants if store.posted(each, BEGINS, most) >= most}


def full(tenant: Tenant) -> Rejected:
    """What is said to who is turned away."""
    return Rejected(
        "engine.overloaded", f"many starts and events of tenant {tenant} wait in the mailbox"
    )


def turned_away(store: Store, mail: Mail, most: int) -> Rejected | None:
    """Why this may not be posted now; None if it may. What waits already may be posted again."""
    tenant, key = mail.cell.tenant, mail.key or ""
    if not key.startswith(BEGINS) or store.posted(tenant, key, 1):
        return None
    if store.posted(tenant, BEGINS, most) < most:
        return None
    message = f"{most:,} starts and events of tenant {tenant} wait in the mailbox already"
    return Rejected("engine.overloaded", message)
