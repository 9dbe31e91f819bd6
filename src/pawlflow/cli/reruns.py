"""Reruns: a child that is tried again is a new instance; its stubs are read on where they were."""

from pawlflow.model.ids import InstanceId
from pawlflow.projections.kin import Kin
from pawlflow.projections.story import tell
from pawlflow.projections.units import undo_attempts


class Reruns:
    """How often the steps of a child were called in its earlier runs, as the store has them."""

    def __init__(self, kin: Kin) -> None:
        self.kin = kin
        self.known: dict[str, tuple[InstanceId, ...]] = {}  # the earlier runs of an instance

    def calls_before(self, key: str, unit: str, *, undo: bool) -> int:
        """The calls of a step or item, such as `build[2]`, in all earlier runs of an instance."""
        return sum(self.calls_in(each, unit, undo=undo) for each in self.earlier(key))

    def earlier(self, key: str) -> tuple[InstanceId, ...]:
        """The instances that stood in the same place before, the first run first."""
        if key not in self.known:
            self.known[key] = tuple(self.looked_up(key))
        return self.known[key]

    def looked_up(self, key: str) -> list[InstanceId]:
        """Those that the same step of the parent started, or of an earlier run of the parent."""
        parent = self.kin.parent(key)
        above = () if parent is None else self.earlier(parent.key)
        if parent is None or (parent.attempt == 1 and not above):
            return []
        stories = [self.kin.story(each) for each in (*above, parent.key)]
        children = [child for story in stories if story for child in tell(story).children.values()]
        places = [child.id for child in children if child.step == parent.step]
        return places[: places.index(InstanceId(key))]

    def calls_in(self, key: InstanceId, unit: str, *, undo: bool) -> int:
        """The calls of a step or item in one instance."""
        story = self.kin.story(key)
        state = None if story is None else tell(story).state
        found = None if state is None else state.named(unit)
        if state is None or found is None:
            return 0
        return undo_attempts(state, found) if undo else found.attempt
