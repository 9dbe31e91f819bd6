"""A store with everything in flight, and its end, wherever that comes about."""

from contextlib import closing
from pathlib import Path

from pawlflow.app import open_store
from pawlflow.cli.deadletters import letters_in, original_of
from pawlflow.engine import stepping
from pawlflow.engine.clock import SystemClock
from pawlflow.engine.places import mail_of
from pawlflow.kernel import step as kernel
from pawlflow.model.ids import CellId, InstanceId, Tenant, WorkflowName
from pawlflow.model.inputs import Signal
from pawlflow.model.operate import RedriveInput
from pawlflow.model.payload import Payload
from pawlflow.moving import move, rows_of
from pawlflow.projections.proof import verify_store
from pawlflow.sides import side_of
from pawlflow.store.moves import PARTS
from pawlflow.store.port import SHARDS, Filter
from pawlflow.testing import Fail, Hang, Lab
from pawlflow.trouble import PawlError

FLOWS = Path(__file__).with_name("flows.yaml")
LARGE = "x" * 100_000
TENANT = Tenant("default")
STARTS = {
    "call-1": ("call", {"city": "Graz", "weight": 7}),
    "nap-1": ("nap", {}),
    "word-1": ("word", {"to": "me"}),
    "early-1": ("word", {"to": "early"}),
    "gate-1": ("gate", {}),
    "parent-1": ("parent", {}),
    "fan-1": ("fan", {"items": [*range(6)]}),
    "line-1": ("line", {}),
    "line-2": ("line", {}),
    "saga-1": ("saga", {}),
    "again-1": ("again", {}),
    "stuck-1": ("stuck", {}),
    "poison-1": ("word", {"to": "poison"}),
    "paused-1": ("nap", {}),
    "long-1": ("fan", {"items": [*range(300)]}),
}
STATES = {
    **dict.fromkeys(("call-1", "fan-1", "again-1", "long-1"), "running"),
    **dict.fromkeys(("nap-1", "paused-1", "word-1", "early-1", "poison-1"), "waiting"),
    **dict.fromkeys(("gate-1", "parent-1", "line-1"), "waiting"),
    "line-2": "queued",
    "saga-1": "compensating",
    "stuck-1": "escalated",
}


def raising(cell, incoming, stamps, *rest):
    """A program that breaks on one signal, and on no other input."""
    if isinstance(incoming, Signal) and incoming.event == "poison":
        raise ZeroDivisionError("a broken program")
    return kernel.step(cell, incoming, stamps, *rest)


async def begin(url, patch):
    """Start everything, and leave it in the middle."""
    lab = Lab(url)
    lab.load(FLOWS)
    lab.script("quick", {"n": 1})
    lab.script("large", {"text": LARGE})
    lab.script("item", [*({"n": n, "pad": "y" * 500} for n in range(200)), Hang()], each=False)
    for name in ("slow", "unhold"):
        lab.script(name, hang=True)
    lab.script("broken", Fail.terminal("it is broken"))
    lab.script("flaky", Fail.transient("not yet"))
    async with lab:
        for name in ("kept", "gone"):  # both have ended, and one was removed
            await lab.start(name, {"text": LARGE}, id=f"{name}-1")
        await lab.skip("2h")
        for key in ("long-1", *(key for key in STARTS if key != "long-1")):
            workflow, given = STARTS[key]
            await lab.start(workflow, given, id=key)
        await lab.pause("paused-1", by="ann")
        await lab.claim("gate-1", "sign", by="zoe", role="editor")
        await lab.signal("nap-1", "nobody.waits", {"kept": True})
        patch.setattr(stepping, "step", raising)
        for refused in (lab.signal("poison-1", "poison", {"text": LARGE}), lab.unpause("nap-1")):
            try:
                await refused
            except PawlError:
                continue
        patch.undo()


def post(url):
    """Mail that nobody has taken yet: with a key, and without one."""
    store = open_store(url)
    try:
        cell = CellId(TENANT, WorkflowName("word"), InstanceId("early-1"))
        for n, key in ((5, "once"), (6, None)):
            said = {"n": n, "to": "early", "pad": "z" * n * 20_000}
            store.post([mail_of(cell, Signal("word.said", Payload.of(said, TENANT), "me"), key)])
    finally:
        store.close()


async def finish(url):
    """Bring everything to its end, in virtual time. Gives the state of every instance."""
    lab = Lab(url)
    lab.load(FLOWS)
    for name in ("quick", "slow", "item", "unhold", "broken", "flaky"):
        lab.script(name, {"n": 2})
    async with lab:
        await lab.unpause("paused-1", by="ann")
        await lab.approve("gate-1", "sign", by="zoe", role="editor")
        await lab.retry("stuck-1", "ship", by="ann")
        for to in ("me", "child"):
            await lab.emit("word.said", {"to": to, "n": 1})
        for key in ("line-1", "line-2"):
            await lab.signal(key, "next.please", {})
        [dead] = [each for each in letters_in(lab.reader, TENANT) if each.disposed.kind == "dead"]
        again = RedriveInput(dead.number, original_of(dead), "ann", None)
        await lab.hand_in(dead.disposed.cell, again)
        await lab.signal("poison-1", "word.said", {"to": "poison", "n": 1})
        await lab.skip("1d")
        return {row["id"]: row["state"] for row in lab.list(limit=200)}


def carried(source, target, progress=None):
    """Move a store from one URL to another."""
    with closing(side_of(source)) as here, closing(side_of(target)) as there:
        return move(here, there, SystemClock(), progress)


def journals(url):
    """Every frame of a store, and every row beside them, as bytes and numbers."""
    with closing(side_of(url)) as side:
        frames = {shard: list(side.frames(shard, 0)) for shard in range(SHARDS)}
        rows = {part: list(rows_of(side, part)) for part in PARTS}
        heads = [(head.seq, head.hash, head.batch, head.now) for head in side.shards()]
        return frames, rows, heads, side.mail_last(), side.search_count()


def turns(url):
    """Every turn of every cell, as bytes, however they were committed together."""
    store = open_store(url)
    try:
        found = {}
        for head in store.refs():
            cell = head.cell
            image = store.story((cell.tenant, cell.key))
            found[cell.key] = [(entry.number, entry.data, entry.hash) for entry in image.entries]
        return found
    finally:
        store.close()


def differences(url):
    """What `pawl replay --all` would find."""
    store = open_store(url)
    try:
        return verify_store(store).differences
    finally:
        store.close()


def states(url):
    """The state of every instance."""
    store = open_store(url)
    try:
        found = store.instances(Filter(tenant=TENANT, limit=200))
        return {head.cell.key: head.state for head in found}
    finally:
        store.close()


def the_same(these, those):
    """Are these journals those? Of dispositions a file keeps the order in time, and no numbers."""
    plain = [
        (
            frames,
            rows | {"dispositions": sorted((tenant, at) for tenant, _, at in rows["dispositions"])},
            *rest,
        )
        for frames, rows, *rest in (these, those)
    ]
    return plain[0] == plain[1]
