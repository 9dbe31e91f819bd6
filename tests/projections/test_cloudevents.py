"""CloudEvents: accepted by the reference reader, nothing lost, and each names its schema."""

import json
import re
from datetime import datetime

import jsonschema_rs
import pytest
from cloudevents.core.exceptions import CloudEventValidationError
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent
from hypothesis import given
from hypothesis import strategies as st

from pawlflow.projections.cloudevents import EXTENSIONS, cloud_event, cloud_events
from pawlflow.projections.event_schema import SCHEMA_ID, events_schema
from pawlflow.projections.event_table import EVENTS
from pawlflow.projections.history import history
from tests.projections.kit import NAMES, ran, story_of

FAILS = "a-failed-undo-stops-the-others"
# Types of the specification: a string has no controls, an integer has 32 bits.
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f]")


def read(told):
    """A CloudEvent as the reference reader reads it. Raises CloudEventValidationError."""
    event = JSONFormat().read(None, json.dumps(told))
    assert isinstance(event, CloudEvent)
    return event


@pytest.mark.req("R176")
@pytest.mark.parametrize("name", NAMES)
def test_the_reference_reader_accepts_them(name):
    """Every event of every scenario, with its attributes and its data."""
    story, _ = ran(name)

    for told, envelope in zip(
        cloud_events(history(story), story.cell.workflow), history(story), strict=True
    ):
        event = read(told)
        assert event.get_id() == envelope["eventId"]
        assert event.get_type() == f"dev.pawl.{envelope['eventType']}"
        assert event.get_source() == f"/pawl/default/{story.cell.workflow}"
        assert event.get_subject() == story.cell.key
        assert event.get_time() == datetime.fromisoformat(envelope["occurredAt"])
        assert event.get_datacontenttype() == "application/json"
        assert event.get_data() == envelope["payload"]


def test_the_reference_reader_is_strict_enough():
    """An attribute in capitals, or a lost source, is refused: the test above can fail."""
    told = cloud_events(history(story_of(FAILS)), "w")[0]

    for broken in (told | {"tenantId": "t"}, told | {"source": ""}, told | {"specversion": "2"}):
        with pytest.raises(CloudEventValidationError):
            CloudEvent({**broken, "time": datetime.fromisoformat(told["time"])}, {})


@pytest.mark.req("R176", "R177", "R178")
@pytest.mark.parametrize("name", NAMES[::7])
def test_nothing_is_lost(name):
    """Every member of an envelope can be had back."""
    story, _ = ran(name)
    envelopes = history(story)

    told = cloud_events(envelopes, story.cell.workflow)

    assert [envelope_of(each) for each in told] == envelopes
    assert {each["correlationid"] for each in told} == {story.cell.key}
    assert sorted(told, key=lambda each: each["sequence"]) == told


def envelope_of(told):
    """The way back."""
    members = {member: told[name] for name, member in EXTENSIONS.items() if name in told}
    version, trace, span, flags = told["traceparent"].split("-")
    assert (version, len(span), flags) == ("00", 16, "00")
    return members | {
        "eventId": told["id"],
        "eventType": told["type"].removeprefix("dev.pawl."),
        "traceId": trace,
        "occurredAt": told["time"],
        "workflowInstanceId": told["subject"],
        "sequence": int(told["sequence"]),
        "payload": told["data"],
    }


@pytest.mark.req("R176")
def test_each_names_the_schema_of_its_data():
    """`dataschema` is an address in the schema that `pawl schema events` prints."""
    registry = jsonschema_rs.Registry([(SCHEMA_ID, events_schema())])
    checked = {
        name: jsonschema_rs.validator_for({"$ref": f"{SCHEMA_ID}#{name}"}, registry=registry)
        for name in EVENTS
    }

    for told in cloud_events(history(story_of(FAILS)), "w"):
        _, _, name = told["dataschema"].partition("#")
        assert told["type"] == f"dev.pawl.{name}"
        assert checked[name].is_valid(told["data"])
    assert not checked["AgentTaskFailed"].is_valid({"step": "a"})


TEXT = st.text(min_size=1, max_size=20)


@given(TEXT, TEXT, TEXT)
def test_odd_names_do_not_break_it(tenant, actor, workflow):
    """Whatever people call themselves, attributes hold no control character and a valid source."""
    envelope = history(story_of(FAILS))[0] | {"tenantId": tenant, "actor": actor}

    told = cloud_event(envelope, workflow)

    read(told)
    assert re.fullmatch(
        r"/pawl/(?:[\w.~-]|%[0-9A-F]{2})+/(?:[\w.~-]|%[0-9A-F]{2})+", told["source"]
    )
    for name, value in told.items():
        assert re.fullmatch(r"[a-z0-9]{1,20}", name)
        if name != "data":
            assert value == 1 or not CONTROLS.search(value)
    json.dumps(told).encode()


def test_what_an_envelope_lacks_is_left_out():
    """An attribute is there with a value, or not at all."""
    envelope = history(story_of(FAILS))[0]

    told = cloud_event(envelope | {"actor": "", "projectId": "p-1"}, "w")

    assert "actor" not in told and "moduleid" not in told
    assert told["projectid"] == "p-1"
