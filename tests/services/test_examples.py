"""The example: an engine, a service in Python and one in JavaScript, as processes of their own."""

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.slow  # its package is fetched
@pytest.mark.req("R191")
def test_the_example_runs_with_a_service_in_javascript(nats, tmp_path):
    folder = shutil.copytree(EXAMPLE, tmp_path / "nats")
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not installed")
    fetch = ["npm", "install", "--no-save", "--no-audit", "--no-fund", "nats@2.29.3"]
    fetched = subprocess.run(fetch, cwd=folder, capture_output=True, text=True, check=False)
    if fetched.returncode:
        pytest.skip(f"the npm package nats cannot be fetched: {fetched.stderr[-300:]}")
    told = asyncio.run(provision(nats, folder, ["node", "iam.cjs"]))
    assert told.startswith("{'party': 'party-")
    assert "'account': 'ada-" in told
    assert len((folder / "iam.jsonl").read_text().splitlines()) == 1
