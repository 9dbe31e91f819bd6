"""Time on the shard: stores that survive their engine, a clock that is moved, engines that die."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pawlflow import requests
from pawlflow.definition.load import load_definitions
from pawlflow.engine.places import mail_of
from pawlflow.model.ids import TimeMs
from pawlflow.model.timed import schedule_key
from pawlflow.projections.proof import verify_store
from pawlflow.store.memory import Memory, MemoryStore
from pawlflow.store.port import Store
from pawlflow.store.sqlite import SqliteStore
from tests.engine.kit import Bench

TENANT = "default"
REPORT = """
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: report, version: VERSION}
spec:
  timeout: 1h
  trigger: {schedule: "CRON", timezone: ZONE, catchUp: CATCH}
  steps: [{name: a, run: do.a, timeout: 10m}]
"""


def ms(text: str) -> TimeMs:
    """A time of the calendar."""
    return TimeMs(int(datetime.fromisoformat(text).timestamp() * 1000))


def told(at: int) -> str:
    """A time as the tests write it."""
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at)).strftime("%dT%H:%M:%S")


def report(
    cron: str = "0 6 * * *", zone: str = "UTC", catch: str = "none", version: int = 1
) -> str:
    """A workflow that starts by the clock."""
    text = REPORT.replace("CRON", cron).replace("ZONE", zone).replace("CATCH", catch)
    return text.replace("VERSION", str(version))


class Crash(BaseException):
    """The engine dies here: nothing may catch it."""


class World:
    """A store and its engines, one after the other."""

    def __init__(self, open_store: Callable[[], Store], now: str) -> None:
        self.open_store = open_store
        self.commits = 0
        self.crash: tuple[int, str] | None = None  # at which commit, before or after it
        self.bench = Bench(open_store())
        self.bench.clock.time = ms(now)
        self.bench.fail = self.at_commit

    def at_commit(self, action: object) -> None:
        """Count commits, and die at one of them."""
        self.commits += 1
        if self.crash is not None and self.crash[0] == self.commits:
            if self.crash[1] == "after":
                self.bench.store.append(action.batch)
            raise Crash

    def reborn(self) -> None:
        """Another engine on the same store."""
        clock = self.bench.clock
        self.bench.store.close()
        self.bench = Bench(self.open_store())
        self.bench.clock.time, self.bench.clock.asked = clock.time, clock.asked
        self.bench.fail = self.at_commit

    def drain(self) -> None:
        """Work; if the engine dies, the next one goes on."""
        try:
            self.bench.engine.drain()
        except Crash:
            self.reborn()
            self.bench.engine.drain()
        assert self.bench.trouble == []

    def apply(self, text: str) -> None:
        """Publish what a text defines, as `pawl apply` does: by mail, so that no crash loses it."""
        found = load_definitions(text, "kit.yaml")
        assert not [each for each in found.findings if each.severity == "error"], found.findings
        made = [requests.publish(each, TENANT, "kit") for each in found.workflows]
        made += [requests.publish_schedule(each, TENANT, "kit") for each in found.schedules]
        for each in made:
            self.post(requests.registry_cell(TENANT), each)

    def post(self, cell: object, incoming: object) -> str:
        """Hand something in by mail; the code of its refusal, or nothing."""
        [number] = self.bench.store.post([mail_of(cell, incoming)])
        self.bench.core.poked()
        self.drain()
        taken = self.bench.store.answer(number)
        assert taken is not None
        return taken.code

    def until(self, text: str) -> None:
        """Let time pass, and wake up whenever somebody is due."""
        end = ms(text)
        self.drain()
        while (due := self.bench.core.deadlines.next_at()) is not None and due <= end:
            self.bench.clock.time = TimeMs(max(self.bench.clock.time, due))
            self.drain()
        self.bench.clock.time = end
        self.drain()

    def asleep_until(self, text: str) -> None:
        """Let time pass while no engine runs."""
        self.bench.clock.time = ms(text)
        self.reborn()

    def runs(self) -> dict[str, str]:
        """Every instance, in order of its creation, with the journal time of its first turn."""
        heads = [each for each in self.bench.store.refs() if not each.cell.key.startswith("$")]
        heads.sort(key=lambda head: (head.created_at, head.cell.key))
        return {head.cell.key: told(head.created_at) for head in heads}

    def due(self, name: str = "report") -> str | None:
        """When a schedule is due next."""
        address = (TENANT, schedule_key(name))
        found = self.bench.store.load([address])[address].head.due_at
        return None if found is None else told(found)

    def prove(self) -> None:
        """The whole store against itself: every decision made again, every row from its turns."""
        assert verify_store(self.bench.store).differences == []


def on_memory() -> Callable[[], Store]:
    """A store in memory that outlives its engine."""
    shared = Memory()
    return lambda: MemoryStore(shared)


def on_file(path: Path) -> Callable[[], Store]:
    """A SQLite file."""
    return lambda: SqliteStore(path)
