"""`pawl`: the group of verbs. Each lives in a module of its own, imported when it is called."""

import sys
from importlib import import_module
from typing import Any, Final

import click

VERBS: Final[dict[str, tuple[str, str]]] = {
    "check": ("pawlflow.cli.check", "Validate and lint definitions; errors with line and column."),
    "explain": ("pawlflow.cli.explain", "Say what an error code means, and the way out."),
    "journal": ("pawlflow.cli.journal", "Show or verify a journal file."),
    "schema": ("pawlflow.cli.schema", "Print the JSON Schema of a document kind, for editors."),
    "test": ("pawlflow.cli.test", "Run scenarios in virtual time."),
    "version": ("pawlflow.cli.version", "Print the version."),
}

PLANNED: Final = {  # promised, and not here yet: the answer should not be "no such verb"
    *("demo", "dev", "serve", "worker", "apply", "plan", "run", "start", "wait", "new"),
    *("ls", "show", "history", "watch", "why", "trace", "diff", "review", "schedules"),
    *("signal", "emit", "cancel", "pause", "unpause", "resume", "reassign", "retry"),
    *("keys", "tenants", "replay", "fork", "cells", "manifest", "snapshot", "gc", "dlq"),
    *("usage", "quota", "pools", "policy", "audit", "sim", "move", "import", "bench"),
    *("doctor", "backup", "restore"),
}
INTERRUPTED: Final = 130
GLOBALS: Final = (
    click.Option(
        ["--db"], envvar="PAWL_DB", metavar="URL", help="Where instances live.", show_envvar=True
    ),
    click.Option(
        ["--url"], envvar="PAWL_URL", metavar="URL", help="Talk to a server.", show_envvar=True
    ),
    click.Option(["--tenant"], envvar="PAWL_TENANT", metavar="T", help="Whose.", show_envvar=True),
    click.Option(["--json", "as_json"], is_flag=True, default=None, help="Print JSON."),
)


class Verbs(click.Group):
    """A group that knows its verbs without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All verbs, in order."""
        return sorted(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the verb that was asked for."""
        if cmd_name not in VERBS:
            return None
        command: click.Command = import_module(VERBS[cmd_name][0]).command
        known = {option.name for option in command.params}
        command.params += [option for option in GLOBALS if option.name not in known]
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest a verb when the one given is unknown."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            raise click.UsageError(unknown_verb(args[0]), ctx) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs with their one line each."""
        with formatter.section("Verbs"):
            formatter.write_dl([(verb, VERBS[verb][1]) for verb in self.list_commands(ctx)])


def unknown_verb(given: str) -> str:
    """The message for a verb that does not exist."""
    from difflib import get_close_matches  # only on this path

    if given in PLANNED:
        return f"{given!r} is not in this version: it proves workflows with `pawl test`."
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
@click.pass_context
def main(ctx: click.Context, /, **settings: Any) -> None:
    """Keep what was said before the verb; what is said after it wins."""
    ctx.obj = settings


def entry() -> None:
    """The command as a process: usage errors end with 2, an interrupt with 130."""
    try:
        sys.exit(main(standalone_mode=False) or 0)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        sys.exit(INTERRUPTED)
    except click.ClickException as error:
        if "--json" in sys.argv:
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
