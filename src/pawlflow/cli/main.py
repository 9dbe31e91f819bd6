"""`pawl`: the group of verbs. Each lives in a module of its own, imported when it is called."""

import sys
from importlib import import_module
from typing import Any, Final

import click

VERBS: Final[dict[str, tuple[str, str]]] = {
    "demo": ("pawlflow.cli.demo", "Watch the whole story in half a minute; nothing to set up."),
    "check": ("pawlflow.cli.check", "Validate and lint definitions; errors with line and column."),
    "test": ("pawlflow.cli.test", "Run scenarios in virtual time."),
    "sim": ("pawlflow.cli.sim", "Run a workflow under injected faults; print the shrunk tape."),
    "schema": ("pawlflow.cli.schema", "Print the JSON Schema of a document kind, or of events."),
    "import": ("pawlflow.cli.importing", "Make a workflow of a graph that was recorded elsewhere."),
    "apply": ("pawlflow.cli.apply", "Publish definitions."),
    "run": ("pawlflow.cli.run", "Start a workflow, show it live, print its output."),
    "start": ("pawlflow.cli.start", "Start a workflow, print the instance's id, and return."),
    "wait": ("pawlflow.cli.wait", "Follow an instance to its end, driving it if nobody does."),
    "ls": ("pawlflow.cli.look:ls", "List instances, newest first."),
    "show": ("pawlflow.cli.look:show", "Show an instance, as it is or as it was after any turn."),
    "watch": ("pawlflow.cli.watch", "Watch an instance live."),
    "history": ("pawlflow.cli.look:history", "List the published events of an instance."),
    "why": ("pawlflow.cli.look:why", "Say why an instance is where it is, and what comes next."),
    "trace": (
        "pawlflow.cli.look:trace",
        "List every turn with its cause, its calls and their keys.",
    ),
    "explain": ("pawlflow.cli.explain", "Say what an error code means, and the way out."),
    "review": (
        "pawlflow.cli.review",
        "List, show, claim, approve, reject what waits for a human.",
    ),
    "signal": ("pawlflow.cli.act:signal", "Tell one instance; kept until a wait matches it."),
    "emit": ("pawlflow.cli.act:emit", "Tell everybody who waits for, or is started by, an event."),
    "cancel": ("pawlflow.cli.act:cancel", "Stop an instance; under compensate its work is undone."),
    "pause": ("pawlflow.cli.act:pause", "Start nothing new in an instance."),
    "unpause": ("pawlflow.cli.act:unpause", "Let a paused instance go on."),
    "resume": ("pawlflow.cli.act:resume", "Let an escalated step go on."),
    "reassign": ("pawlflow.cli.act:reassign", "Give an escalated step to another role."),
    "retry": (
        "pawlflow.cli.act:retry",
        "Try an escalated step again, with another input if given.",
    ),
    "complete": (
        "pawlflow.cli.completing",
        "Complete an attempt that an endpoint took to do later.",
    ),
    "batches": ("pawlflow.cli.batches", "List, show and follow acts on many instances."),
    "replay": ("pawlflow.cli.replay", "Decide every turn again and compare; exit 5 if it differs."),
    "rebuild": ("pawlflow.cli.rebuild", "Build the SQL views of instances and steps again."),
    "schedules": (
        "pawlflow.cli.schedules",
        "List, show, pause, unpause and backfill what starts by the clock.",
    ),
    "dlq": ("pawlflow.cli.dlq", "List, show, redrive and discard inputs that broke a cell."),
    "doctor": ("pawlflow.cli.doctor", "Check the machine and the store."),
    "backup": ("pawlflow.cli.keep:backup", "Copy the store while it is at work."),
    "restore": ("pawlflow.cli.keep:restore", "Put a backup in the place of the store."),
    "move": ("pawlflow.cli.move", "Carry the store elsewhere, from SQLite to PostgreSQL or back."),
    "journal": ("pawlflow.cli.journal", "Show or verify a journal file."),
    "archive": ("pawlflow.cli.archive", "Write closed instances as files that prove themselves."),
    "retain": ("pawlflow.cli.retain", "List or remove the instances whose time is over."),
    "policy": ("pawlflow.cli.policy", "List, show, try and retire policies that govern steps."),
    "keys": ("pawlflow.cli.keys", "Create, list and revoke keys of executors."),
    "serve": ("pawlflow.cli.serve", "Run a production node, until it is stopped."),
    "worker": ("pawlflow.cli.worker", "Run a module's commands as a service on NATS."),
    "new": ("pawlflow.cli.new", "Begin a project from a template."),
    "completion": ("pawlflow.cli.completion", "Print a script that completes verbs and names."),
    "version": ("pawlflow.cli.version", "Print the version."),
}
SECTIONS: Final = {
    "Begin": ("demo", "new", "explain", "completion", "version"),
    "Write": ("check", "test", "sim", "schema", "import", "apply"),
    "Run": ("run", "start", "wait", "serve", "worker"),
    "Look": ("ls", "show", "watch", "history", "why", "trace"),
    "Act": (
        *("review", "signal", "emit", "cancel", "pause", "unpause"),
        *("resume", "reassign", "retry", "complete", "batches"),
    ),
    "Operate": (
        *("schedules", "policy", "replay", "rebuild", "dlq", "keys", "doctor", "backup", "restore"),
        *("move", "journal", "archive", "retain"),
    ),
}

