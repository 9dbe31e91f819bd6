"""The context of an attempt: what a step's function may know about it, and say during it."""

from collections.abc import Callable
from typing import Any, Final, Self

from pawlflow.effects.headers import uuid_text
from pawlflow.effects.secrets import NOTHING, Hidden
from pawlflow.model.budgets import AMOUNT_MAX
from pawlflow.model.failure import FailureClass
from pawlflow.model.ids import (
    NO_ITEM,
    CellId,
    Digest,
    DurationMs,
    InstanceId,
    StepKey,
    StepName,
    Tenant,
    WorkflowName,
)
from pawlflow.model.intents import UNPINNED, Call
from pawlflow.model.payload import Payload


class Transient(Exception):  # noqa: N818  # users raise it: a word, not an error class of ours
    """The attempt failed, and may well succeed when it is made again."""


class Terminal(Exception):  # noqa: N818
    """The attempt failed for good: no retry will help."""


class Correctable(Exception):  # noqa: N818
    """The result is not good enough yet; the findings go to the next round as feedback."""

    def __init__(self, findings: Any, message: str = "") -> None:
        self.findings = findings if isinstance(findings, list) else [findings]
        super().__init__(message or "; ".join(str(each) for each in self.findings))


class Cancelled(Exception):  # noqa: N818
    """The attempt is no longer wanted; a function in a thread learns of it by its heartbeat."""


class Failing(Exception):  # noqa: N818
    """The attempt failed, with a class and a code of its own: of executors that are no function."""

    def __init__(self, kind: FailureClass, code: str, message: str, findings: Any = None) -> None:
        self.kind, self.code, self.findings = kind, code, findings
        super().__init__(message)


class Later:
    """The result of an attempt that stays open: its receipt comes from elsewhere."""


LATER: Final = Later()


class Context:
    """What a step's function may ask for as `ctx`."""

    def __init__(self, call: Call, beat: Callable[[], None]) -> None:
        self.key = uuid_text(call.key)
        self.attempt = call.attempt
        self.feedback = list(call.feedback)
        self.tenant = call.cell.tenant
        self.instance = call.cell.key
        self.workflow = call.cell.workflow
        self.step = call.step
        self.item = None if call.item == NO_ITEM else call.item  # of forEach: which one, from 0
        self.undo = call.direction == "undo"
        self.lines: list[str] = []
        self.usage: dict[str, float] = {}
        self._beat = beat
        self.warned: list[str] = []
        self._hidden = NOTHING  # secrets, to be taken out of what is kept
        self.cancelled = False  # set once the attempt is no longer wanted

    @classmethod
    def offline(cls, step: str) -> Self:
        """A context for a function that is tried out without an engine."""
        cell = CellId(Tenant("default"), WorkflowName("offline"), InstanceId("offline"))
        key = StepKey(bytes(16))  # nothing outside may be told this one
        nothing = Payload.of({}, cell.tenant)
        call = Call(
            Digest(UNPINNED),
            cell,
            key,
            1,
            "do",
            step=StepName(step),
            item=NO_ITEM,
            round=1,
            by_agent=False,
            target=step,
            role=None,
            params=nothing,
            feedback=(),
            timeout_ms=None,
            heartbeat_ms=None,
            grace_ms=DurationMs(0),
        )
        return cls(call, lambda: None)

    def heartbeat(self) -> None:
        """Say that the attempt is alive. Raises Cancelled once it is no longer wanted."""
        self._beat()
        if self.cancelled:
            raise Cancelled(f"attempt {self.attempt} of {self.step} is no longer wanted")

    def spent(self, **amounts: float) -> None:
        """Say what the attempt cost, such as `usd=0.02, tokens=350`; said twice, it adds up.

        It counts whether the attempt succeeds or not. What is not said of a success costs what
        was reserved for it.
        """
        for unit, amount in amounts.items():
            if type(amount) not in (int, float) or not 0 <= amount <= AMOUNT_MAX:
                raise ValueError(f"{unit}={amount!r} is no amount: 0 to {AMOUNT_MAX:,}")
            self.usage[unit] = min(self.usage.get(unit, 0) + amount, AMOUNT_MAX)

    def hide(self, hidden: Hidden) -> None:
        """Take secrets out of everything that is kept from now on."""
        self._hidden = hidden

    def log(self, message: str) -> None:
        """Keep a line with the attempt."""
        if len(self.lines) < LINES_MAX:
            self.lines.append(self._hidden.text(str(message))[:LINE_MAX])

    def warn(self, message: str) -> None:
        """Keep a line in front of all others; a step that succeeds so does with a warning."""
        self.warned.append(self._hidden.text(str(message))[:LINE_MAX])
        self.lines.insert(len(self.warned) - 1, f"warning: {self.warned[-1]}")
        del self.lines[LINES_MAX:]


LINES_MAX = 200  # kept with an attempt
LINE_MAX = 2_000  # characters of one
