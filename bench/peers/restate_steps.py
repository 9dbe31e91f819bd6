"""What Restate costs: .venv-bench/bin/python bench/peers/restate_steps.py MODE [options].

A server of its own in a new folder, its log flushed to disk as by default; a service in Python
behind hypercorn, as its documentation has it; calls through its HTTP ingress by a client that does
no more than it must. The handler is three `ctx.run` that do nothing. Run by the peer's own
interpreter, so it imports nothing of ours. Each measurement prints one line of JSON; its figures
begin after a warm-up.
"""

import argparse
import asyncio
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from time import monotonic, perf_counter, sleep
from typing import Any, Final

import restate

STEPS: Final = 3
WARM_UP: Final = 20
UP_SECONDS: Final = 60.0
FOLDER: Final = "/var/tmp"  # by convention a disk, where /tmp may be memory
HOST: Final = "127.0.0.1"
QUESTION: Final = "select status, count(1) as n from sys_invocation group by status"

service = restate.Service("three")


async def noop() -> int:
    """Do nothing."""
    return 1


@service.handler()
async def flow(ctx: restate.Context, number: int) -> int:
    """Three steps, one after the other."""
    for name in ("one", "two", "three"):
        await ctx.run_typed(name, noop)
    return number


app = restate.app([service])


