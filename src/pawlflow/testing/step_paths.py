"""Which steps a scenario may name: those of its workflow, their items, undos and children."""

import re

from pawlflow.definition.finding import Place
from pawlflow.definition.report import Report, listing, suggest
from pawlflow.definition.shape import Step, Workflow
from pawlflow.testing.scenario_fields import step_path

SEGMENT = re.compile(r"([^\[]+)(\[[0-9]+\])?\Z")


class StepPaths:
    """The steps of a workflow and of the children that are defined beside it."""

    def __init__(self, workflows: tuple[Workflow, ...]) -> None:
        self.root = workflows[0].name
        self.steps: dict[str, dict[str, Step]] = {}
        for workflow in workflows:
            named = {str(step.name): step for step in workflow.steps}
            self.steps.setdefault(workflow.name, named)

    def check(self, name: str, place: Place, report: Report) -> Step | None:
        """The step of a name, or a finding. A malformed name has been reported already."""
        path = step_path(name)
        if path is None:
            return None
        *parents, last = path.removeprefix("undo/").split("/")
        workflow = str(self.root)
        for segment in parents:
            parent = self.find(segment, name, workflow, place, report)
            if parent is None:
                return None
            if not self.is_defined_child(parent):
                report.error(
                    place,
                    "step.unknown",
                    f"{name!r}: {segment!r} is not a child workflow that is defined here",
                    "stub the child like a step, or add its Workflow to definition",
                )
                return None
            workflow = parent.target
        return self.find(last, name, workflow, place, report)

    def is_defined_child(self, step: Step) -> bool:
        """Is it a child whose workflow is at hand, so that its own steps are run?"""
        return step.kind == "workflow" and step.target in self.steps

    def find(
        self, segment: str, name: str, workflow: str, place: Place, report: Report
    ) -> Step | None:
        """One step of one workflow."""
        found = SEGMENT.match(segment)
        assert found is not None  # step_path let it pass
        known = self.steps[workflow]
        step = known.get(found[1])
        if step is None:
            report.error(
                place,
                "step.unknown",
                f"{name!r}: {found[1]!r} is not a step of {workflow!r}; "
                f"steps are: {listing(known)}",
                suggest(found[1], known) or "use the name of a step",
            )
        elif found[2] and step.for_each is None:
            report.error(
                place,
                "step.unknown",
                f"{name!r}: step {step.name!r} has no items, because it has no forEach",
                f"write {step.name!r}",
            )
            return None
        return step
