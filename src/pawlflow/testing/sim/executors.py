"""Executors: they do what they are told, fail, dawdle, fall over, and some of them lie.

Each keeps what it did by step key and gives the same result again, unless the profile says no.
"""

from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from pawlflow.model.failure import FailureClass, failure_of
from pawlflow.model.ids import NO_ITEM, CellId, StepKey, Tenant
from pawlflow.model.inputs import Receipt
from pawlflow.model.intents import Call, Intent, Stop
from pawlflow.model.payload import Payload
from pawlflow.testing.sim.bus import Bus
from pawlflow.testing.sim.flows import TENANTS
from pawlflow.testing.sim.language import PAID
from pawlflow.testing.sim.ledger import Ledger
from pawlflow.testing.sim.world import World

Send = Callable[[CellId, Receipt, str], None]
QUICK_MS: Final = (5, 1_500)
SLOW_MS: Final = (10_000, 100_000)
FATES: Final[tuple[tuple[str, FailureClass], ...]] = (
    ("exec.transient", "transient"),
    ("exec.terminal", "terminal"),
    ("exec.validation", "validation"),
)
LIES: Final = ("next", "last", "far", "zero", "unknown", "tenant", "again")


class Executors:
    """Everybody who carries out effects."""

    def __init__(
        self, world: World, bus: Bus, ledger: Ledger, send: Send, happened: Callable[[Call], None]
    ) -> None:
        self.world = world
        self.bus = bus
        self.ledger = ledger
        self.send = send
        self.happened = happened
        self.dedupe = True
        self.done: dict[StepKey, Payload] = {}
        self.stopped: dict[tuple[StepKey, int], None] = {}
        self.rooms: tuple[str, ...] = ()
        self.judge: Callable[[Call], Payload] = nobody

    def command(self, _: str, intent: Intent) -> None:
        """The engine publishes an intent."""
        call = intent.call if isinstance(intent, Stop) else intent
        kind = "stop" if isinstance(intent, Stop) else "call"
        self.world.tell(f"{kind} {name_of(call)}")
        self.bus.send(f"{kind}:{name_of(call)}", lambda: self.hear(intent))

    def hear(self, intent: Intent) -> None:
        """A command arrives."""
        if isinstance(intent, Stop):
            if not self.world.faults.fires("exec.deaf", name_of(intent.call), "ignores a stop"):
                self.stopped[intent.call.key, intent.call.attempt] = None
                self.settle_stopped(intent.call)
            return
        name = name_of(intent)
        low, high = QUICK_MS
        if self.world.faults.fires("exec.slow", name, "takes its time"):
            low, high = SLOW_MS
        if self.world.faults.fires("exec.crash_before", name, "falls before it does anything"):
            return
        took = self.world.dice.between(f"work:{name}", low, high)
        self.world.after(took, lambda: self.work(intent))

    def settle_stopped(self, call: Call) -> None:
        """A stopped attempt says so, if it has not done its work."""
        if call.key not in self.done:
            self.emit(call, Receipt(call.key, call.attempt, "cancelled"), "cancelled")

    def work(self, call: Call) -> None:
        """The moment in which it happens, or does not."""
        if (call.key, call.attempt) in self.stopped:
            return
        if call.direction == "ask":
            self.answer(call)
            return
        name, faults, tenant = name_of(call), self.world.faults, call.cell.tenant
        if self.dedupe and call.key in self.done:
            self.emit(call, Receipt(call.key, call.attempt, "ok", self.done[call.key]), "again")
            return
        for fault, kind in FATES:
            if faults.fires(fault, name, f"fails: {kind}"):
                failure = failure_of(kind, f"sim.{kind}", "as planned", tenant=tenant)
                failed = Receipt(call.key, call.attempt, "failed", failure=failure)
                self.emit(call, failed, kind)
                return
        self.ledger.record(call, self.world.now)
        self.happened(call)
        good: dict[str, object] = {"ok": True, "n": 1}
        if self.rooms:
            size = self.world.dice.between(f"list:{name}", 0, 4)
            good["list"] = [self.world.dice.between(f"of:{name}", 0, 3) for _ in range(size)]
        bad = faults.fires("exec.invalid", name, "gives a result of the wrong shape")
        result = Payload.of({"n": 1} if bad else good, tenant)
        self.done[call.key] = result
        self.world.tell(f"effect {name} {call.key.hex()[:8]}")
        if not faults.fires("exec.crash_after", name, "falls after it did it"):
            self.emit(call, Receipt(call.key, call.attempt, "ok", result), "ok")

    def answer(self, call: Call) -> None:
        """The judge rules, if anybody reaches it."""
        name, faults = name_of(call), self.world.faults
        if faults.fires("exec.transient", name, "nobody could ask the policies"):
            tenant = call.cell.tenant
            failure = failure_of("transient", "sim.transient", "as planned", tenant=tenant)
            failed = Receipt(call.key, call.attempt, "failed", failure=failure)
            self.emit(call, failed, "unasked")
        elif not faults.fires("exec.crash_after", name, "falls after it asked"):
            self.emit(call, Receipt(call.key, call.attempt, "ok", self.judge(call)), "judged")

    def emit(self, call: Call, receipt: Receipt, what: str) -> None:
        """A receipt sets out; now and then a lie goes with it."""
        name = name_of(call)
        if call.target == PAID:
            receipt = replace(receipt, usage=self.usage_of(call))
        self.send(call.cell, receipt, f"receipt:{name}:{what}")
        if self.world.faults.fires("exec.lie", name, "lies"):
            self.lie(call, receipt)

    def usage_of(self, call: Call) -> Payload | None:
        """What an attempt cost, however often it is asked; some do not say."""
        known = self.ledger.reported.get((call.key, call.attempt))
        if known is None:
            dice, name = self.world.dice, name_of(call)
            usd = {"usd": dice.pick(f"usd:{name}", (0, 0.25, 1.5))}
            said: tuple[dict[str, Any], ...] = ({}, usd, usd | {"tokens": 30})
            known = dice.pick(f"usage:{name}", said)
            self.ledger.reported[call.key, call.attempt] = known
        return Payload.of(known, call.cell.tenant) if known else None

    def lie(self, call: Call, receipt: Receipt) -> None:
        """A receipt that must change nothing."""
        name, cell = name_of(call), call.cell
        how = self.world.dice.pick(f"lie:{name}", LIES)
        failure = failure_of("terminal", "sim.lie", "a lie", tenant=cell.tenant)
        key, attempt = call.key, call.attempt
        nothing = Payload.of({"ok": True, "lie": 1}, cell.tenant)
        match how:
            case "next":
                told = Receipt(key, attempt + 1, "failed", failure=failure)
            case "last":
                told = Receipt(key, attempt - 1, "failed", failure=failure)
            case "far":
                told = Receipt(key, attempt + 50, "ok", nothing)
            case "zero":
                told = Receipt(key, 0, "ok", nothing)
            case "unknown":
                told = Receipt(StepKey(self.world.dice.bytes(f"key:{name}")), 1, "ok", nothing)
            case "tenant":
                other: Tenant = next((t for t in TENANTS if t != cell.tenant), cell.tenant)
                cell = CellId(other, cell.workflow, cell.key)
                told = Receipt(key, attempt, "ok", Payload.of({"ok": True, "lie": 2}, other))
            case _:
                told = receipt
        self.send(cell, told, f"lie:{name}:{how}")


def nobody(call: Call) -> Payload:
    """Where no policies are published, nobody is asked."""
    raise AssertionError(f"{name_of(call)} asks, and there are no policies")


def name_of(call: Call) -> str:
    """What a call is about, the same in every run of a seed."""
    cell, step = call.cell, call.step
    what = step if call.item == NO_ITEM else f"{step}[{call.item}]"
    return f"{cell.tenant}/{cell.key}.{what}.{call.direction}.{call.round}.{call.attempt}"
