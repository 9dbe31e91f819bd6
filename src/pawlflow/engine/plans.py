"""Plans: the definitions that cells at work run under, compiled once each."""

from collections.abc import Iterable, Mapping
from typing import Final

from pawlflow.definition.plan import Plan, plan_of
from pawlflow.engine.fair import Offer
from pawlflow.model.ids import Digest
from pawlflow.model.inputs import StartInstance
from pawlflow.store.port import StoreError

PLANS_MAX: Final = 2_048


class Plans:
    """Plans by definition hash. `None`: there is no such definition."""

    def __init__(self) -> None:
        self.known: dict[Digest, Plan | None] = {}
        self.absent: dict[Digest, None] = {}  # looked for and not found, since the last batch

    def of(self, definition: Digest) -> Plan:
        """A plan that must be there: an instance runs under it."""
        found = self.known.get(definition)
        if found is None:
            raise StoreError("definition.lost", f"definition {definition.hex()} is missing")
        return found

    def missing(self, offers: Iterable[Offer]) -> tuple[Digest, ...]:
        """The definitions these starts need that were not read yet."""
        wanted = (each.input.definition for each in offers if isinstance(each.input, StartInstance))
        return tuple(dict.fromkeys(each for each in wanted if each not in self.known))

    def look_again(self) -> None:
        """What was not there may be published meanwhile, by another node."""
        if self.absent:
            for definition in self.absent:
                if self.known.get(definition) is None:
                    self.known.pop(definition, None)
            self.absent.clear()

    def add(self, definitions: Mapping[Digest, bytes], wanted: Iterable[Digest] = ()) -> None:
        """Take in definitions; of those wanted, the ones that were not found do not exist."""
        if len(self.known) > PLANS_MAX:
            self.known.clear()
        for definition in wanted:
            if self.known.setdefault(definition, None) is None:
                self.absent[definition] = None
        for definition, data in definitions.items():
            self.known[definition] = plan_of(data)
