"""Acts: what people and programs do to instances that run."""

from typing import Any, Protocol

from pawlflow.engine import requests
from pawlflow.engine.drivers import Answer
from pawlflow.kernel.draft import Rejected
from pawlflow.model.ids import CellId, Tenant
from pawlflow.model.inputs import Input
from pawlflow.trouble import Conflict, NotFound, PawlError, Refused


class Door(Protocol):
    """Where inputs are handed in."""

    def submit(
        self, cell: CellId, incoming: Input, size: int = 0, *, fresh: bool = False
    ) -> Answer:
        """Hand in an input; the future is done once it is durable, or refused."""
        ...


class Acts:
    """Everything here is durable when it returns, and raises Refused if the engine refuses."""

    tenant: Tenant
    driver: Door

    async def act(self, key: str, incoming: Input, tenant: str | None = None) -> None:
        """Hand an input to an instance."""
        await self.hand_in(requests.instance_cell(tenant or self.tenant, key), incoming)

    async def hand_in(self, cell: CellId, incoming: Input) -> None:
        """Hand an input to a cell."""
        outcome = await self.driver.submit(cell, incoming)
        if isinstance(outcome, Rejected):
            raise refusal(outcome)

    async def signal(
        self,
        id: str,  # the word of the documents
        event: str,
        data: Any = None,
        *,
        by: str = "python",
        tenant: str | None = None,
    ) -> None:
        """Tell one instance; it is kept until a wait matches it."""
        await self.act(id, requests.signal(event, data, tenant or self.tenant, by), tenant)

    async def emit(
        self, event: str, data: Any = None, *, by: str = "python", tenant: str | None = None
    ) -> None:
        """Tell everybody who waits for, or is started by, an event."""
        whose = tenant or self.tenant
        await self.hand_in(requests.topic_cell(whose, event), requests.emit(event, data, whose, by))

    async def approve(self, id: str, step: str, *, by: str, **more: str | None) -> None:
        """Agree to a gate; `role`, `comment` and `tenant` may be given."""
        await self.decide("approve", id, step, by, more)

    async def reject(self, id: str, step: str, *, by: str, **more: str | None) -> None:
        """Refuse at a gate; `role`, `comment` and `tenant` may be given."""
        await self.decide("reject", id, step, by, more)

    async def decide(
        self, verb: Any, key: str, step: str, by: str, more: dict[str, str | None]
    ) -> None:
        """Hand in a decision about a gate."""
        tenant = more.pop("tenant", None)
        role, comment = more.pop("role", None), more.pop("comment", None)
        known(more)
        whose = tenant or self.tenant
        made = requests.decide(verb, step, whose, by=by, role=role, comment=comment)
        await self.act(key, made, tenant)

    async def cancel(self, id: str, *, by: str = "python", **more: str | None) -> None:
        """Stop an instance; with failurePolicy compensate its work is undone."""
        await self.steer("cancel", id, by, more)

    async def pause(self, id: str, *, by: str = "python", **more: str | None) -> None:
        """Start nothing new in an instance."""
        await self.steer("pause", id, by, more)

    async def unpause(self, id: str, *, by: str = "python", **more: str | None) -> None:
        """Let a paused instance go on."""
        await self.steer("unpause", id, by, more)

    async def steer(self, verb: Any, key: str, by: str, more: dict[str, str | None]) -> None:
        """Hand in what holds an instance back, lets it go on or stops it."""
        tenant, comment = more.pop("tenant", None), more.pop("comment", None)
        known(more)
        made = requests.steer(verb, tenant or self.tenant, by=by, comment=comment)
        await self.act(key, made, tenant)

    async def resume(self, id: str, step: str, *, by: str, tenant: str | None = None) -> None:
        """Let an escalated step go on."""
        await self.act(id, requests.resume("resume", step, tenant or self.tenant, by=by), tenant)

    async def reassign(
        self,
        id: str,
        step: str,
        to: str,
        *,
        by: str,
        tenant: str | None = None,
    ) -> None:
        """Give an escalated step to another role."""
        whose = tenant or self.tenant
        await self.act(id, requests.resume("reassign", step, whose, by=by, role=to), tenant)

    async def retry(
        self,
        id: str,
        step: str,
        *,
        by: str,
        with_: Any = requests.NOT_GIVEN,
        tenant: str | None = None,
    ) -> None:
        """Try an escalated step again, with another input if one is given."""
        whose = tenant or self.tenant
        await self.act(id, requests.resume("retry", step, whose, by=by, params=with_), tenant)


def known(rest: dict[str, str | None]) -> None:
    """Refuse words that mean nothing, as a function without **more would."""
    if rest:
        raise TypeError(f"unexpected: {', '.join(sorted(rest))}; may be role, comment, tenant")


def refusal(refused: Rejected) -> PawlError:
    """A refusal as the exception that callers catch."""
    message = refused.detail or refused.code
    if refused.code == "instance.conflict":
        return Conflict(refused.code, message)
    if refused.code in ("instance.unknown", "workflow.unknown", "definition.unknown"):
        return NotFound(refused.code, message)
    return Refused(refused.code, message)
