"""The example: an engine, a service in Python and one in JavaScript, as processes of their own."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pawlflow import Pawl
from pawlflow.worker import Worker
from tests.services.kit import Service

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "nats"
PAWL = [sys.executable, "-c", "from pawlflow.cli.main import entry; entry()"]


async def provision(nats, folder, other):
    """Run the example with another service beside it; gives what the engine printed."""
    env = os.environ | {"PAWL_NATS_UNSIGNED": "allow", "PAWL_NATS": nats.url}
    pipe = asyncio.subprocess.PIPE
    begin = asyncio.create_subprocess_exec
    async with Service(nats.url):
        pass  # no streams of other tests
    worker = await begin(*PAWL, "worker", "refdata", cwd=folder, env=env, stdout=pipe)
    service = await begin(*other, nats.url, cwd=folder, env=env, stdout=pipe)
    try:
        await asyncio.wait_for(worker.stdout.readline(), 20)
        await asyncio.wait_for(service.stdout.readline(), 20)
        engine = await begin(
            sys.executable, "engine.py", nats.url, cwd=folder, env=env, stdout=pipe
        )
        told, _ = await asyncio.wait_for(engine.communicate(), 50)
    finally:
        for each in (worker, service):
            each.terminate()
            await each.communicate()
    return told.decode()


@pytest.mark.req("R191")
def test_the_example_runs_with_the_bare_helper(nats, tmp_path):
    folder = shutil.copytree(EXAMPLE, tmp_path / "nats")
    told = asyncio.run(provision(nats, folder, [sys.executable, "bare.py"]))
    assert told.startswith("{'party': 'party-")
    assert "'account': 'account-" in told


def with_javascript(tmp_path):
    """A copy of the example, with the package that its service in JavaScript needs."""
    folder = shutil.copytree(EXAMPLE, tmp_path / "nats")
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not installed")
    fetch = ["npm", "install", "--no-save", "--no-audit", "--no-fund", "nats@2.29.3"]
    fetched = subprocess.run(fetch, cwd=folder, capture_output=True, text=True, check=False)
    if fetched.returncode:
        pytest.skip(f"the npm package nats cannot be fetched: {fetched.stderr[-300:]}")
    return folder


@pytest.mark.slow  # its package is fetched
@pytest.mark.req("R191")
def test_the_example_runs_with_a_service_in_javascript(nats, tmp_path):
    folder = with_javascript(tmp_path)
    told = asyncio.run(provision(nats, folder, ["node", "iam.cjs"]))
    assert told.startswith("{'party': 'party-")
    assert "'account': 'ada-" in told
    assert len((folder / "iam.jsonl").read_text().splitlines()) == 1


ACCOUNT = """
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: account}
spec:
  steps:
    - {name: account, run: iam.v1.account.save, with: {login: "${ input.login }"}}
  output: "${ steps.account }"
"""


@pytest.mark.slow  # its package is fetched
@pytest.mark.req("R191")
def test_a_service_in_javascript_and_a_worker_on_one_command(nats, tmp_path, monkeypatch):
    """With the worker all goes to it in batches; without, to the service, one by one."""
    monkeypatch.setenv("PAWL_NATS_UNSIGNED", "allow")
    folder = with_javascript(tmp_path)
    (folder / "account.yaml").write_text(ACCOUNT)
    worker = Worker(nats.url, "iam", memory=f"sqlite:///{folder / 'iam.db'}")
    worker.command("iam.v1.account.save")(lambda login: {"account": login, "by": "worker"})

    async def accounts(pawl, kind):
        names = [f"{kind}-{number}" for number in range(20)]
        started = await pawl.start_many("account", [(name, {"login": name}) for name in names])
        assert all(each.error is None for each in started)
        return [(await pawl.run(name).result("20s")).get("by") for name in names]

    async def story():
        begin, pipe = asyncio.create_subprocess_exec, asyncio.subprocess.PIPE
        async with Service(nats.url):
            pass  # no streams of other tests
        service = await begin("node", "iam.cjs", nats.url, cwd=folder, stdout=pipe)
        pawl = Pawl(f"sqlite:///{folder / 'account.db'}", nats=nats.url)
        pawl.load(folder / "account.yaml")
        try:
            await asyncio.wait_for(service.stdout.readline(), 20)
            async with pawl:
                assert await accounts(pawl, "before") == [None] * 20
                takers = pawl.services.gateways[None].commands.takers
                async with worker:
                    await takers.look()
                    assert await accounts(pawl, "beside") == ["worker"] * 20
                await takers.look()
                assert await accounts(pawl, "after") == [None] * 20
        finally:
            service.terminate()
            await service.communicate()

    asyncio.run(story())
    book = (folder / "iam.jsonl").read_text().splitlines()
    assert len(book) == 40
    assert len({json.loads(line)["step_id"] for line in book}) == 40
