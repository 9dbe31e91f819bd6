"""Every code a finding can have, with its cause and the way out; `pawl explain` prints them."""

from typing import Final

CODES: Final[dict[str, tuple[str, str]]] = {
    "yaml.syntax": (
        "The file is not YAML.",
        "Check indentation, brackets and quotes around the place; indent with spaces.",
    ),
    "yaml.empty": (
        "The file holds no document.",
        "Start with apiVersion: pawl.dev/v1 and kind: Workflow.",
    ),
    "yaml.too_large": (
        "The file is larger than the reader takes.",
        "Split it, or raise the limit in the settings.",
    ),
    "yaml.too_many_nodes": (
        "The file holds more values than the reader takes.",
        "Split it; pass large data as input.",
    ),
    "yaml.too_many_documents": (
        "The file holds more documents than the reader takes.",
        "Split it.",
    ),
    "yaml.depth": (
        "Lists and mappings are nested deeper than any definition needs.",
        "Flatten the data, or pass it as input.",
    ),
    "yaml.scalar_too_long": (
        "One text is longer than the reader takes.",
        "Pass large texts as input, not in the definition.",
    ),
    "yaml.not_utf8": ("The file is not UTF-8.", "Save it as UTF-8."),
    "yaml.control": (
        "The file holds a character that cannot be seen.",
        "Remove it; only tab and line ends are allowed.",
    ),
    "yaml.line_break": (
        "U+0085, U+2028 or U+2029 stands in the file: some readers of YAML end a line there, and "
        "change the text.",
        "Write it as an escape in double quotes, such as \\u2028, or end the line as usual.",
    ),
    "yaml.alias": (
        "Anchors and aliases are not read: a few bytes of them can unfold without bound.",
        "Write the value out at each place.",
    ),
    "yaml.tag": ("Tags are not read.", "Remove the tag; quote what must be a text."),
    "yaml.merge": ("Merge keys are not read.", "Write the fields out at each place."),
    "yaml.key": ("A key is not a text.", "Put it into quotes."),
    "yaml.duplicate_key": (
        "A mapping has the same key twice, and only one could count.",
        "Remove one of the two.",
    ),
    "yaml.number": (
        "A number does not fit into 64 bits, or is infinite or not a number.",
        "Put it into quotes to keep it as a text.",
    ),
    "field.unknown": (
        "The field is not part of the format here.",
        "Check its spelling and indentation; keep notes in metadata.annotations.",
    ),
    "field.missing": ("A required field is not there.", "Add it."),
    "field.type": ("A value is of the wrong type.", "Write it as the message says."),
    "field.value": (
        "A value is of the right type, but not one of those allowed.",
        "Use one that the message names.",
    ),
    "field.conflict": ("Two fields contradict each other.", "Remove one of the two."),
    "duration.bad": (
        "A duration has the wrong form or size.",
        "Write units from large to small, without spaces: 1d, 2h, 5m, 30s, 500ms, 1h30m.",
    ),
    "cron.bad": (
        "A schedule is not a five-field cron line.",
        "Write minute, hour, day of month, month and day of week: 0 6 * * 1.",
    ),
    "timezone.unknown": (
        "There is no time zone of this name.",
        "Use a name of the IANA database: Europe/Berlin, America/New_York, UTC.",
    ),
    "schedule.duplicate": (
        "Two schedules in a file have the same name; that of a workflow has the workflow's name.",
        "Change the name of one of them, or remove the workflow's trigger.schedule.",
    ),
    "schema.bad": (
        "A JSON Schema (input or check) is not valid, or refers to something outside of it.",
        "Mend it at the path that the message names.",
    ),
    "name.bad": (
        "A name has characters or a length that names do not have.",
        "Use lower-case letters, digits and hyphens, starting with a letter.",
    ),
    "name.reserved": ("The name is a word of the engine.", "Choose another one."),
    "kind.later": (
        "The kind of document is part of the format, but this version does not read it.",
        "Nothing to do; it takes effect with a version that does.",
    ),
    "workflow.duplicate": (
        "Two workflows in a file have the same name and version.",
        "Change the name or version of one of them.",
    ),
    "steps.none": ("The workflow has no steps.", "Add at least one."),
    "steps.too_many": (
        "The workflow has more steps than the reader takes.",
        "Split it into child workflows, or use forEach.",
    ),
    "step.kind": (
        "A step must say exactly once what it does.",
        "Keep one of run, agent, approval, sleep, wait, workflow and emit.",
    ),
    "step.duplicate": (
        "A step, a dependency or a compensation is given twice.",
        "Rename or remove one of the two.",
    ),
    "step.unknown": ("A name does not belong to any step.", "Check the spelling."),
    "step.cycle": (
        "Steps wait for each other in a circle, so none of them can start.",
        "Remove one dependency of the circle.",
    ),
    "step.unreachable": (
        "A step waits for steps that can never start.",
        "Resolve the circle before it.",
    ),
    "step.sequence": (
        "mode: sequence makes a chain of the list, so dependsOn has no place in it.",
        "Remove mode, or every dependsOn.",
    ),
    "step.policy": (
        "policy does not go with this kind of step: it gives nobody anything to do.",
        "Put it on the step that acts: run, agent, workflow or emit.",
    ),
    "policy.duplicate": (
        "Two policies of one file have the same name and version.",
        "Give one of them another name or version.",
    ),
    "step.for_each": (
        "forEach goes with run, agent and workflow only.",
        "Put the step into a child workflow, and run that for each item.",
    ),
    "step.revise": (
        "A gate can only send back run and agent steps that come before it.",
        "Name such steps in revise.",
    ),
    "step.guards": (
        "A gate guards itself, or a step that comes before it, so each would wait for the other.",
        "Name steps that depend on the gate in guards.",
    ),
    "effect.not_allowed": (
        "A step runs an effect that spec.effects does not list.",
        "Add the effect to the list, or use another one.",
    ),
    "expression.syntax": ("The text is not an expression.", "Mend it at the place shown."),
    "expression.too_long": ("The expression is too long.", "Compute the value in a step."),
    "expression.too_deep": ("The expression is nested too deeply.", "Split it up."),
    "expression.unknown_name": (
        "The name means nothing at this place.",
        "Use input, steps and instance; item, index, event, command and result only where they "
        "exist.",
    ),
    "expression.unknown_function": ("There is no such function.", "Use one of those listed."),
    "expression.arguments": (
        "A function or macro was given the wrong number or form of arguments.",
        "Check how it is called.",
    ),
    "expression.duplicate_key": ("A map literal has a key twice.", "Remove one of the two."),
    "expression.regex": ("The pattern is not a regular expression.", "Mend the pattern."),
    "expression.unknown_step": ("The expression names a step that is not there.", "Mend the name."),
    "expression.not_ancestor": (
        "The result of a step is used where that step may not have run yet.",
        "Add the step to dependsOn, so that it comes before.",
    ),
    "expression.type": (
        "An operator or function was given values of a type it does not take.",
        "Test for null with has(), or convert with int(), double() or string().",
    ),
    "expression.convert": ("A value cannot be converted.", "Test it before converting."),
    "expression.divide_by_zero": ("A number was divided by zero.", "Test the divisor first."),
    "expression.overflow": ("A number left the range of its type.", "Use smaller numbers."),
    "expression.cost": (
        "Evaluating took more work than an expression may cost.",
        "Compute the value in a step.",
    ),
    "lint.timeout": (
        "Without a timeout a workflow or step can stay open for ever.",
        "Add timeout.",
    ),
    "lint.schedule_input": (
        "A schedule starts the workflow with {}, which its input schema refuses.",
        "Let the schema accept {}, or give the input in a document of kind Schedule.",
    ),
    "lint.steps": (
        "More than ten steps are hard to oversee.",
        "Split the workflow into children.",
    ),
    "lint.undo": (
        "A failure would undo other steps, but leave what this one changed.",
        "Add undo, mutates: false if the step only reads, or irreversible: true if nothing can.",
    ),
    "lint.undo_both": (
        "A step has an undo and an entry in compensation; the undo is used.",
        "Remove one of the two.",
    ),
    "lint.gate_expiry": ("A gate stays open until somebody decides.", "Add approval.expires."),
    "lint.guards": (
        "A guarded step does not wait for its gate.",
        "Let the step depend on the gate.",
    ),
    "lint.revise": (
        "A gate sends back nothing, or names what it never sends back.",
        "Use onReject: changes together with revise, or an agent step right before the gate.",
    ),
    "lint.escalation": (
        "A rung of the escalation ladder has no timeout, so the next is never asked.",
        "Give every rung but the last a timeout.",
    ),
    "lint.irreversible": (
        "An irreversible step can run without anybody's approval.",
        "Let it depend on an approval step.",
    ),
    "lint.disconnected": (
        "Parts of the workflow have nothing to do with each other.",
        "Add the missing dependsOn, or make several workflows of it.",
    ),
    "lint.unused": ("A field does nothing on this kind of step.", "Remove it."),
    "report.full": ("There is more to say than is shown.", "Mend what is shown, and check again."),
    "scenario.workflow": (
        "A scenario's workflow is not given, given twice, or cannot be read.",
        "Give exactly one of workflow (a path) and definition.",
    ),
    "scenario.policy": (
        "A script publishes or retires a policy that the scenario does not have, or not in this "
        "version.",
        "Put the document of kind: Policy beside the workflow, under definition: or in its file.",
    ),
    "scenario.answer": (
        "A stub's answer must be exactly one thing.",
        "Write one of {ok: RESULT}, {fail: CLASS} and {hang: true}.",
    ),
    "scenario.verb": ("A script entry must do exactly one thing.", "Split it into two entries."),
    "scenario.stub_unused": (
        "A stub is never asked: the step takes no attempts of its own.",
        "Remove the stub; approve, signal or wait in the script.",
    ),
}