def main(arguments: list[str]) -> int:
    """Measure what was asked for, on a fresh server."""
    options = parse(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was started is ended
    with tempfile.TemporaryDirectory(dir=options.folder) as folder, served(options, folder) as port:
        line = asyncio.run(asyncio.wait_for(measure(options, port), options.seconds_max))
        check(options, line)
    print(json.dumps({**about(options), **line}), flush=True)
    return 0


def parse(arguments: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="restate_steps.py", description=__doc__)
    parser.add_argument("mode", choices=["throughput", "latency"])
    parser.add_argument("--server", required=True, help="the program restate-server")
    parser.add_argument("--in-flight", type=int, default=1, help="calls under way at a time")
    parser.add_argument("--workflows", type=int, default=1_000, help="in all, or samples taken")
    parser.add_argument("--workers", type=int, default=1, help="processes of the service")
    parser.add_argument("--folder", default=FOLDER, help="where its data is kept")
    parser.add_argument("--seconds-max", type=float, default=80.0, help="then there is no figure")
    return parser.parse_args(arguments)


def about(options: argparse.Namespace) -> dict[str, Any]:
    """What a figure was measured on."""
    told = subprocess.run([options.server, "--version"], capture_output=True, text=True, check=True)
    return {
        "engine": "restate",
        "version": told.stdout.split()[-1],
        "sdk": version("restate-sdk"),
        "hypercorn": version("hypercorn"),
        "mode": options.mode,
        "workers": options.workers,
        "in_flight": options.in_flight,
        "wal_fsync": "on",
    }


# Starting and stopping


@contextmanager
def served(options: argparse.Namespace, folder: str) -> Iterator[int]:
    """A server that knows our service; gives the port where it takes calls."""
    ports = [free_port() for _ in range(4)]
    options.node, options.ingress, options.admin, options.service = ports
    with log_of(folder) as log:
        running = [start_service(options, log)]
        try:
            running.append(start_server(options, folder, log))
            register(options, running)
            yield options.ingress
        except BaseException:
            sys.stderr.write(Path(folder, "log").read_text(errors="replace")[-4_000:])
            raise
        finally:
            for process in reversed(running):
                process.terminate()
            for process in running:
                end(process)
    shutil.rmtree(Path(folder, "data"), ignore_errors=True)


@contextmanager
def log_of(folder: str) -> Iterator[Any]:
    """Where both write what they have to say."""
    with Path(folder, "log").open("ab") as log:
        yield log


def start_service(options: argparse.Namespace, log: Any) -> "subprocess.Popen[bytes]":
    """Our handler, behind hypercorn."""
    words = [sys.executable, "-m", "hypercorn", "restate_steps:app"]
    words += ["--bind", f"{HOST}:{options.service}", "--workers", str(options.workers)]
    here = str(Path(__file__).parent)
    return subprocess.Popen(words, stdout=log, stderr=log, cwd=here)


def start_server(options: argparse.Namespace, folder: str, log: Any) -> "subprocess.Popen[bytes]":
    """The server in its default settings, but for its places; it tells nobody of itself."""
    words = [options.server, "--base-dir", f"{folder}/data", "--listen-mode", "tcp", "--no-logo"]
    words += ["--bind-ip", HOST, "--bind-port", str(options.node), "--node-name", "bench"]
    words += ["--advertised-host", HOST]
    settings = {
        "RESTATE_INGRESS__BIND_ADDRESS": f"{HOST}:{options.ingress}",
        "RESTATE_ADMIN__BIND_ADDRESS": f"{HOST}:{options.admin}",
        "RESTATE_DISABLE_TELEMETRY": "true",
        "RESTATE_LOG_FILTER": "error",
    }
    return subprocess.Popen(words, stdout=log, stderr=log, env={**os.environ, **settings})


def register(options: argparse.Namespace, running: list["subprocess.Popen[bytes]"]) -> None:
    """Tell the server of the service, once both are up."""
    until = monotonic() + UP_SECONDS
    body = {"uri": f"http://{HOST}:{options.service}", "force": True}
    while True:
        try:
            admin(options, "/deployments", body)
        except (OSError, urllib.error.HTTPError):
            if monotonic() > until or any(each.poll() is not None for each in running):
                raise
            sleep(0.1)
        else:
            return


def admin(options: argparse.Namespace, path: str, body: dict[str, Any]) -> Any:
    """Ask the server's own API."""
    asked = urllib.request.Request(
        f"http://{HOST}:{options.admin}{path}",
        data=json.dumps(body).encode(),
        headers={"content-type": "application/json", "accept": "application/json"},
    )
    with urllib.request.urlopen(asked, timeout=30) as answer:
        return json.loads(answer.read())


def end(process: "subprocess.Popen[bytes]") -> None:
    """Wait for a process that was told to go."""
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def free_port() -> int:
    """A port that nobody has now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


# Measuring


async def measure(options: argparse.Namespace, port: int) -> dict[str, Any]:
    """So many calls, so many at a time, each over a connection that stays."""
    lanes = [await Lane.to(port) for _ in range(options.in_flight)]
    await run(lanes, warm_up(options))
    begun = perf_counter()
    took = await run(lanes, options.workflows)
    seconds = perf_counter() - begun
    for lane in lanes:
        lane.writer.close()
    ordered = sorted(took)
    return {
        "workflows": options.workflows,
        "seconds": round(seconds, 3),
        "steps_per_s": round(options.workflows * STEPS / seconds, 1),
        "p50_ms": round(statistics.median(ordered) * 1e3, 3),
        "p99_ms": round(ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))] * 1e3, 3),
        "best_ms": round(ordered[0] * 1e3, 3),
    }


def warm_up(options: argparse.Namespace) -> int:
    """Calls before the clock starts: by then every connection is open."""
    return max(WARM_UP, int(options.in_flight))


async def run(lanes: list["Lane"], count: int) -> list[float]:
    """The seconds of each call."""
    left = iter(range(count))
    took: list[float] = []

    async def work(lane: Lane) -> None:
        for number in left:
            begun = perf_counter()
            assert await lane.call(number) == number
            took.append(perf_counter() - begun)

    await asyncio.gather(*[work(lane) for lane in lanes])
    return took


class Lane:
    """One connection to the ingress, and one call at a time over it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def to(cls, port: int) -> "Lane":
        """Connect."""
        return cls(*await asyncio.open_connection(HOST, port))

    async def call(self, number: int) -> int:
        """Call the handler and wait for its result."""
        body = str(number).encode()
        self.writer.write(
            b"POST /three/flow HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n"
            b"content-length: %d\r\n\r\n%s" % (len(body), body)
        )
        head = await self.reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        lines = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if line)
        return int(await self.reader.readexactly(int(lines[b"content-length"])))


def check(options: argparse.Namespace, line: dict[str, Any]) -> None:
    """All of them ended, and nothing else is under way."""
    rows = admin(options, "/query", {"query": QUESTION})["rows"]
    assert rows == [{"status": "completed", "n": line["workflows"] + warm_up(options)}], rows


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
