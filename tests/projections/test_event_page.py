"""docs/events.md has the envelope, every name and every member, as the table of events has them."""

import re
from pathlib import Path

import jsonschema_rs
import msgspec
import pytest

from pawlflow.projections.cloudevents import cloud_event
from pawlflow.projections.event_schema import SCHEMA_ID, events_schema
from pawlflow.projections.event_table import ENVELOPE, EVENTS, MEMBERS, OPTIONAL
from pawlflow.projections.history import history
from tests.projections.kit import story_of

PAGE = Path(__file__).parents[2] / "docs" / "events.md"


def envelope_table():
    """One line for each member of the envelope."""
    lines = ["| member | is |", "|---|---|"]
    lines += [
        f"| `{name}`{' (optional)' if name in OPTIONAL else ''} | {words} |"
        for name, (words, _) in ENVELOPE.items()
    ]
    return lines


def names_table():
    """One line for each name."""
    lines = ["| name | means | payload |", "|---|---|---|"]
    return [*lines, *(f"| `{n}` | {said.meaning} | {told(said)} |" for n, said in EVENTS.items())]


def told(said):
    """The members of a payload."""
    always = [f"`{name}`" for name in said.always]
    either = [" \\| ".join(f"`{name}`" for name in said.either)] if said.either else []
    return ", ".join([*always, *either, *(f"(`{name}`)" for name in said.sometimes)])


def members_table():
    """One line for each member of a payload."""
    lines = ["| member | is |", "|---|---|"]
    return [*lines, *(f"| `{name}` | {words} |" for name, (words, _) in MEMBERS.items())]


TABLES = {"envelope": envelope_table, "names": names_table, "members": members_table}


@pytest.mark.req("R176")
@pytest.mark.parametrize("name", TABLES)
def test_the_page_has_the_table(name, request):
    """Word for word, as the code has it."""
    begin = f"<!-- {name}: made by tests/projections/test_event_page.py -->\n"
    end = f"<!-- end {name} -->\n"
    lines = "".join(f"{line}\n" for line in TABLES[name]())
    before, found, rest = PAGE.read_text().partition(begin)
    _, _, after = rest.partition(end)
    if request.config.getoption("--rewrite-golden"):
        PAGE.write_text(before + begin + lines + end + after)
    assert found and PAGE.read_text() == before + begin + lines + end + after


def test_the_page_names_every_name_where_it_is_published():
    """The table of transitions has each of them."""
    _, _, rest = PAGE.read_text().partition("## What is published when")
    transitions, _, _ = rest.partition("## Payloads")

    assert set(re.findall(r"`([A-Z]\w+)`", transitions)) == set(EVENTS)


def test_the_cloudevent_on_the_page_is_one():
    """With the attributes of a real one, in their order, and data that fits the schema it names."""
    (block,) = re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)
    shown = msgspec.json.decode(block)
    real = cloud_event(history(story_of("a-failed-undo-stops-the-others"))[0], "trip")
    registry = jsonschema_rs.Registry([(SCHEMA_ID, events_schema())])
    validator = jsonschema_rs.validator_for({"$ref": shown["dataschema"]}, registry=registry)

    assert list(shown) == list(real)
    assert validator.is_valid(shown["data"])
    listed = re.findall(
        r"^\| (`[a-z`, ]+) \|", PAGE.read_text().partition("| attribute |")[2], re.M
    )
    assert {name for cell in listed for name in re.findall(r"`(\w+)`", cell)} == set(real)
