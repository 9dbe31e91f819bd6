"""The chapters of `pawl demo`. Nothing is acted: each runs, and is then looked at in the store."""

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from pawlflow.app import open_store
from pawlflow.cli import demo_steps
from pawlflow.cli.demo_stage import PAWL, Bar, Chapter, Stage
from pawlflow.cli.executors import Executors
from pawlflow.cli.follow import Begin, Task, drive
from pawlflow.cli.output import count
from pawlflow.cli.screen import progress_bar
from pawlflow.cli.session import CLOSED, Session
from pawlflow.embedded import Pawl
from pawlflow.model.ids import InstanceId, Tenant
from pawlflow.projections.proof import verify_store
from pawlflow.runs import Run
from pawlflow.store.port import SHARDS, Filter

PARCELS: Final = 25
EFFECTS: Final = 4 * PARCELS
KILLS: Final = (EFFECTS // 4, EFFECTS * 5 // 8)  # effects booked when the process is killed
CHILD: Final = "pawlflow.cli.demo_child"
LOOK_S: Final = 0.01
PATIENCE_S: Final = 60.0
TENANT: Final = Tenant("default")

__all__ = ["Chapter", "crash", "gate", "proof", "saga"]


def play(stage: Stage, workflow: str, key: str, value: Any, *, by: str, gate: str = "") -> Any:
    """Run an instance in this process, and show it; somebody else decides its gate."""
    executors = Executors()
    executors.add_module(demo_steps)
    pawl = Pawl(stage.url)
    pawl.load(stage.folder / f"{workflow}.yaml")
    deciding: list[asyncio.Task[None]] = []

    async def begin(entered: Pawl) -> Run:
        run = await entered.start(workflow, value, id=key, by=by)
        if gate:
            deciding.append(asyncio.ensure_future(decide(stage, entered, f"{key}/{gate}")))
        return run

    with stage.screen() as screen:
        here = Session(stage.url, TENANT, stage.quiet)
        task = Task(here, InstanceId(key), executors, screen)
        return asyncio.run(in_time(task, begin, pawl))


async def in_time(task: Task, begin: Begin, pawl: Pawl) -> dict[str, Any]:
    """No chapter may take for ever."""
    async with asyncio.timeout(PATIENCE_S):
        return await drive(task, begin, pawl)


async def decide(stage: Stage, pawl: Pawl, review: str) -> None:
    """Approve from another process, while this one owns the store."""
    key, turns = InstanceId(review.partition("/")[0]), 0
    while not pawl.reader.reviews(TENANT):
        turns += 1
        await pawl.changed((TENANT, key), turns)
    words = APPROVE.format(review).split()
    process = await asyncio.create_subprocess_exec(
        *PAWL, *words, "--db", stage.url, stdout=subprocess.DEVNULL, start_new_session=True
    )
    try:
        await process.wait()
    except asyncio.CancelledError:  # the demo ends early: its folder is about to go
        if process.returncode is None:
            process.kill()
        await process.wait()
        raise


APPROVE: Final = "review approve {} --by ann --role ReleaseManager --comment fine"


def saga(stage: Stage) -> Chapter:
    """The card is refused at the second attempt, and the goods go back to the shelf."""
    stage.say("Reserve the goods, charge the card, ship. The card has expired.\n")
    value = {"sku": "mug", "amount": 12, "card": "expired"}
    shown = play(stage, "order", "order-1", value, by="zoe")
    error, undo = shown["error"] or {}, shown["steps"]["reserve"]["undo"]
    held = (shown["state"], shown["rollback"], undo) == ("failed", "full", "done")
    attempts = shown["steps"]["charge"]["attempts"]
    said = f"{error.get('step')} failed after {attempts} attempts; the goods were given back"
    return Chapter(said, held, {"turns": shown["turns"], "attempts": attempts})


def gate(stage: Stage) -> Chapter:
    """Ann approves what zoe asked for, from a second terminal."""
    stage.say("Zoe asks for a release. Ann approves it from a second terminal, with:\n")
    stage.command(*APPROVE.format("release-1/gate").split())
    stage.say("")
    shown = play(stage, "release", "release-1", {"repo": "shop"}, by="zoe", gate="gate")
    output = shown["output"] or {}
    held = shown["state"] == "completed" and output.get("approved_by") == "ann"
    said = f"approved by {output.get('approved_by')}; {output.get('release')} is live"
    return Chapter(said, held, {"turns": shown["turns"]})


def crash(stage: Stage) -> Chapter:
    """Parcels in a process of their own, which is killed twice and started again each time."""
    stage.say(
        f"{PARCELS} parcels of 4 steps in a process of its own, which gets a SIGKILL, twice.\n"
    )
    with stage.bar("effects in the ledger", EFFECTS) as bar:
        killed = [kill_at(stage, bar, at) for at in KILLS]
        ended = run_to_end(stage, bar)
    calls, effects = stage.booked()
    done = parcels_done(stage)
    again = calls - effects
    stage.say(f"the ledger: {calls} calls were made, {again} of them again after a kill")
    stage.say(f"            {effects} effects happened, for {EFFECTS} steps: each key counts once")
    held = all(killed) and ended == 0 and (effects, done) == (EFFECTS, PARCELS)
    said = (
        f"{len(KILLS)} kills, {done} of {PARCELS} parcels done; {calls} calls, "
        f"{effects} effects for {EFFECTS} steps"
    )
    return Chapter(said, held, {"kills": len(KILLS), "calls": calls, "effects": effects})


@contextmanager
def child_of(stage: Stage) -> Iterator["subprocess.Popen[bytes]"]:
    """The process that does the work; it does not outlive the block, not even by a signal."""
    workflow = str(stage.folder / "parcel.yaml")
    command = [sys.executable, "-m", CHILD, stage.url, workflow, str(PARCELS)]
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        child = subprocess.Popen(command, start_new_session=True)
    except OSError:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        raise
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        yield child
    finally:
        child.kill()
        child.wait()


def kill_at(stage: Stage, bar: Bar, effects: int) -> bool:
    """Let the process work until so many effects are booked, then kill it. Was it at work?"""
    with child_of(stage) as child:
        watch(stage, bar, child, until=effects)
    booked = stage.booked()[1]
    store = open_store(stage.url)
    try:
        flying = sum(head.calls for head in store.in_flight(range(SHARDS), 0, 10 * PARCELS))
    finally:
        store.close()
    stage.say(f"killed process {child.pid}: {booked} effects done, {flying} attempts in flight")
    return child.returncode == -signal.SIGKILL and flying > 0


def run_to_end(stage: Stage, bar: Bar) -> int | None:
    """Let the process work until it ends by itself."""
    with child_of(stage) as child:
        watch(stage, bar, child, until=EFFECTS + 1)
    stage.say(f"process {child.pid} ended by itself, with {child.returncode}")
    return child.returncode


def watch(stage: Stage, bar: Bar, child: "subprocess.Popen[bytes]", *, until: int) -> None:
    """Look at the ledger until it has so many effects, or the process has ended."""
    end = time.monotonic() + PATIENCE_S
    booked = 0
    while booked < until and child.poll() is None and time.monotonic() < end:
        booked = stage.booked()[1]
        bar.set(booked)
        time.sleep(LOOK_S)
    bar.set(stage.booked()[1])


def parcels_done(stage: Stage) -> int:
    """How many parcels have completed, as the store says."""
    store = open_store(stage.url)
    try:
        found = store.instances(Filter(tenant=TENANT, workflow="parcel", limit=10 * PARCELS))
    finally:
        store.close()
    return sum(head.state == CLOSED[0] for head in found)


def proof(stage: Stage) -> Chapter:
    """Everything that was decided is decided again from the journal, and compared by its bytes."""
    stage.command("replay", "--all")
    store = open_store(stage.url)
    try:
        with progress_bar("deciding again") as progress:
            report = verify_store(store, None if stage.quiet else progress)
    finally:
        store.close()
    for each in report.differences[:10]:
        stage.say(f"  {each.message} [{each.code}]")
    turns, instances = count(report.turns, "turn"), count(report.instances, "instance")
    verdict = "something differs" if report.differences else "the same bytes"
    said = f"{turns} of {instances} decided again: {verdict}"
    stage.say(said)
    figures = {"turns": report.turns, "instances": report.instances}
    return Chapter(said, not report.differences, figures)
