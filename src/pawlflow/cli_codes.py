"""What the codes of the command line mean, its files, graphs and labs: cause, and the way out."""

from typing import Final

CLI_CODES: Final[dict[str, tuple[str, str]]] = {
    "cli.exists": (
        "A file is there already and would be replaced.",
        "Name another file or folder; some verbs take --force.",
    ),
    "cli.json": (
        "An option's value is no JSON; the message names line and column.",
        "Mend it; @FILE reads a file.",
    ),
    "cli.name": (
        "A name cannot be that of a workflow, or of its files.",
        "Use the one that is suggested: a letter a-z, then a-z, digits, _ and -.",
    ),
    "cli.not_found": ("A path given does not exist.", "Check the spelling."),
    "cli.not_yet": (
        "This version cannot do that yet.",
        "See CHANGELOG.md for what each version does.",
    ),
    "cli.nothing": (
        "Nothing was found to work on under the paths given.",
        "Name files, or folders that hold .yaml files.",
    ),
    "cli.timeout": (
        "The time given was up, and the instance is still open.",
        "Nothing is lost: `pawl wait ID` goes on.",
    ),
    "cli.unknown_code": (
        "There is no error with this code.",
        "`pawl explain` without a code lists all.",
    ),
    "cli.unreadable": ("A file cannot be read.", "Check its permissions."),
    "cli.unwritable": ("A folder cannot be written to.", "Check its permissions."),
    "cli.usage": (
        "The command was not called as it can be.",
        "`pawl --help` and `pawl VERB --help` say how.",
    ),
    "cli.worker": (
        "The module of --worker cannot be imported, or has no @step function.",
        "Check the name or path; the current folder is looked in.",
    ),
    "sim.tape": (
        "The file of --tape is no tape of `pawl sim`, or of another version.",
        "Name the file that `pawl sim` wrote when it found a failure.",
    ),
    "settings.toml": (
        "pawl.toml is not TOML; the message says where it stops to be.",
        "A setting is written NAME = VALUE, a text in quotes (docs/settings.md).",
    ),
    "settings.unknown": (
        "pawl.toml has a setting that there is none of.",
        "Use the one that is suggested, or take it out: docs/settings.md lists all.",
    ),
    "settings.unreadable": (
        "pawl.toml, or the file that PAWL_SETTINGS names, cannot be read.",
        "Check the path and its permissions; PAWL_SETTINGS= reads none.",
    ),
    "settings.value": (
        "A setting of pawl.toml cannot have the value it has.",
        "Give what the message says.",
    ),
    "wfformat.ambiguous": (
        "A task names a parent or child that several tasks are called.",
        "Refer to tasks by id, and give each task one.",
    ),
    "wfformat.cycle": (
        "Tasks wait for each other in a circle, so none of them could ever have run.",
        "Take one link of the circle out of `parents`, and of `children` on the other side.",
    ),
    "wfformat.duplicate": (
        "Two tasks, or two records of an execution, have the same id.",
        "Give each task an id of its own; keep one record of each.",
    ),
    "wfformat.json": ("The file is not JSON.", "Export it again; it must be UTF-8."),
    "wfformat.runtime": (
        "A runtime is no number of seconds from 0 to a hundred years.",
        "Mend it, or take it out: a task without a runtime answers at once.",
    ),
    "wfformat.shape": (
        "The file is JSON, but not WfFormat; the message names the path and what was expected.",
        "Give an instance as WfCommons writes it: workflow.tasks, or workflow.specification.tasks.",
    ),
    "wfformat.too_large": (
        "The file, or the definition made from it, is larger than is read.",
        "Split the trace: the limits of files are fixed in this version.",
    ),
    "wfformat.unknown": (
        "A task names a parent or child that is no task of the file.",
        "Add the task, mend the name, or take it out.",
    ),
    "lab.misused": (
        "A test asks a lab for what it cannot do; the message says what it can.",
        "Do as the message says; docs/testing.md shows how labs are used.",
    ),
    "lab.stuck": (
        "In a lab, a function does not come to an end, or workflows go on for ever at one instant.",
        "Let the function wait by `await lab.sleep()`, or script it; give it longer by `patience`.",
    ),
    "lab.waiting": (
        "In a lab, a run is not closed, and nothing more can happen by itself.",
        "Let the test act as the message says, or let time pass with `skip`.",
    ),
}
