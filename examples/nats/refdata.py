"""The service refdata: `pawl worker refdata`."""

from pawlflow import Terminal
from pawlflow.effects.context import Context
from pawlflow.worker import Worker

worker = Worker(service="refdata")
PARTIES: dict[str, str] = {}  # a database, in earnest


@worker.command("refdata.v1.party.save")
async def save(name: str, ctx: Context) -> dict[str, str]:
    """The key makes the same party of the same command, however often it comes."""
    if not name:
        raise Terminal("a party has a name")
    PARTIES[f"party-{ctx.key[:8]}"] = name
    return {"party": f"party-{ctx.key[:8]}"}


@worker.command("refdata.v1.party.delete")
def delete(party: str) -> None:
    """The undo: a plain function runs in a thread."""
    PARTIES.pop(party, None)
