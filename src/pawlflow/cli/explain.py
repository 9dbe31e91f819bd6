"""`pawl explain CODE`: what an error means, and the way out."""

from difflib import get_close_matches
from typing import Any

import click

from pawlflow.cli.output import NOT_FOUND, fail, print_json, setting
from pawlflow.errors import Explanation, explanations


@click.command(help="Say what an error code means, and the way out. Without a code: list all.")
@click.argument("code", required=False)
def command(code: str | None, as_json: bool | None, **_: Any) -> None:
    """Explain one code, or list all."""
    json = bool(setting("as_json", as_json))
    known = explanations()
    if code is None:
        list_all(known, as_json=json)
    elif code in known:
        explain(code, known[code], as_json=json)
    else:
        close = get_close_matches(code, known, n=3)
        hint = f"; did you mean {', '.join(close)}?" if close else ""
        message = f"there is no error code {code!r}{hint}"
        fail("cli.unknown_code", message, exit_code=NOT_FOUND, as_json=json)


def list_all(known: dict[str, Explanation], *, as_json: bool) -> None:
    """Every code with its cause."""
    if as_json:
        print_json([as_dict(code, known[code]) for code in sorted(known)])
        return
    width = max(map(len, known))
    for code in sorted(known):
        click.echo(f"{click.style(code.ljust(width), bold=True)}  {known[code].cause}")


def explain(code: str, words: Explanation, *, as_json: bool) -> None:
    """One code in full."""
    if as_json:
        print_json(as_dict(code, words))
        return
    click.echo(f"{click.style(code, bold=True)}\n\n  {words.cause}\n\n  Way out: {words.way_out}")


def as_dict(code: str, words: Explanation) -> dict[str, str]:
    """A code for machines."""
    return {"code": code, "cause": words.cause, "way_out": words.way_out}
