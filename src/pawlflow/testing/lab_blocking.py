"""`BlockingLab`: a lab for plain `def` tests. Time is virtual, so nothing here waits for long."""

from datetime import datetime, timedelta
from typing import Any

from pawlflow.blocking import BlockingPawl
from pawlflow.moments import Moment
from pawlflow.testing.answers import Span
from pawlflow.testing.lab_hosting import HostedLab
from pawlflow.testing.world import Called

Calls = list[Called]  # a lab has a method `list`


class BlockingLab(BlockingPawl):
    """A lab without `await`: `with BlockingLab() as lab: ...`. It takes what `Lab` takes."""

    def __init__(self, url: str = "memory:", **options: Any) -> None:
        self.lab = HostedLab(url, **options)
        super().__init__(self.lab)

    @property
    def now(self) -> datetime:
        """The virtual time."""
        return self.lab.now

    @property
    def elapsed(self) -> timedelta:
        """The virtual time since the lab began."""
        return self.lab.elapsed

    def skip(self, span: Span) -> None:
        """Let time pass: every deadline fires in order, and all work settles in between."""
        self._do(lambda: self.lab.skip(span))

    def skip_to(self, moment: Moment) -> None:
        """Let time pass until then: `"2026-11-15T06:00Z"`, or a datetime."""
        self._do(lambda: self.lab.skip_to(moment))

    def idle(self) -> None:
        """Wait until nothing more can happen at this moment. Time stands still."""
        self._do(self.lab.idle)

    def crash(self) -> None:
        """Drop the engine, and all that is in memory, and go on from what is durable."""
        self._do(self.lab.crash)

    def script(
        self,
        name: str,
        answers: Any = None,
        *,
        after: Span | None = None,
        hang: bool = False,
        each: bool = False,
    ) -> None:
        """Let the calls of an effect, a role, a step or an item be answered by a script."""
        script = self.lab.script
        self._at_once(lambda: script(name, answers, after=after, hang=hang, each=each))

    def unscript(self, name: str) -> None:
        """Let the registered function carry this out again."""
        self._at_once(lambda: self.lab.unscript(name))

    def calls(self, name: str | None = None) -> Calls:
        """Every attempt so far, in order: all, or those of an effect, a role, a step or an item."""
        return self._at_once(lambda: self.lab.calls(name))
