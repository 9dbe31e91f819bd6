"""A family: an instance and the children it waits for, followed as they grow.

Each look reads only what came since the last one, however long the instance has run.
"""

from typing import Any, Final

from pawlflow.model.ids import CellId, InstanceId, WorkflowName
from pawlflow.model.kin import Parent
from pawlflow.projections.alerts import alerts_said, by_effect
from pawlflow.projections.checkpoints import running_loops
from pawlflow.projections.kin import Kin
from pawlflow.projections.reading import catch_up
from pawlflow.projections.show import executors_awaited, show_told
from pawlflow.projections.story import Child, Story, Telling
from pawlflow.store.port import Address, Store

FOLLOWED_MAX: Final = 12  # children, or loops; more fill no screen, and each costs a look


class Member:
    """One instance of a family."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.telling = Telling(story)
        self.shown: dict[str, Any] = {}
        self.loops: dict[str, dict[str, Any] | None] = {}  # of steps that run: the last checkpoint

    def look(self, store: Store) -> bool:
        """See whether it has moved."""
        if not self.shown or self.shown["closed_at"] is None:
            catch_up(store, self.story)
        moved = not self.shown or self.shown["turns"] != len(self.story.turns)
        if moved:
            self.shown = show_told(self.telling.tell(self.story))
        return self.look_at_loops(store) or moved

    def look_at_loops(self, store: Store) -> bool:
        """See whether a step that runs has kept another checkpoint."""
        kept = running_loops(store, self.telling.told.state, FOLLOWED_MAX)
        moved, self.loops = kept != self.loops, kept
        if not kept:
            return moved
        steps = dict(self.shown["steps"])  # whoever was given the last ones compares them
        for name, each in kept.items():
            if name in steps:
                steps[name] = steps[name] | {"checkpoint": each}
        self.shown = self.shown | {"steps": steps}
        return moved


class Family:
    """An instance and its children, one level down."""

    def __init__(self, store: Store, story: Story) -> None:
        self.store = store
        self.root = Member(story)
        self.kin = Kin(store, story.cell.tenant)
        self.children: dict[InstanceId, Member] = {}
        self.awaited = False  # is a child to be followed that is not there yet?
        self.begins = False  # does a step run that may be a loop, and has kept nothing yet?
        self.known: dict[InstanceId, bool] = {}  # which others belong to it

    def look(self) -> dict[str, Any] | None:
        """The object of `show`, with `family` the same of children; None if nothing has moved."""
        moved = [self.root.look(self.store)]
        wanted = self.wanted()
        found = {child.id: self.children.get(child.id) or self.member(child.id) for child in wanted}
        self.children = {key: member for key, member in found.items() if member is not None}
        members = [self.root, *self.children.values()]
        self.begins = any(each is None for member in members for each in member.loops.values())
        self.awaited = any(e.heard is None and e.id not in self.children for e in wanted)
        moved += [member.look(self.store) for member in self.children.values()]
        return self.shown if any(moved) else None

    @property
    def shown(self) -> dict[str, Any]:
        """All of it, as it was last seen."""
        family = {key: member.shown for key, member in self.children.items()}
        return self.root.shown | {"family": family}

    def whole(self, through: str | None = None) -> dict[str, Any]:
        """The object of `show --json`."""
        return show_told(self.root.telling.told, through, self.kin)

    def lacking(self) -> list[dict[str, Any]]:
        """What of the instance waits for somebody who can carry it out."""
        root = self.root.story.cell
        alerts = by_effect(alerts_said(self.store, root.tenant).alerts)
        return executors_awaited(self.root.telling.told, alerts)

    def wanted(self) -> list[Child]:
        """The children to be followed: all, or of many those that have not answered."""
        every = self.root.telling.told.children
        if len(every) <= FOLLOWED_MAX:
            return list(every.values())
        return [child for child in every.values() if child.heard is None][:FOLLOWED_MAX]

    def member(self, key: InstanceId) -> Member | None:
        """A child, if it is there yet."""
        story = self.kin.story(key)
        return None if story is None else Member(story)

    def has(self, cell: CellId) -> bool:
        """Is this the instance, its child, or a child of one of those?"""
        root = self.root.story.cell
        if cell.tenant != root.tenant or cell.key == root.key:
            return cell.tenant == root.tenant
        if cell.key not in self.known:
            parent = self.kin.parent(cell.key)
            above = None if parent is None else CellId(cell.tenant, *named(parent))
            self.known[cell.key] = above is not None and self.has(above)
        return self.known[cell.key]

    def open(self) -> list[tuple[Address, int]]:
        """All that may still move, and how many turns of each were seen."""
        members = [self.root, *self.children.values()]
        tenant = self.root.story.cell.tenant
        loops = [kept for each in members for kept in each.loops.values() if kept is not None]
        return [
            ((tenant, each.story.cell.key), len(each.story.turns))
            for each in members
            if each.shown["closed_at"] is None
        ] + [((tenant, InstanceId(kept["loop"])), kept["count"]) for kept in loops]


def named(parent: Parent) -> tuple[WorkflowName, InstanceId]:
    """The workflow and the id of a parent."""
    return WorkflowName(parent.workflow), InstanceId(parent.key)
