"""A flow: a workflow written as a function, with a gate, a condition and an undo."""

import asyncio

from pawlflow import Pawl, Retry, approval, flow, step


@step(retry=Retry(max=3, initial="100ms"), timeout="30s", undo="delete_party")
async def save_party(party: dict) -> dict:
    return {"id": f"party-{party['name']}"}


@step
async def delete_party(party: dict, result: dict) -> None:
    print(f"undo: {result['id']} is gone")


@step(timeout="30s")
async def save_account(party_id: str, login: str) -> dict:
    return {"id": f"{login}@{party_id}"}


@step(timeout="30s")
def link(party_id: str, account_id: str) -> None:
    print(f"{account_id} belongs to {party_id}")


@flow(timeout="30m", failure_policy="compensate")
def provision_parties(request):
    party = save_party(request.party)
    account = save_account(party.id, request.login)
    ok = approval("release", role="ReleaseManager", expires="1d", after=[account])
    link(party.id, account.id, after=[ok], when=request.link != False)
    return {"party": party.id, "account": account.id}


async def main() -> None:
    async with Pawl("sqlite:///parties.db") as pawl:
        request = {"party": {"name": "acme"}, "login": "zoe"}
        run = await pawl.start(provision_parties, request, id="p-1")
        async for event in run.events():
            if event["eventType"] == "ApprovalRequested" and run.show()["waiting"]:
                await pawl.approve("p-1", "release", by="ann", role="ReleaseManager")
        print(await run.result(timeout="1m"))


if __name__ == "__main__":
    asyncio.run(main())
