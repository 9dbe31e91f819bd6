"""Journal files of runs: whatever is wrong with one is said with a code, never as a traceback."""

import pytest

from pawlflow.definition.canonical import definition_bytes, hash_of_bytes
from pawlflow.model.codec import encode
from pawlflow.model.ids import CellId, InstanceId, Tenant, WorkflowName
from pawlflow.model.journal import instance_genesis, shard_genesis, turn_hash
from pawlflow.projections.journal_file import (
    DefinitionRecord,
    JournalError,
    TurnEntry,
    read_journal,
    seal,
    write_journal,
)
from pawlflow.testing.journals import tell_file, time_text, verify_file
from pawlflow.testing.runner import run_scenario
from tests.kernel.support import workflow
from tests.scenarios import scenario_named

CELL = CellId(Tenant("acme"), WorkflowName("w"), InstanceId("i"))
SHAPE = workflow("timeout: 1h\nsteps: [{name: a, run: x.a, timeout: 1m, with: '${ input.n }'}]")
STARTED = ["start", bytes(32), bytes(33), "zoe"]


def sealed(definition: bytes, turn: bytes) -> bytes:
    """A file whose hashes hold over one turn."""
    entry = TurnEntry(CELL, turn), turn_hash(instance_genesis(CELL), turn)
    return write_journal([DefinitionRecord(definition), seal(0, shard_genesis(0), 1, [entry])])


@pytest.mark.parametrize(
    ("turn", "code"),
    [
        (b"\xff", "journal.turn"),
        (encode([1, 1]), "journal.turn"),
        (encode([9, 1, 1, [0, 1], ["tick"], []]), "journal.turn"),
        (encode([1, 1, 1, [0, 1], ["tick"], []]), "journal.definition"),
        (encode([1, 1, 1, [0, 1], STARTED, []]), "journal.definition"),
    ],
)
def test_hashes_that_hold_over_nonsense_do_not_help_it(turn, code):
    """No turn, an unknown format, a first turn that is no start, a definition that is not there."""
    for use in (verify_file, lambda data: list(tell_file(data))):
        with pytest.raises(JournalError) as found:
            use(sealed(definition_bytes(SHAPE), turn))
        assert found.value.code == code


def test_a_definition_changed_in_any_byte_is_not_used():
    """The start turn names its hash: a changed one is another one, or none at all."""
    scenario = scenario_named("undo-runs-last-completed-first")
    data = run_scenario(scenario).journal
    size = len(definition_bytes(scenario.workflows[0]))
    at = data.index(definition_bytes(scenario.workflows[0]))
    assert read_journal(data).definitions == [data[at : at + size]]
    for place in range(at, at + size):
        broken = bytearray(data)
        broken[place] ^= 1
        with pytest.raises(JournalError) as found:
            verify_file(bytes(broken))
        assert found.value.code == "journal.definition"


def test_real_times_are_told_by_the_calendar():
    """A scenario counts from its start; a run in the world has a date."""
    assert time_text(90_000) == "1m30s"
    assert time_text(1_767_225_600_000) == "2026-01-01T00:00:00.000+00:00"


def test_a_definition_nobody_can_compile_is_named():
    """Its hash is right, its content is not."""
    for broken in (b"\xff", encode({"name": "w"})):
        start = ["start", hash_of_bytes(broken), b"\x00" * 33, "zoe"]
        with pytest.raises(JournalError) as found:
            verify_file(sealed(broken, encode([1, 1, 1, [0, 1], start, []])))
        assert found.value.code == "journal.definition"
