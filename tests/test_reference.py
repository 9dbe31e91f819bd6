"""The reference is made from the code, and says all there is."""

from pathlib import Path

import click
import pytest

import pawlflow
import pawlflow.testing
from pawlflow.cli.main import VERBS, main
from tests.reference_kit import pages
from tests.reference_tables_kit import value_of

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "reference"


@pytest.mark.req("R94")
@pytest.mark.parametrize("name", pages())
def test_a_reference_page_is_as_the_code_says(name, request):
    """Made again, it is the same."""
    made = pages()[name]()
    if request.config.getoption("--rewrite-golden"):
        (FOLDER / name).write_text(made)
    assert (FOLDER / name).read_text() == made, "pytest tests/test_reference.py --rewrite-golden"


def test_every_public_name_has_a_heading_and_words():
    """What can be imported can be looked up."""
    for module, page in ((pawlflow, "python.md"), (pawlflow.testing, "testing.md")):
        text = (FOLDER / page).read_text()
        assert [name for name in module.__all__ if f"### `{name}`" not in text] == []
        assert [name for name in module.__all__ if not getattr(module, name).__doc__] == []


def test_every_verb_has_a_heading_and_every_option_words():
    """Verbs inside of verbs, too."""
    text = (FOLDER / "cli.md").read_text()
    context = click.Context(main)
    for verb in VERBS:
        command = main.get_command(context, verb)
        assert command is not None
        inner = command.commands.values() if isinstance(command, click.Group) else [command]
        for each in inner:
            place = verb if each is command else f"{verb} {each.name}"
            assert f"### `pawl {place}" in text
            options = [option for option in each.params if isinstance(option, click.Option)]
            assert [option.name for option in options if not option.help] == []


def test_values_are_told_in_words():
    """Types, choices, alternatives and bounds."""
    assert value_of({"enum": ["a", "b"]}) == "`a`, `b`"
    assert value_of({"type": "array", "items": {"type": "string"}}) == "list of text"
    assert value_of({"oneOf": [{"type": "object"}, {"const": "x"}]}) == "mapping or `x`"
    assert value_of({"type": "integer", "minimum": 1, "maximum": 9}) == "integer 1 to 9"
    assert value_of({}) == "any value"
