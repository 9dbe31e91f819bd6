"""Functions that compute, each in a process of its own. They must be importable by their names."""

import os
import signal
import time
from pathlib import Path

from pawlflow import Correctable, Terminal, step


@step(name="count", pool="process")
def count(n):
    """Where it ran, and what it computed."""
    return {"pid": os.getpid(), "sum": sum(range(n))}


@step(name="tell", pool="process")
def tell(ctx, word):
    """What it knows of its attempt, and what it says during it."""
    ctx.log(f"attempt {ctx.attempt} says {word}")
    ctx.heartbeat()
    ctx.spent(usd=0.25)
    return [ctx.attempt, ctx.key, ctx.tenant, ctx.feedback, ctx.step, ctx.item]


@step(name="die", pool="process")
def die(ctx, folder):
    """Killed the first time, as by the system when memory is short."""
    Path(folder, f"tried-{ctx.attempt}").touch()
    ctx.log("before")
    if ctx.attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return os.getpid()


@step(name="spin", pool="process")
def spin(folder):
    """Computes for ever, and hears of nothing."""
    Path(folder, str(os.getpid())).touch()
    while True:
        time.sleep(0.01)


@step(name="wrong", pool="process")
def wrong(how):
    """Raises in every way."""
    if how == "terminal":
        raise Terminal("no use")
    if how == "correctable":
        raise Correctable(["too long"])
    if how == "exit":
        raise SystemExit(3)
    if how == "unsendable":
        return lambda: None
    raise KeyError(how)


@step(name="two", pool="process")
def two(folder):
    """Waits until so many of them run at the same time that one more would be too many."""
    mine = Path(folder, str(os.getpid()))
    mine.touch()
    running = len(list(Path(folder).iterdir()))
    time.sleep(0.05)
    mine.unlink()
    return running
