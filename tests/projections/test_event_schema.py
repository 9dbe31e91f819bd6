"""The schema of published events: all that is ever published fits it, and little else does."""

import copy
import json
from collections import defaultdict
from functools import cache
from random import Random

import jsonschema_rs
import pytest

from pawlflow.definition.canonical import hash_of_bytes as definition_hash
from pawlflow.kernel.draft import Rejected
from pawlflow.model.inputs import Approve, Receipt
from pawlflow.projections.event_schema import events_schema
from pawlflow.projections.event_table import ENVELOPE, EVENTS, MEMBERS, OPTIONAL
from pawlflow.projections.history import history
from pawlflow.projections.journal_file import read_journal
from pawlflow.projections.publish import NAMES as PUBLISHED_NAMES
from pawlflow.projections.story import Story
from pawlflow.testing.journals import plans_of
from tests.golden_kit import FOLDER
from tests.kernel.histories import push as pushed
from tests.kernel.histories import random_workflow
from tests.kernel.support import Live, payload, workflow
from tests.projections.kit import NAMES, erased, ran, told_live
from tests.projections.played import play, queue

SCHEMA = events_schema()
VALIDATOR = jsonschema_rs.validator_for(SCHEMA)
GOLDEN = sorted((FOLDER / "journals").glob("*.journal"))
# Documented for what the engine has a place for, but nothing in this version fills.
NOT_YET = {"projectId", "moduleId", "search", "start_at"}


def problems(told, validator=VALIDATOR):
    """What is wrong with a list of events."""
    return [f"{list(e.instance_path)}: {e.message}" for e in validator.iter_errors(told)]


def stories_of(path):
    """The stories of the instances in a journal file."""
    journal = read_journal(path.read_bytes())
    definitions = {cell: plan for cell, plan in plans_of(journal) if plan is not None}
    by_hash = {definition_hash(data): data for data in journal.definitions}
    return [
        Story(cell, by_hash[plan.definition], journal.turns[cell], journal.payloads)
        for cell, plan in definitions.items()
    ]


RARE = """
failurePolicy: compensate
steps:
  - {name: ask, approval: {role: Boss, expires: 1m, onExpire: fail}, onFailure: skip}
  - {name: book, run: x.book, dependsOn: [ask], undo: {run: x.undo}}
  - name: write
    agent: writer
    dependsOn: [book]
    onFailure: escalate
    retryPolicy: {maxRetries: 1}
"""
RARELY = """
stubs: {write: [{fail: terminal}, {fail: transient}, {hang: true}]}
script:
  - {at: 5m, pause: {by: ann, comment: wait}}
  - {at: 6m, unpause: {by: ann, comment: go on}}
  - {at: 7m, reassign: {step: write, to: editor, by: ann}}
  - {at: 9m, cancel: {by: ann, comment: no use}}
"""


LADDER = """
escalation: [{role: Lead, channel: chat, timeout: 10m}, {role: Boss, channel: mail}]
steps:
  - {name: a, run: x.a, onFailure: escalate}
  - {name: b, run: x.b, onTimeout: escalate, timeout: 1m}
  - {name: c, approval: {role: Boss, expires: 1m}}
"""
LADDER_CLIMBED = "stubs: {a: [{fail: terminal}], b: [{hang: true}]}"
GUARDED = """
steps:
  - {name: gate, approval: {role: Boss, expires: 1h, quorum: 2, guards: [go]}}
  - {name: go, run: x.go, with: {n: 1}, dependsOn: [gate], onFailure: escalate}
"""
GUARDED_CHANGED = """
stubs: {go: [{fail: terminal}]}
script:
  - {at: 1m, approve: {step: gate, by: ann, role: Boss, comment: fine}}
  - {at: 2m, approve: {step: gate, by: bob, role: Boss}}
  - {at: 5m, retry: {step: go, by: bob, with: {n: 2}}}
"""

REVISED = """
failurePolicy: compensate
onUndoFailure: continue
steps:
  - {name: draft, agent: writer, undo: {run: x.undo, retryPolicy: {maxRetries: 1}}}
  - name: gate
    approval: {role: Boss, expires: 1h, onReject: changes}
    dependsOn: [draft]
"""
REVISED_IN_VAIN = """
stubs: {undo/draft: [{fail: transient}, {fail: terminal}]}
script:
  - {at: 1m, reject: {step: gate, by: ann, role: Boss}}
  - {at: 2m, cancel: {by: ann}}
"""


@cache
def corpus():
    """Events of every scenario, and of random histories, which also have what no scenario shows."""
    stories = [ran(name)[0] for name in NAMES]
    for seed in range(60):
        shape = random_workflow(Random(seed))
        stories.append(told_live(pushed(Random(seed), Live(shape), turns=40), shape))
    return [event for story in stories for event in history(story)]


def test_the_schema_is_one():
    """By its own metaschema; and its anchors are the names, each with its words."""
    assert jsonschema_rs.meta.is_valid(SCHEMA)
    assert set(SCHEMA["$defs"]) == {"event", *EVENTS}
    assert all(SCHEMA["$defs"][name]["$anchor"] == name for name in EVENTS)
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA


@pytest.mark.req("R176", "R190")
@pytest.mark.parametrize("name", NAMES)
def test_all_that_is_published_fits(name):
    """Every event of every scenario, also once its values are erased."""
    story, _ = ran(name)

    assert problems(history(story)) == []
    assert problems(history(erased(story))) == []


