"""Events outside: the Python face and the command tell the same envelopes, in either form."""

import asyncio
import json

import jsonschema_rs
import pytest
from cloudevents.core.formats.json import JSONFormat

from pawlflow import Pawl, Terminal
from pawlflow.model.ids import Tenant
from pawlflow.projections.event_schema import events_schema
from pawlflow.projections.plain import uuid_told
from pawlflow.projections.reading import story_of
from pawlflow.projections.story import state_at
from tests.cli.kit import pawl as pawl_here

ACTS = [
    ("review", "approve", "r-1", "--by", "ann", "--role", "ReleaseManager"),
    ("signal", "r-1", "health.reported", "--data", '{"ok": true}'),
    ("wait", "r-1", "--stubs", "stubs.yaml", "--timeout", "200ms"),
    ("retry", "r-1", "promote", "--by", "ann"),
    ("wait", "r-1", "--stubs", "stubs.yaml", "--timeout", "20s"),
]


@pytest.fixture
def released(place):
    """A release through its gate, its wait and its escalation."""
    wait = ("--stubs", "stubs.yaml", "--timeout", "200ms")
    place.pawl("run", "release.yaml", "--id", "r-1", "--by", "zoe", "--input", "{}", *wait)
    for act in ACTS:
        place.pawl(*act)
    assert place.state_of("r-1") == "completed"
    return place


def lines_of(text):
    """One JSON document to a line."""
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.req("R176", "R177")
def test_all_faces_tell_the_same(released):
    """`run.events`, `run.history`, `history --json` and `watch --json` agree on every envelope."""
    told = released.told("history", "r-1")
    watched = released.pawl("watch", "r-1", "--json")

    events, as_cloud = asyncio.run(heard_in_python(released, told))

    assert lines_of(watched.stdout) == events == told
    assert told[-1]["eventType"] == "WorkflowInstanceCompleted"
    assert jsonschema_rs.is_valid(json.loads(pawl_here("schema", "events").stdout), told)
    batch = released.pawl("history", "r-1", "--cloudevents")
    assert json.loads(batch.stdout) == as_cloud
    assert lines_of(released.pawl("watch", "r-1", "--cloudevents").stdout) == as_cloud
    assert released.told("history", "r-1", "--cloudevents") == as_cloud
    assert [JSONFormat().read(None, json.dumps(each)).get_id() for each in as_cloud] == [
        event["eventId"] for event in told
    ]


async def heard_in_python(place, told):
    """The events of a run in both forms; its history is the same."""
    async with Pawl(f"sqlite:///{place.db}") as pawl:
        run = pawl.run("r-1")
        events = [event async for event in run.events()]
        as_cloud = [event async for event in run.events(cloudevents=True)]
        assert run.history() == told
        assert run.history(cloudevents=True) == as_cloud
    return events, as_cloud


@pytest.mark.req("R176")
def test_events_come_as_they_happen(place):
    """Whoever listens hears each event once; the first ones while the instance is still open."""
    heard = asyncio.run(listen(place))

    assert heard == place.told("history", "o-1")
    assert heard[-1]["eventType"] == "WorkflowInstanceFailed"


async def listen(place):
    """Hear an instance whose first step ends only once its assignment was heard."""
    assigned = asyncio.Event()
    async with Pawl(f"sqlite:///{place.db}") as pawl:
        pawl.load("order.yaml")

        @pawl.effect("card.charge")
        async def charge(amount):
            await assigned.wait()
            return {"charge": amount}

        @pawl.effect("parcel.send")
        async def send():
            raise Terminal("no parcel")

        run = await pawl.start("order", {"amount": 1}, id="o-1")
        heard = []
        async for event in run.events():
            heard.append(event)
            if event["eventType"] == "AgentTaskAssigned":
                assigned.set()
        return heard


def test_the_schema_is_printed():
    """`pawl schema` stays as it was; `pawl schema events` is the schema of events."""
    assert json.loads(pawl_here("schema", "events").stdout) == events_schema()
    assert json.loads(pawl_here("schema").stdout)["title"] == "Pawl workflow"
    assert pawl_here("schema", "event").exit_code == 2


@pytest.mark.req("R80", "R81")
def test_steps_are_shown_through_a_lens(place):
    """With the index they have there; JSON has the same rows under `lens_steps`."""
    run = ("run", "order.yaml", "--worker", "shop_steps.py", "--input", '{"amount": 200}')
    place.pawl(*run, "--id", "o-1")

    tree = place.pawl("show", "o-1", "--lens", "ioa").stdout
    ores = place.told("show", "o-1", "--lens", "ores")

    assert tree.splitlines()[-3:] == [
        "ioa: failed",
        "    0  charge  failed",
        "    1  ship    pending",
    ]
    assert ores["lens_steps"] == [
        {"step": "charge", "index": 0, "state": "failed"},
        {"step": "ship", "index": 1, "state": "pending"},
    ]
    assert "lens_steps" not in place.told("show", "o-1")
    assert place.told("show", "o-1", "--lens", "kernel")["lens_steps"] == []


FAMILY = """\
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: family}
spec:
  timeout: 1h
  steps: [{name: visit, workflow: kid, timeout: 1m, with: {n: 1}}]
---
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: kid}
spec:
  timeout: 1h
  steps: [{name: play, run: ball.play, timeout: 1m}]
"""


@pytest.mark.req("R92", "R177")
def test_parent_and_child_name_each_other(place):
    """By workflow and id; the key by which the child answers is nobody's business."""
    (place.folder / "family.yaml").write_text(FAMILY)

    parent, child, keys = asyncio.run(raise_family(place))

    (opened,) = (e["payload"] for e in parent if e["eventType"] == "WorkflowStepWaiting")
    assert opened["child"] == {"workflow": "kid", "id": child[0]["workflowInstanceId"]}
    assert child[0]["payload"]["parent"] == {"workflow": "family", "id": "f-1"}
    assert jsonschema_rs.is_valid(events_schema(), [*parent, *child])
    said = json.dumps([parent, child])
    assert keys and not any(key.hex() in said or uuid_told(key) in said for key in keys)


async def raise_family(place):
    """The events of a parent and of its child, and every step key of both."""
    async with Pawl(f"sqlite:///{place.db}") as pawl:
        pawl.load("family.yaml")

        @pawl.effect("ball.play")
        async def play():
            return {"goals": 1}

        run = await pawl.start("family", id="f-1")
        await run.result(timeout="30s")
        told = run.history()
        waits = [e["payload"]["child"]["id"] for e in told if "child" in e["payload"]]
        stories = [story_of(pawl.reader, Tenant("default"), id) for id in ("f-1", *waits)]
        keys = [key for story in stories for key in state_at(story).keys]
        return told, pawl.run(waits[0]).history(), keys
