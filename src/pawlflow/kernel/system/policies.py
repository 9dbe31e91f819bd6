"""The policies of a tenant: every version that was published, and which of them are in force.

In force is the highest version of each name that was not retired. What was published never changes:
other text needs a higher version.
"""

from typing import Final

from pawlflow.kernel.refused import Rejected
from pawlflow.kernel.system import System, SystemDraft, misplaced
from pawlflow.model.ids import CellId, TimeMs
from pawlflow.model.inputs import Input
from pawlflow.model.payload import Payload
from pawlflow.model.policies import PolicyPublished, PolicyRetired, PublishPolicy, RetirePolicy
from pawlflow.model.records import Record

FORMAT: Final = 1
# Every decision asks all of them, and whoever decides reads them as one. Part of the rules.
POLICIES_MAX: Final = 256
TEXTS_MAX: Final = 1 << 20  # bytes of all that are in force together. Part of the rules


class Policy(Record, frozen=True, gc=False):
    """A version of a policy."""

    name: str
    version: int
    text: Payload
    by: str
    at: TimeMs
    retired_by: str | None = None
    retired_at: TimeMs | None = None


class Policies(System):
    """All policies of a tenant, by name and version."""

    __slots__ = ("names",)

    def __init__(self, cell: CellId) -> None:
        super().__init__(cell)
        self.names: dict[str, dict[int, Policy]] = {}

    def newest(self, name: str) -> Policy | None:
        """The highest version of a name, in force or retired."""
        found = self.names.get(name)
        return found[max(found)] if found else None

    def in_force(self) -> list[Policy]:
        """What every decision is made by, in the order of names."""
        newest = (self.newest(name) for name in sorted(self.names))
        return [each for each in newest if each is not None and each.retired_at is None]


def decide(draft: SystemDraft[Policies], incoming: Input) -> Rejected | None:
    """Apply one input to the draft. A refusal comes before the first event, or not at all."""
    match incoming:
        case PublishPolicy():
            return publish(draft, incoming)
        case RetirePolicy():
            return retire(draft, incoming)
        case _:
            return misplaced(draft.state, incoming)


def publish(draft: SystemDraft[Policies], asked: PublishPolicy) -> Rejected | None:
    """Put a version in force, unless it says what a published one does not."""
    state, said = draft.state, f"{asked.name} version {asked.version}"
    newest = state.newest(asked.name)
    known = state.names.get(asked.name, {}).get(asked.version)
    if known is not None and known.text.addr != asked.text.addr:
        return Rejected("policy.changed", said)
    if known is not None and known is newest and known.retired_at is not None:
        return Rejected("policy.retired", said)
    if known is not None:
        return Rejected("policy.same", said)
    if newest is not None and newest.version > asked.version:
        return Rejected("policy.older", f"{said}; version {newest.version} is published")
    beside = [each for each in state.in_force() if each.name != asked.name]
    size = sum(len(each.data or b"") for each in (*(each.text for each in beside), asked.text))
    if len(beside) >= POLICIES_MAX or size > TEXTS_MAX:
        most = f"{POLICIES_MAX} policies of {TEXTS_MAX:,} bytes together"
        return Rejected("policy.too_many", f"{said}; at most {most} are in force")
    draft.emit(PolicyPublished(asked.name, asked.version, asked.text, asked.by))
    return None


def retire(draft: SystemDraft[Policies], asked: RetirePolicy) -> Rejected | None:
    """Let a policy no longer be in force."""
    newest = draft.state.newest(asked.name)
    if newest is None or newest.retired_at is not None:
        code = "policy.unknown" if newest is None else "policy.retired"
        return Rejected(code, asked.name)
    draft.emit(PolicyRetired(asked.name, asked.by, asked.comment))
    return None


# Evolve


def on_published(state: Policies, event: PolicyPublished) -> None:
    """It leads its name from now on."""
    made = Policy(event.name, event.version, event.text, event.by, state.now)
    state.names.setdefault(event.name, {})[event.version] = made


def on_retired(state: Policies, event: PolicyRetired) -> None:
    """Of its name nothing is in force."""
    found = state.names[event.name]
    last = found[max(found)]
    said = (last.name, last.version, last.text, last.by, last.at)
    found[last.version] = Policy(*said, retired_by=event.by, retired_at=state.now)


# What is written


class PoliciesFacts(Record, frozen=True):
    """The facts of a tenant's policies, in order."""

    format: int
    turn: int
    now: TimeMs
    rules: int
    published: tuple[Policy, ...]


def facts_of(state: Policies) -> PoliciesFacts:
    """All that a state is rebuilt from."""
    every = (each for found in state.names.values() for each in found.values())
    ordered = tuple(sorted(every, key=lambda each: (each.name, each.version)))
    return PoliciesFacts(FORMAT, state.turn, state.now, state.rules, ordered)


def from_facts(found: PoliciesFacts, cell: CellId) -> Policies:
    """The state these are the facts of."""
    state = Policies(cell)
    for each in found.published:
        state.names.setdefault(each.name, {})[each.version] = each
    return state