@pytest.mark.req("R176", "R223")
@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_what_was_journalled_long_ago_fits(path):
    """Every event of every golden journal."""
    for story in stories_of(path):
        assert problems(history(story)) == []


@pytest.mark.req("R176")
def test_every_member_that_is_published_is_listed(tmp_path):
    """With the schema closed to what it does not list, all still fits."""
    closed = copy.deepcopy(SCHEMA)
    for part in closed["$defs"].values():
        part["additionalProperties"] = False
    validator = jsonschema_rs.validator_for(closed)

    assert problems([*corpus(), *rare(tmp_path)], validator) == []


def test_every_name_and_member_that_is_listed_is_published(tmp_path):
    """Nothing is promised that nobody ever hears."""
    seen = defaultdict(set)
    for event in [*corpus(), *rare(tmp_path)]:
        seen[event["eventType"]] |= event["payload"].keys()
    listed = {
        (name, member)
        for name, said in EVENTS.items()
        for member in {*said.always, *said.sometimes, *said.either} - NOT_YET - {"item", "parent"}
    }

    unheard = {(name, member) for name, member in listed if member not in seen[name]}

    assert set(seen) == set(EVENTS)
    assert unheard == set()
    used = {m for said in EVENTS.values() for m in (*said.always, *said.sometimes, *said.either)}
    assert used | {"erased"} == set(MEMBERS)


def test_the_table_has_every_name_there_is():
    """Names that are fixed stand in both tables."""
    assert {name for name in PUBLISHED_NAMES.values() if isinstance(name, str)} <= set(EVENTS)


def rare(folder):
    """What hardly ever happens."""
    stories = [queue(folder), play(folder, RARE, RARELY), over_budget()]
    stories += [play(folder, LADDER, LADDER_CLIMBED), play(folder, GUARDED, GUARDED_CHANGED)]
    stories += [play(folder, REVISED, REVISED_IN_VAIN)]
    return [event for story in stories for event in history(story)]


def over_budget():
    """The story of a step that is held until a human raises the limit."""
    shape = workflow(
        "budget: {usd: {soft: 1, hard: 2}}\nsteps:\n"
        "  - {name: a, run: x.a, cost: {usd: 2}}\n"
        "  - {name: b, run: x.b, cost: {usd: 2}, dependsOn: [a]}"
    )
    live = Live(shape)
    live.start({})
    usage = payload({"usd": 1.5})
    live.submit(Receipt(live.call("a").key, 1, "ok", payload({}), usage=usage))
    raised = live.submit(Approve("b", "ann", "Boss", payload("it is worth it")))
    assert not isinstance(raised, Rejected), raised
    return told_live(live, shape)


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    """One event of each type, with as much in it as there is."""
    found = {}
    for event in [*corpus(), *rare(tmp_path_factory.mktemp("rare"))]:
        kept = found.get(event["eventType"])
        if kept is None or len(event["payload"]) > len(kept["payload"]):
            found[event["eventType"]] = event
    return found


BROKEN_ENVELOPES = [
    ("eventType", "WorkflowStepRedy"),
    ("eventId", "e-1"),
    ("causationId", ""),
    ("traceId", "0" * 31),
    ("schemaVersion", 2),
    ("occurredAt", "2026-01-01 00:00:00"),
    ("occurredAt", "2026-01-01T00:00:00.000+01:00"),
    ("sequence", 0),
    ("sequence", "1"),
    ("tenantId", ""),
    ("actor", None),
    ("payload", []),
]


@pytest.mark.req("R176")
@pytest.mark.parametrize(("member", "value"), BROKEN_ENVELOPES)
def test_a_broken_envelope_does_not_fit(member, value, samples):
    """Each member has its form."""
    event = samples["WorkflowStepReady"]
    assert problems([event]) == []

    assert problems([event | {member: value}])


@pytest.mark.req("R176")
@pytest.mark.parametrize("member", [name for name in ENVELOPE if name not in OPTIONAL])
def test_an_envelope_must_be_whole(member, samples):
    """Without one of its members it is none."""
    event = samples["WorkflowStepReady"]

    assert problems([{name: event[name] for name in event if name != member}])


@pytest.mark.req("R176")
@pytest.mark.parametrize("name", EVENTS)
def test_a_mutated_payload_does_not_fit(name, samples):
    """Without a member that is always there; with one of another type; with both of either."""
    event, said = samples[name], EVENTS[name]
    payload = event["payload"]

    def broken(changed):
        return bool(problems([event | {"payload": changed}]))

    assert not broken(payload)
    for member in said.always:
        assert broken({m: v for m, v in payload.items() if m != member}), member
    typed = [m for m in payload if MEMBERS[m][1]]
    for member in typed:
        assert broken(payload | {member: [12.5]}), member
    if said.either:
        assert broken(payload | dict.fromkeys(said.either, "x"))
        assert broken({m: v for m, v in payload.items() if m not in said.either})


def test_events_may_grow(samples):
    """What a later version adds does not trouble whoever holds this schema."""
    event = samples["AgentTaskFailed"]
    failure = event["payload"]["failure"] | {"more": 1}
    grown = event | {"newcomer": 1, "payload": event["payload"] | {"x": 1, "failure": failure}}

    assert problems([grown]) == []
