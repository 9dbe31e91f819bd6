"""Acts: what people and programs do to instances that run."""

from collections.abc import Mapping
from typing import Any, Final, Protocol

from pawlflow import requests
from pawlflow.driving import Answer
from pawlflow.engine.clock import Clock
from pawlflow.kernel.draft import Rejected
from pawlflow.kernel.heads import LATE
from pawlflow.model.ids import CellId, Tenant
from pawlflow.model.inputs import Input
from pawlflow.moments import Moment, moment_of
from pawlflow.trouble import BUSY, Conflict, NotFound, Overloaded, PawlError, Refused

UNKNOWN: Final = (
    *("instance.unknown", "workflow.unknown", "definition.unknown", "schedule.unknown"),
)


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
    clock: Clock

    async def act(self, key: str, incoming: Input, tenant: str | None = None) -> None:
        """Hand an input to an instance."""
        whose = requests.whose(tenant, self.tenant)
        await self.hand_in(requests.instance_cell(whose, key), incoming)

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
        whose = requests.whose(tenant, self.tenant)
        await self.act(id, requests.signal(event, data, whose, by), whose)

    async def emit(
        self, event: str, data: Any = None, *, by: str = "python", tenant: str | None = None
    ) -> None:
        """Tell everybody who waits for, or is started by, an event."""
        whose = requests.whose(tenant, self.tenant)
        await self.hand_in(requests.topic_cell(whose, event), requests.emit(event, data, whose, by))

    async def approve(
        self,
        id: str,
        step: str,
        *,
        by: str,
        limits: Mapping[str, float] | None = None,
        **more: str | None,
    ) -> None:
        """Agree to a gate; `role`, `comment` and `tenant` may be given.

        Of a step that its budget holds: raise the hard limits to `limits`, such as {"usd": 10}, or
        without them to what the step needs.
        """
        await self.decide("approve", id, step, by, more, limits)

    async def reject(self, id: str, step: str, *, by: str, **more: str | None) -> None:
        """Refuse at a gate; `role`, `comment` and `tenant` may be given."""
        await self.decide("reject", id, step, by, more)

    async def claim(self, id: str, step: str, *, by: str, **more: str | None) -> None:
        """Look after an open review; `role`, `comment` and `tenant` may be given.

        It binds nobody: others who may decide still may. Once more by the same person is fine.
        """
        await self.decide("claim", id, step, by, more)

    async def decide(  # what a human decision consists of
        self,
        verb: Any,
        key: str,
        step: str,
        by: str,
        more: dict[str, str | None],
        limits: Mapping[str, float] | None = None,
    ) -> None:
        """Hand in what somebody says about a review."""
        tenant = more.pop("tenant", None)
        role, comment = more.pop("role", None), more.pop("comment", None)
        known(more)
        whose = requests.whose(tenant, self.tenant)
        made = requests.decide(
            verb,
            step,
            whose,
            by=by,
            role=role,
            comment=comment,
            limits=requests.NOT_GIVEN if limits is None else dict(limits),
        )
        await self.act(key, made, tenant)

    async def cancel(self, id: str, *, by: str = "python", **more: str | None) -> None:
        """Stop an instance; with failurePolicy compensate its work is undone.

        `comment`, `tenant`, and `role` where an escalation ladder asks for one, may be given.
        """
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
        acting = more.pop("role", None) if verb == "cancel" else None
        known(more)
        said: Any = {"by": by, "comment": comment, "acting": acting}
        made = requests.steer(verb, requests.whose(tenant, self.tenant), **said)
        await self.act(key, made, tenant)

    async def pause_schedule(self, name: str, *, by: str = "python", **more: str | None) -> None:
        """Let a schedule start nothing; it keeps its place in time."""
        await self.hold("pause", name, by, more)

    async def unpause_schedule(self, name: str, *, by: str = "python", **more: str | None) -> None:
        """Let a schedule go on; its catchUp says what becomes of the times it missed."""
        await self.hold("unpause", name, by, more)

    async def hold(self, verb: Any, name: str, by: str, more: dict[str, str | None]) -> None:
        """Hand in what holds a schedule back, or lets it go on."""
        tenant, comment = more.pop("tenant", None), more.pop("comment", None)
        known(more)
        whose = requests.whose(tenant, self.tenant)
        made = requests.hold_schedule(verb, whose, by=by, comment=comment)
        await self.hand_in(requests.schedule_cell(whose, name), made)

    async def remove_schedule(
        self, name: str, *, by: str = "python", tenant: str | None = None
    ) -> None:
        """A schedule that stands by itself is no more; a workflow's own goes with it."""
        whose = requests.whose(tenant, self.tenant)
        await self.hand_in(requests.registry_cell(whose), requests.withdraw_schedule(name, by))

    async def backfill(
        self,
        name: str,
        first: Moment,
        last: Moment,
        *,
        by: str = "python",
        tenant: str | None = None,
    ) -> None:
        """Start what a schedule would have started between two times, unless it exists."""
        now = self.clock.now()
        whose = requests.whose(tenant, self.tenant)
        made = requests.backfill(moment_of(first, now), moment_of(last, now), by)
        await self.hand_in(requests.schedule_cell(whose, name), made)

    async def retire_policy(
        self,
        name: str,
        *,
        by: str = "python",
        comment: str | None = None,
        tenant: str | None = None,
    ) -> None:
        """Let a policy no longer be in force; a higher version may be published."""
        whose = requests.whose(tenant, self.tenant)
        made = requests.retire_policy(name, whose, by, comment)
        await self.hand_in(requests.policies_cell(whose), made)

    async def resume(self, id: str, step: str, *, by: str, **more: str | None) -> None:
        """Let an escalated step go on; `role`, `comment` and `tenant` may be given."""
        await self.go_on("resume", (id, step), by, more)

    async def reassign(self, id: str, step: str, to: str, *, by: str, **more: str | None) -> None:
        """Give an escalated step to another role; `role` is the one in which they act."""
        await self.go_on("reassign", (id, step), by, more, role=to)

    async def retry(
        self,
        id: str,
        step: str,
        *,
        by: str,
        with_: Any = requests.NOT_GIVEN,
        **more: str | None,
    ) -> None:
        """Try an escalated step again, with another input if one is given."""
        await self.go_on("retry", (id, step), by, more, params=with_)

    async def go_on(  # what a human decision consists of
        self,
        verb: Any,
        place: tuple[str, str],
        by: str,
        more: dict[str, str | None],
        **how: Any,
    ) -> None:
        """Hand in how an escalated step goes on."""
        tenant, comment = more.pop("tenant", None), more.pop("comment", None)
        acting = more.pop("role", None)
        known(more)
        whose = requests.whose(tenant, self.tenant)
        said: Any = {"by": by, "comment": comment, "acting": acting, **how}
        await self.act(place[0], requests.resume(verb, place[1], whose, **said), tenant)

    async def settle(
        self, id: str, step: str, *, by: str, comment: str, **more: str | None
    ) -> None:
        """Say what became of an effect that succeeded after nobody waited for it any more."""
        tenant, role = more.pop("tenant", None), more.pop("role", None)
        known(more)
        late = step if step.endswith(LATE) else f"{step}{LATE}"
        whose = requests.whose(tenant, self.tenant)
        made = requests.settle(late, whose, by=by, role=role, comment=comment)
        await self.act(id, made, tenant)


def known(rest: dict[str, str | None]) -> None:
    """Refuse words that mean nothing, as a function without **more would."""
    if rest:
        raise TypeError(f"unexpected: {', '.join(sorted(rest))}; may be role, comment, tenant")


def refusal(refused: Rejected) -> PawlError:
    """A refusal as the exception that callers catch."""
    message = refused.detail or refused.code
    if refused.code == "instance.conflict":
        return Conflict(refused.code, message)
    if refused.code in UNKNOWN:
        return NotFound(refused.code, message)
    if refused.code in BUSY:
        return Overloaded(refused.code, message)
    return Refused(refused.code, message)