PLANNED: Final = {  # promised, and not here yet: the answer should not be "no such verb"
    *("dev", "plan", "diff", "tenants", "fork"),
    *("cells", "manifest", "snapshot", "gc", "usage", "quota", "pools", "audit"),
    "bench",
}
INTERRUPTED: Final = 130


def count_verbose(ctx: click.Context, param: click.Parameter, times: int) -> None:
    """`-v`: imported where it matters, for help must answer at once."""
    from pawlflow.cli.logs import count_verbose as counted

    counted(ctx, param, times)


GLOBALS: Final = (
    click.Option(
        ["--db"],
        envvar="PAWL_DB",
        metavar="URL",
        help="Where instances live; default sqlite:///.pawl/pawl.db.",
        show_envvar=True,
    ),
    click.Option(
        ["--url"], envvar="PAWL_URL", metavar="URL", help="A server; later.", show_envvar=True
    ),
    click.Option(
        ["--tenant"],
        envvar="PAWL_TENANT",
        metavar="T",
        help="Whose instances; default `default`.",
        show_envvar=True,
    ),
    click.Option(
        ["--json/--no-json", "as_json"],
        envvar="PAWL_JSON",
        default=None,
        is_eager=True,  # whatever is wrong with the others is told as it says
        help="Print JSON.",
        show_envvar=True,
    ),
    click.Option(
        ["-v", "--verbose"],
        count=True,
        expose_value=False,
        callback=count_verbose,
        help="Log what the engine does; twice for more. PAWL_LOG=json for machines.",
    ),
)
# These answer even if pawl.toml is not valid.
ANYWAY: Final = ("version", "explain", "demo", "new", "completion", "schema")


class Verbs(click.Group):
    """A group that knows its verbs without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All verbs, in order."""
        return sorted(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the verb that was asked for."""
        if cmd_name not in VERBS:
            return None
        module, _, name = VERBS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), name or "command")
        with_globals(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest a verb when the one given is unknown; let pawl.toml give defaults to others."""
        try:
            name, command, words = super().resolve_command(ctx, args)
        except click.UsageError as error:
            raise click.UsageError(unknown_verb(args[0]), ctx) from error
        if name is not None and command is not None:
            from pawlflow.cli.effective import use_settings

            use_settings(ctx, name, command, words, anyway=name in ANYWAY)
        return name, command, words

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs with their one line each, by what they are for."""
        for section, verbs in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(verb, VERBS[verb][1]) for verb in verbs], col_max=10)


def with_globals(command: click.Command) -> None:
    """Let the global options stand after the verb too, and after the verb of a verb."""
    from pawlflow.cli.effective import with_environment

    known = {option.name for option in command.params}
    command.params += [option for option in GLOBALS if option.name not in known]
    with_environment(command)
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        with_globals(inner)


def unknown_verb(given: str) -> str:
    """The message for a verb that does not exist."""
    from difflib import get_close_matches  # only on this path

    if given in PLANNED:
        return f"{given!r} is not in this version: `pawl --help` lists what is."
    close = get_close_matches(given, VERBS, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"There is no verb {given!r}.{hint} Verbs are: {', '.join(sorted(VERBS))}."


def print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    """`pawl --version`."""
    if wanted:
        from importlib.metadata import version

        click.echo(f"pawl {version('pawlflow')}")
        ctx.exit()


@click.group(
    cls=Verbs,
    params=[
        *GLOBALS,
        click.Option(
            ["--version"],
            is_flag=True,
            expose_value=False,
            is_eager=True,
            callback=print_version,
            help="Print the version.",
        ),
    ],
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Durable workflows for agents and business processes.",
)
def main(**_: Any) -> None:
    """What is said before the verb is kept; what is said after it wins (`output.setting`)."""


def entry() -> None:
    """The command as a process: usage errors end with 2, an interrupt with 130."""
    if sys.argv[1:2] == ["__complete"]:  # at every tab: nothing more is imported than it needs
        from pawlflow.cli import complete

        complete.main(sys.argv[2:])
        return
    try:
        sys.exit(main(standalone_mode=False) or 0)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        sys.exit(INTERRUPTED)
    except click.ClickException as error:
        from pawlflow.cli.effective import asks_for_json

        if asks_for_json(sys.argv):
            click.echo(
                json_text({"error": {"code": "cli.usage", "message": error.format_message()}})
            )
        else:
            error.show()
        sys.exit(error.exit_code)


def json_text(value: Any) -> str:
    """JSON without importing anything heavy; only on the way out."""
    import json

    return json.dumps(value, indent=2)
