"""Waking a few of very many on SQLite: a signal to one, and an event to those whose key it holds.

python -m bench.wake [--instances N] [--gate]
"""

import argparse
import asyncio
import gc
import json
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any, Final

from bench.judge import FOLDER, Line
from bench.timing import ROUNDS, is_calm, within
from pawlflow.embedded import Pawl
from pawlflow.model.ids import InstanceId
from pawlflow.store.port import Address, Head

WAKE_MS_MAX: Final = 5.0  # p50, from a signal until the turn it leads to is durable
RATIO_MAX: Final = 1.5  # CPU of an event among all waits, over that of one among the few
MATCHES: Final = (1, 10, 100)
GROUPED: Final = sum(MATCHES) * (ROUNDS + 1)  # waits that share their key with others, or might
FEW: Final = 1_000  # waits that the ratio is taken to; more than are grouped and signalled
WAKES: Final = 50
OTHERS: Final = 5_000  # more than an engine keeps live at a time
AT_ONCE: Final = 2_000
WOKEN: Final = "select count(*) from cell where workflow = 'parked' and state = 'completed'"
FLOWS: Final = """
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: parked}
spec:
  steps:
    - {name: told, wait: {event: go, match: event.key == input.key}}
---
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: other}
spec:
  steps:
    - {name: gate, approval: {role: Lead, expires: 30d}}
"""


