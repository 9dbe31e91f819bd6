"""A user's file, typed as strictly as can be."""

from dataclasses import dataclass
from typing import Any, TypedDict

from pawlflow import (
    Context,
    Correctable,
    Flow,
    Pawl,
    Ref,
    Retry,
    Run,
    Step,
    Transient,
    agent,
    approval,
    child,
    each,
    emit,
    expr,
    flow,
    secret,
    sleep,
    step,
    success,
    text,
    wait_for,
)


@dataclass
class Party:
    """What a step gives."""

    id: str
    name: str


class Request(TypedDict):
    """What a flow is started with."""

    party: dict[str, Any]
    names: list[str]


@step(retry=Retry(max=3, backoff="constant"), timeout="30s", undo="delete_party")
async def save_party(party: dict[str, Any]) -> Party:
    """Save it."""
    if not party:
        raise Transient("not yet")
    return Party(id="1", name=str(party["name"]))


@step
async def delete_party(party: dict[str, Any], result: dict[str, Any]) -> None:
    """Undo it."""


@step
def count(items: list[str]) -> int:
    """Run in a thread."""
    return len(items)


@step(max_corrections=2, mutates=False)
async def tell(ctx: Context, who: str, number: int = 0) -> str:
    """Ask for a context."""
    ctx.log(who)
    ctx.heartbeat()
    if ctx.feedback:
        raise Correctable(["no"])
    return who * number


@flow
def inner(request: Any) -> Any:
    """Be a child."""
    return count(request.names)


@flow(timeout="30m", failure_policy="compensate", search={"name": "input.party.name"})
def provision(request: Any) -> Any:
    """Use every word."""
    party = save_party(request.party)
    number = count(request.names)
    ok = approval("release", role="Boss", show={"party": party}, after=[party, number])
    tell(party.name, number, after=[ok], when=(number > 3) & (request.tell != False))  # noqa: E712
    told = each(request.names, lambda name: tell(name, number, name="tell-all"), limit=3)
    kid = child(inner, {"names": told}, after=[success(ok)])
    other = inner(kid)
    nap = sleep("1s", after=other)
    done = wait_for("done", match=lambda event: event.id == party.id, timeout="1h", after=nap)
    words = agent("writer", "Write", input={"of": done}, check={"type": "object"})
    emit("all.done", {"words": words, "token": secret("key")})
    again = tell.options(name="again", timeout="3s")(expr("x.name", x=party), number)
    return {"party": party.id, "said": text("{} of {}", number, party.name), "again": again}


@flow(build=True)
def bundle(request: Request) -> Any:
    """Real values while it is built."""
    for name in request["names"]:
        tell(name, len(name), name=f"tell-{name}")


async def main() -> None:
    """Run it."""
    party: Party = await save_party({"name": "x"})
    said: str = await tell("me", number=2)
    given: Ref[Party] = save_party({"name": "y"})
    kept: Step[[list[str]], int] = count
    flowing: Flow[..., Any] = provision
    async with Pawl("memory:") as pawl:
        run: Run = await pawl.start(provision, {"party": {}}, id="p-1")
        await pawl.start(flowing)
        assert await run.result(timeout="5m") == [party, said, given, kept]
        async for event in run.events():
            assert event["eventType"]
        await pawl.signal("p-1", "done", {"id": 1})
