"""Keeping: checkpoints of loops become durable through the same door as everything else."""

from pawlflow.driving import InlineDriver
from pawlflow.effects.context import Cancelled, Terminal, Transient
from pawlflow.engine.actions import Notify
from pawlflow.kernel.draft import Rejected
from pawlflow.kernel.system.loop import Loop
from pawlflow.living import system_of
from pawlflow.model.checkpoints import CloseLoop, KeepCheckpoint, loop_cell, loop_key
from pawlflow.model.ids import StepKey, Tenant
from pawlflow.model.intents import Call
from pawlflow.model.payload import Payload
from pawlflow.store.port import Address, Store


class Checkpoints:
    """Keeps and reads the checkpoints of the loops that run in this process."""

    def __init__(self, driver: InlineDriver, reader: Store) -> None:
        self.driver = driver
        self.reader = reader
        self.open: dict[Address, dict[StepKey, None]] = {}  # loops, by their instances

    async def kept(self, call: Call) -> dict[str, Payload]:
        """What was kept for a call, by any attempt of it."""
        found = loop_of(self.reader, call.cell.tenant, call.key)
        if found is None:
            return {}
        if found.closed is not None:
            raise Cancelled(f"{call.cell.key} is closed: nobody waits for {call.step} any more")
        self.note(call)
        return {each.name: each.result for each in found.kept.values() if each.result is not None}

    async def keep(self, call: Call, name: str, result: Payload) -> Payload:
        """Keep a result; gives what is kept under the name: the first that came. Durable then."""
        cell = call.cell
        place = (cell.workflow, cell.key, call.step, call.item, call.round, call.attempt)
        asked = KeepCheckpoint(*place, name, result)
        size = len(result.data or b"")
        self.note(call)
        outcome = await self.driver.submit(loop_cell(cell.tenant, call.key), asked, size)
        if not isinstance(outcome, Rejected):
            return result
        match outcome.code:
            case "checkpoint.kept":  # another attempt was first: its result counts
                return (await self.kept(call))[name]
            case "loop.closed":
                raise Cancelled(f"{cell.key} is closed: nobody waits for {call.step} any more")
            case "checkpoint.too_many":
                raise Terminal(f"{name!r} is not kept: {outcome.detail} are the most there may be")
            case _:
                said = f"checkpoint {name!r} is not kept: {outcome.detail} [{outcome.code}]"
                raise Transient(said)

    def note(self, call: Call) -> None:
        """Remember that this instance has a loop to be closed with it."""
        self.open.setdefault((call.cell.tenant, call.cell.key), {})[call.key] = None

    def notice(self, action: Notify) -> None:
        """Close the loops of instances that are closed now.

        Should this process die before it does, a loop stays open: then it is never asked again.
        """
        for turn in action.turns if self.open else ():
            address = (turn.cell.tenant, turn.cell.key)
            if turn.head.closed_at is not None and address in self.open:
                for key in self.open.pop(address):
                    self.driver.tell(loop_cell(turn.cell.tenant, key), CloseLoop())


def loop_of(store: Store, tenant: Tenant, key: StepKey) -> Loop | None:
    """The checkpoints of a call as they are; None if there are none yet."""
    return system_of(store, (tenant, loop_key(key)), Loop)
