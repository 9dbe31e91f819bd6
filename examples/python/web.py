"""An engine inside a web application: one request starts a run, another reads its result."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from pawlflow import Pawl, flow, step
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route


@step(timeout="30s", mutates=False)
async def price(item: str) -> dict:
    return {"item": item, "price": 7 * len(item)}


@flow(timeout="5m")
def quote(request):
    return price(request.item)


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    async with Pawl("sqlite:///web.db", driver="thread") as pawl:  # nobody waits for the disk
        pawl.add(quote)
        app.state.pawl = pawl
        yield


async def create(request: Request) -> JSONResponse:
    run = await request.app.state.pawl.start(quote, await request.json())
    return JSONResponse({"id": run.id}, status_code=202)


async def read(request: Request) -> JSONResponse:
    run = request.app.state.pawl.run(request.path_params["id"])
    return JSONResponse(await run.result(timeout="30s"))


routes = [Route("/quotes", create, methods=["POST"]), Route("/quotes/{id}", read)]
app = Starlette(routes=routes, lifespan=lifespan)


async def main() -> None:  # as a server and a browser would: `uvicorn web:app` does the same
    transport = httpx.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://shop") as client,
    ):
        created = await client.post("/quotes", json={"item": "lamp"})
        found = await client.get(f"/quotes/{created.json()['id']}")
        print(created.status_code, found.json())


asyncio.run(main())