def main(arguments: list[str]) -> int:
    """Measure once and print a line of JSON; with --gate, exit 1 if a limit is passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instances", type=int, default=100_000)
    parser.add_argument("--gate", action="store_true")
    parser.add_argument("--folder", default=FOLDER)
    options = parser.parse_args(arguments)
    if options.instances < FEW:
        parser.error(f"--instances is at least {FEW}: the ratio is taken to so many")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        line = measure(options.instances, Path(folder))
    print(json.dumps({"engine": "pawl", "mode": "wake", **line}))
    return exit_code(line, gate=options.gate)


def exit_code(line: Line, *, gate: bool) -> int:
    """One, if a promise is not kept and that matters; on a busy machine wall time is void."""
    worst = max(each["cpu_ratio"] for each in line["emits"])
    wake = within(line["wake_p50_ms"], WAKE_MS_MAX, calm=line["calm"])
    return 1 if gate and "FAIL" in (wake, within(worst, RATIO_MAX)) else 0


def measure(instances: int, folder: Path) -> Line:
    """Park many and few, each in a process and a file of their own, and wake some of them."""
    with crowd(folder / "many.db") as many, crowd(folder / "few.db") as few:
        parked = ask(many, "start", "parked", range(instances))
        ask(few, "start", "parked", range(FEW))
        calm = is_calm()
        woken = ask(many, "signal", spread(instances))
        calm = is_calm() and calm
        emits = [emitted(many, few, matches) for matches in MATCHES]
        ask(many, "start", "other", range(OTHERS))
        (evicted,) = ask(many, "signal", [instances - 1])
        ask(many, "restart")
        (restarted,) = ask(many, "signal", [instances - 2])
    return {
        "instances": instances,
        "starts_per_s": instances / parked,
        "wakes": len(woken),
        "wake_p50_ms": median(woken),
        "wake_best_ms": min(woken),
        "wake_worst_ms": max(woken),
        "calm": calm,
        "emits": emits,
        "wake_after_others_ms": evicted,
        "wake_after_restart_ms": restarted,
    }


def emitted(many: Connection, few: Connection, matches: int) -> Line:
    """Emit to so many matches in both crowds in turn, five times: what it takes at its best."""
    took = []
    for number in range(ROUNDS + 1):
        order = ("emit", key_of(group(matches, number)[0]), group(matches, number))
        took.append((*ask(many, *order), ask(few, *order)[1]))
    wall, cpu, cpu_few = map(min, zip(*took[1:], strict=True))  # the first is for the caches
    return {
        "matches": matches,
        "ms": 1_000 * wall,
        "cpu_ms": 1_000 * cpu,
        "cpu_ms_among_few": 1_000 * cpu_few,
        "cpu_ratio": cpu / cpu_few,
    }


# Who waits for what


def group(matches: int, number: int) -> range:
    """Those whom the event of a round is for."""
    before = sum(each for each in MATCHES if each < matches) * (ROUNDS + 1)
    return range(before + number * matches, before + (number + 1) * matches)


KEYS: Final = {
    one: f"{matches}-{number}"
    for matches in MATCHES
    for number in range(ROUNDS + 1)
    for one in group(matches, number)
}


def key_of(number: int) -> str:
    """What an instance waits for: the key of its group, or one that nobody else has."""
    return KEYS.get(number) or f"own-{number}"


def spread(instances: int) -> Sequence[int]:
    """Some who are alone with their key, from the first to almost the last."""
    return range(GROUPED, instances, (instances - GROUPED) // WAKES)[:WAKES]


# A crowd, from outside and from within


class CrowdGoneError(Exception):
    """What a crowd was asked for went wrong."""


@contextmanager
def crowd(path: Path) -> Iterator[Connection]:
    """A process with an engine, on a heap that holds nothing else."""
    apart = get_context("spawn")
    end, other = apart.Pipe()
    process = apart.Process(target=live, args=(path, other), daemon=True)
    process.start()
    other.close()  # now the pipe ends with the process
    try:
        yield end
    finally:
        end.close()
        process.join()


def ask(end: Connection, *order: Any) -> Any:
    """Let a crowd do something: what it says of that."""
    try:
        end.send(order)
        return end.recv()
    except (EOFError, ConnectionError):
        raise CrowdGoneError("a process of the bench has ended; it has said why above") from None


def live(path: Path, end: Connection) -> None:
    """The process: one engine after the other on one file, until nobody asks any more."""
    path.with_suffix(".yaml").write_text(FLOWS)
    while asyncio.run(serve(path, end)):
        end.send("restarted")


async def serve(path: Path, end: Connection) -> bool:
    """Do what is asked. Is another engine to go on with it?"""
    async with Pawl(f"sqlite:///{path}") as pawl:
        pawl.load(path.with_suffix(".yaml"))
        while True:
            try:
                verb, *order = end.recv()
            except EOFError:
                return False
            if verb == "restart":
                return True
            end.send(await DO[verb](pawl, *order))


async def start(pawl: Pawl, workflow: str, numbers: Iterable[int]) -> float:
    """Start these, a few thousand at a time: the seconds it took."""
    left = iter(numbers)

    async def keep_starting() -> None:
        for number in left:
            await pawl.start(workflow, {"key": key_of(number)}, id=f"{workflow}-{number}")

    began = perf_counter()
    await asyncio.gather(*(keep_starting() for _ in range(AT_ONCE)))
    return perf_counter() - began


async def signal(pawl: Pawl, numbers: Iterable[int]) -> list[float]:
    """Wake these one by one: the milliseconds until the next turn of each is durable."""
    took = []
    for number in numbers:
        address, before = asleep(pawl, number)
        began = perf_counter()
        await pawl.signal(address[1], "go", {"key": key_of(number)})
        took.append(1_000 * (perf_counter() - began))
        after = head(pawl, address)
        assert (after.turn, after.state) == (before.turn + 1, "completed"), after
    return took


async def emit(pawl: Pawl, key: str, numbers: Iterable[int]) -> tuple[float, float]:
    """Wake these by one event: the seconds until all are, by the clock and of the processor."""
    addresses = [asleep(pawl, number)[0] for number in numbers]
    woken = count(pawl)
    closing = [asyncio.ensure_future(pawl.closed(address, None)) for address in addresses]
    await asyncio.sleep(0)  # they look now whether they are closed already
    gc.collect()
    began, spent = perf_counter(), process_time()
    await pawl.emit("go", {"key": key})
    await asyncio.wait(closing)
    took = perf_counter() - began, process_time() - spent
    assert {head(pawl, address).state for address in addresses} == {"completed"}
    assert count(pawl) == woken + len(addresses)  # these and nobody else
    return took


DO: Final[dict[str, Callable[..., Awaitable[Any]]]] = {
    "start": start,
    "signal": signal,
    "emit": emit,
}


def asleep(pawl: Pawl, number: int) -> tuple[Address, Head]:
    """An instance that waits, as it is in the file and nowhere else."""
    address = (pawl.tenant, InstanceId(f"parked-{number}"))
    found = head(pawl, address)
    assert found.closed_at is None, found
    pawl.driver.engine.core.hot.drop(address)
    return address, found


def head(pawl: Pawl, address: Address) -> Head:
    """What is durable of an instance: another handle than the engine's reads it."""
    return pawl.reader.load([address])[address].head


def count(pawl: Pawl) -> int:
    """How many have been woken so far, durably."""
    [(found,)] = pawl.reader._db.execute(WOKEN)  # noqa: SLF001
    return int(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
