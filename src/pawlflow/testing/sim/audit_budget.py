"""The budget of an instance, reckoned by an outsider from receipts and costs."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

from pawlflow.definition.plan import Plan
from pawlflow.model.payload import Payload

MILLION: Final = 1_000_000
Bad = Callable[[str, str], None]


class Money:
    """What was spent and set aside, and how much may be."""

    def __init__(self, plan: Plan, bad: Bad) -> None:
        self.bad = bad
        self.soft = {unit: soft for unit, (soft, _) in plan.budget.items() if soft is not None}
        self.hard = {unit: hard for unit, (_, hard) in plan.budget.items() if hard is not None}
        self.units = tuple(plan.budget)
        self.spent: Counter[str] = Counter()
        self.reserved: Counter[str] = Counter()
        self.warned: dict[str, None] = {}

    def needed(self, cost: Mapping[str, int], unit: str) -> int:
        """What would be taken if an attempt of this cost began."""
        return self.spent[unit] + self.reserved[unit] + cost.get(unit, 0)

    def short(self, cost: Mapping[str, int]) -> dict[str, int]:
        """The limits that are in its way, and what it needs."""
        wanted = {unit: self.needed(cost, unit) for unit in self.hard}
        return {unit: need for unit, need in wanted.items() if need > self.hard[unit]}

    def begin(self, cost: Mapping[str, int], what: object) -> None:
        """An attempt begins: there must be enough, and it is set aside."""
        for unit, need in self.short(cost).items():
            self.bad("13", f"{what} begins, {need} {unit} of {self.hard[unit]} would be taken")
        for unit in self.units:
            self.reserved[unit] += cost.get(unit, 0)

    def give_back(self, cost: Mapping[str, int]) -> None:
        """An attempt has ended."""
        for unit in self.units:
            self.reserved[unit] -= cost.get(unit, 0)

    def spend(self, cost: Mapping[str, int], usage: Payload | None) -> None:
        """What it cost: as its executor says, or else as was expected."""
        said = {} if usage is None else usage.value
        for unit in self.units:
            told: Any = said.get(unit)
            self.spent[unit] += cost.get(unit, 0) if told is None else round(told * MILLION)

    def warn(self, unit: str) -> None:
        """A soft limit is passed: said once, and only if so."""
        if unit in self.warned or self.needed({}, unit) <= self.soft.get(unit, 0):
            self.bad("13", f"a warning about {unit} that is not due")
        self.warned[unit] = None

    def raised(self, limits: Mapping[str, int], cost: Mapping[str, int], asked: Any) -> None:
        """A human raised limits: to what they said, and else to what was needed."""
        wanted = self.short(cost) | {unit: round(asked[unit] * MILLION) for unit in asked}
        if dict(limits) != wanted:
            self.bad("13", f"limits are raised to {dict(limits)}, asked for were {wanted}")
        self.hard |= limits

    def settle(self, spent: Mapping[str, int], reserved: Mapping[str, int]) -> None:
        """The end of a turn: what the instance says of itself is what it comes to."""
        for unit in self.units:
            told = (spent.get(unit, 0), reserved.get(unit, 0))
            if told != (self.spent[unit], self.reserved[unit]):
                ours = (self.spent[unit], self.reserved[unit])
                self.bad("13", f"{unit} spent and reserved are {told}, and should be {ours}")
            passed = unit in self.soft and self.needed({}, unit) > self.soft[unit]
            if passed and unit not in self.warned:
                self.bad("13", f"nobody was warned about {unit}")
