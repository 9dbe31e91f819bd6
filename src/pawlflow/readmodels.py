"""Read models, kept: built from the journal on demand, or followed by a thread beside an engine."""

import logging
import threading
from collections.abc import Callable, Collection
from contextlib import closing
from typing import Final

import msgspec

from pawlflow.app import open_store, read_models_at, shown
from pawlflow.effects.headers import instance_uuid
from pawlflow.projections.comparing import Compared, Comparison
from pawlflow.projections.following import Follower, Progress, Tally
from pawlflow.store.port import SHARDS, StoreError

log = logging.getLogger("pawl.views")
EVERY_S: Final = 1.0  # between two looks at the journals
TROUBLED_S_MAX: Final = 60.0  # the same, after they could not be read or written


class Built(msgspec.Struct, frozen=True):
    """What there is now, and what it took."""

    instances: int  # rows
    steps: int
    entries: int  # of the journal, read
    turns: int
    removed: int  # rows that did not follow from it


def rebuild(url: str, progress: Progress | None = None) -> Built:
    """Build every row again from the journal; rows that do not follow from it go.

    Readers see the rows of before until each is replaced. It works beside an engine, and beside
    others who follow: killed anywhere, it is gone on with by whoever comes next.
    """
    return build(url, progress, again=True)


def catch_up(url: str, progress: Progress | None = None) -> Built:
    """Bring the rows up to the ends of the journals, from where they are."""
    return build(url, progress, again=False)


def build(url: str, progress: Progress | None, *, again: bool) -> Built:
    """Read the journal, from its beginning or from where the rows are."""
    with closing(open_store(url)) as store, closing(read_models_at(url)) as models:
        if again:
            models.restart(range(SHARDS))
        follower = Follower(store, models, instance_uuid)
        follower.catch_up(progress=progress)
        took = follower.tally
        return Built(*models.count(), took.entries, took.folded, took.swept)


def compare(url: str, progress: Progress | None = None) -> Compared:
    """Hold every row against the journal. Raises StoreError if nobody has built any."""
    with closing(open_store(url)) as store, closing(read_models_at(url, make=False)) as models:
        return Comparison(store, models, instance_uuid).run(progress)


class ReadModelWorker:
    """Keeps the rows of some shards fresh, on a thread and connections of its own.

    `shards` is asked before each look: a node that owns some of them follows these. It looks once
    a second; `poke` lets it look at once. Trouble is logged and tried again: the engine goes on
    without.
    """

    def __init__(
        self,
        url: str,
        shards: Callable[[], Collection[int]] = lambda: range(SHARDS),
        *,
        every_s: float = EVERY_S,
    ) -> None:
        self.url = url
        self.shards = shards
        self.every_s = every_s
        self.tally = Tally()
        self._poked = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._looks = 0
        self._looked = threading.Condition()

    def start(self) -> None:
        """Make tables and views if they are missing, and begin. Raises StoreError."""
        read_models_at(self.url).close()
        self._stopping.clear()
        self._thread = threading.Thread(target=self._run, name="pawl-views", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Leave off after the page that is being written; what is missing is read next time."""
        self._stopping.set()
        self._poked.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def poke(self) -> None:
        """Look now. Nobody has to: the next look finds all there is."""
        self._poked.set()

    def flush(self, timeout_s: float = 30.0) -> bool:
        """Wait until all that is committed now is in the rows; False if that takes too long."""
        with self._looked:
            until = self._looks + 2  # the look under way may have begun before
            return self._looked.wait_for(lambda: self._is_past(until), timeout_s)

    def _is_past(self, look: int) -> bool:
        self._poked.set()
        return self._looks >= look

    def _run(self) -> None:
        pause = self.every_s
        while not self._stopping.is_set():
            try:
                self._follow()
                pause = self.every_s
            except Exception as error:
                known = isinstance(error, StoreError)
                told = "the read models of %s are behind, and tried again: %s"
                log.error(told, shown(self.url), error, exc_info=not known)  # noqa: TRY400
                self._stopping.wait(pause)
                pause = min(2 * pause, TROUBLED_S_MAX)

    def _follow(self) -> None:
        """Look again and again, with connections that last as long as nothing goes wrong."""
        with closing(open_store(self.url)) as store, closing(read_models_at(self.url)) as models:
            follower = Follower(store, models, instance_uuid, rest=self._stopping.wait)
            follower.tally = self.tally
            while not self._stopping.is_set():
                self._poked.clear()
                follower.catch_up(self.shards(), going=lambda: not self._stopping.is_set())
                with self._looked:
                    self._looks += 1
                    self._looked.notify_all()
                self._poked.wait(self.every_s)


def follow(url: str) -> ReadModelWorker:
    """Keep the rows of a whole store fresh from now on. Raises StoreError."""
    worker = ReadModelWorker(url)
    worker.start()
    return worker
