"""An engine inside a web application: it lives as long as the application does."""

from contextlib import asynccontextmanager

import httpx
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from pawlflow import Pawl
from tests.effects.kit import run, written

ORDER = """
  steps:
    - {name: charge, run: charge, with: {amount: "${ input.amount }"}}
    - {name: ship, wait: {event: shipped}, dependsOn: [charge]}
  output: {charged: "${ steps.charge }", shipped: "${ steps.ship }"}
"""


async def charge(amount):
    return amount * 2


def lifespan_of(url, path):
    @asynccontextmanager
    async def lifespan(app):
        pawl = Pawl(url, driver="thread")
        pawl.load(path)
        pawl.effect("charge")(charge)
        async with pawl:
            app.state.pawl = pawl
            yield

    return lifespan


def starlette_app(lifespan):
    async def create(request):
        given = await request.json()
        started = await request.app.state.pawl.start("order", given, id=given["id"])
        return JSONResponse({"id": started.id}, status_code=202)

    async def shipped(request):
        key = request.path_params["key"]
        await request.app.state.pawl.signal(key, "shipped", {"by": "truck"})
        return JSONResponse({})

    async def result(request):
        found = request.app.state.pawl.run(request.path_params["key"])
        return JSONResponse(await found.result(timeout="20s"))

    routes = [
        Route("/orders", create, methods=["POST"]),
        Route("/orders/{key}/shipped", shipped, methods=["POST"]),
        Route("/orders/{key}", result),
    ]
    return Starlette(routes=routes, lifespan=lifespan)


def fastapi_app(lifespan):
    app = FastAPI(lifespan=lifespan)

    @app.post("/orders", status_code=202)
    async def create(given: dict):
        return {"id": (await app.state.pawl.start("order", given, id=given["id"])).id}

    @app.post("/orders/{key}/shipped")
    async def shipped(key: str):
        await app.state.pawl.signal(key, "shipped", {"by": "truck"})
        return {}

    @app.get("/orders/{key}")
    async def result(key: str):
        return await app.state.pawl.run(key).result(timeout="20s")

    return app


@asynccontextmanager
async def served(app):
    """The application through its whole life, and a client for it."""
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://shop") as client:
            yield client


@pytest.mark.parametrize("made", [starlette_app, fastapi_app])
def test_a_run_is_started_in_one_request_and_read_in_another(tmp_path, made):
    """The application may come and go between them."""
    path = written(tmp_path, "order", ORDER)
    lifespan = lifespan_of(f"sqlite:///{tmp_path}/pawl.db", path)

    async def main():
        async with served(made(lifespan)) as client:
            created = await client.post("/orders", json={"id": "o-1", "amount": 21})
            again = await client.post("/orders", json={"id": "o-1", "amount": 21})
        async with served(made(lifespan)) as client:
            await client.post("/orders/o-1/shipped")
            found = await client.get("/orders/o-1")
        return created, again, found

    created, again, found = run(main())
    assert created.status_code == again.status_code == 202
    assert created.json() == again.json() == {"id": "o-1"}
    assert found.json() == {"charged": 42, "shipped": {"by": "truck"}}
