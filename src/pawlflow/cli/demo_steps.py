"""The effects of `pawl demo`: a small shop, and a ledger of what really happened in it.

An effect may be asked for again when its process dies before the answer is kept. Each brings the
same key then, and the ledger books a key once: that is how an effect happens exactly once.
"""

import asyncio
import os
import sqlite3
from functools import cache
from pathlib import Path
from typing import Any

from pawlflow.effects.context import Context, Terminal, Transient
from pawlflow.effects.steps import step

LEDGER = "PAWL_DEMO_LEDGER"  # the environment names the file; default ledger.db, here
TABLES = """
CREATE TABLE IF NOT EXISTS called (key TEXT, step TEXT, instance TEXT, process INTEGER);
CREATE TABLE IF NOT EXISTS booked (key TEXT PRIMARY KEY, step TEXT, instance TEXT);
"""


@cache
def ledger(path: Path) -> sqlite3.Connection:
    """The ledger of this process; what is in it survives the process."""
    book = sqlite3.connect(path, isolation_level=None, timeout=10)
    book.execute("PRAGMA journal_mode=wal")
    book.execute("PRAGMA synchronous=off")  # it must survive a kill, not a power cut
    book.executescript(TABLES)
    return book


def book_here() -> sqlite3.Connection:
    """The ledger that the environment names."""
    return ledger(Path(os.environ.get(LEDGER, "ledger.db")).absolute())


async def happen(ctx: Context, seconds: float) -> str:
    """Let an effect take its time, and book it once; gives a name for what came of it."""
    book = book_here()
    call = (ctx.key, ctx.step, ctx.instance)
    book.execute("INSERT INTO called VALUES (?, ?, ?, ?)", (*call, os.getpid()))
    await asyncio.sleep(seconds)
    book.execute("INSERT OR IGNORE INTO booked VALUES (?, ?, ?)", call)
    return ctx.key[:8]


@step(name="stock.reserve")
async def reserve(ctx: Context, sku: str) -> dict[str, Any]:
    """Set goods aside."""
    return {"hold": f"{sku}-{await happen(ctx, 0.4)}"}


@step(name="stock.release")
async def release(ctx: Context, hold: str) -> dict[str, Any]:
    """Give them back: the undo of reserving."""
    await happen(ctx, 0.4)
    return {"released": hold}


@step(name="card.charge")
async def charge(ctx: Context, card: str, amount: float) -> dict[str, Any]:
    """Take money. The bank is slow the first time, and an expired card is refused for good."""
    if ctx.attempt == 1:
        await asyncio.sleep(0.3)
        raise Transient("the bank did not answer")
    if card == "expired":
        await asyncio.sleep(0.3)
        raise Terminal(f"the card was refused: {amount:.2f} not charged")
    return {"charge": f"c-{await happen(ctx, 0.3)}"}


@step(name="card.refund")
async def refund(ctx: Context, charge: str) -> dict[str, Any]:
    """Give money back: the undo of charging."""
    await happen(ctx, 0.3)
    return {"refunded": charge}


@step(name="parcel.send")
async def send(ctx: Context, hold: str) -> dict[str, Any]:
    """Ship what was set aside."""
    return {"parcel": f"p-{await happen(ctx, 0.3)}", "of": hold}


@step(name="parcel.recall")
async def recall(ctx: Context, parcel: str) -> dict[str, Any]:
    """Call a parcel back: the undo of shipping."""
    await happen(ctx, 0.3)
    return {"recalled": parcel}


@step(name="ci.build")
async def build(ctx: Context, repo: str) -> dict[str, Any]:
    """Make an image."""
    return {"image": f"{repo}:{await happen(ctx, 0.6)}"}


@step(name="deploy.promote")
async def promote(ctx: Context, image: str) -> dict[str, Any]:
    """Let an image go live."""
    await happen(ctx, 0.5)
    return {"release": f"live-{image}"}


def span(ctx: Context) -> float:
    """Between a fifth and half a second, by the key: the same every time."""
    return 0.2 + int(ctx.key[:2], 16) / 1_000


@step(name="parcel.pick")
async def pick(ctx: Context) -> dict[str, Any]:
    """Fetch it from the shelf."""
    return {"shelf": await happen(ctx, span(ctx))}


@step(name="parcel.pack")
async def pack(ctx: Context) -> dict[str, Any]:
    """Put it into a box."""
    return {"box": await happen(ctx, span(ctx))}


@step(name="parcel.label")
async def label(ctx: Context) -> dict[str, Any]:
    """Print a number on it."""
    return {"number": await happen(ctx, span(ctx))}


@step(name="parcel.hand_over")
async def hand_over(ctx: Context) -> dict[str, Any]:
    """Give it to the driver."""
    return {"driver": await happen(ctx, span(ctx))}
