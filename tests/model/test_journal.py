"""Turns, frames and files: what holds a journal together, and what is found when it does not."""

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawlflow.model.codec import head
from pawlflow.model.ids import CellId, Digest, InstanceId, Tenant, WorkflowName
from pawlflow.model.journal import (
    instance_genesis,
    merkle_root,
    shard_genesis,
    turn_hash,
)
from pawlflow.model.payload import Payload, PayloadError, fits, verified
from pawlflow.projections.inclusion import merkle_path, proves
from pawlflow.projections.journal_file import (
    DefinitionRecord,
    FrameRecord,
    JournalError,
    TurnEntry,
    read_journal,
    seal,
    write_journal,
)
from tests.golden_kit import FOLDER

CELL = CellId(Tenant("acme"), WorkflowName("w"), InstanceId("i"))
LEAVES = st.lists(st.binary(min_size=32, max_size=32).map(Digest), min_size=1, max_size=40)
GOLDEN = (FOLDER / "journals" / "two-tenants-in-one-frame.journal").read_bytes()


def rfc6962(leaves: list[Digest]) -> bytes:
    """The tree hash, word for word as the RFC defines it."""
    if len(leaves) == 1:
        return sha256(b"\x00" + leaves[0]).digest()
    split = 1 << ((len(leaves) - 1).bit_length() - 1)
    return sha256(b"\x01" + rfc6962(leaves[:split]) + rfc6962(leaves[split:])).digest()


@given(LEAVES)
def test_the_root_is_the_tree_hash_of_rfc_6962(leaves):
    """Built level by level, it is the recursive definition."""
    assert merkle_root(leaves) == rfc6962(leaves)


@given(LEAVES, st.data())
def test_one_turn_is_proven_without_the_others(leaves, data):
    """A path of sibling hashes leads to the root, and to no other leaf's."""
    index = data.draw(st.integers(0, len(leaves) - 1))
    path = merkle_path(leaves, index)

    assert proves(leaves[index], path, merkle_root(leaves))
    assert len(path) <= 6
    other = Digest(sha256(leaves[index]).digest())
    assert not proves(other, path, merkle_root(leaves))


def test_the_odd_leaf_at_the_end_has_the_shorter_path():
    """It has no sibling on the lowest level, and is carried up as it is."""
    leaves = [Digest(bytes([n]) * 32) for n in range(3)]

    assert [len(merkle_path(leaves, index)) for index in range(3)] == [2, 2, 1]
    assert proves(leaves[2], merkle_path(leaves, 2), merkle_root(leaves))


def frames(*batches: tuple[bytes, ...]) -> list[FrameRecord]:
    """Frames over turns of one instance, chained."""
    head_hash, first, prev = shard_genesis(1), 1, instance_genesis(CELL)
    made: list[FrameRecord] = []
    for batch in batches:
        entries = []
        for data in batch:
            prev = turn_hash(prev, data)
            entries.append((TurnEntry(CELL, data), prev))
        made.append(seal(1, head_hash, first, entries))
        head_hash, first = made[-1].hash, made[-1].last + 1
    return made


def test_a_journal_is_read_back_as_it_was_written():
    """Turns by instance, in order, each with its hash."""
    journal = read_journal(write_journal([DefinitionRecord(b"d"), *frames((b"1", b"2"), (b"3",))]))

    assert [data for data, _ in journal.turns[CELL]] == [b"1", b"2", b"3"]
    assert journal.definitions == [b"d"]
    assert journal.last == 3


@pytest.mark.req("R20")
@pytest.mark.parametrize(
    ("change", "code", "at"),
    [
        (lambda a, b, c: [a, c], "journal.gap", 4),
        (lambda a, b, c: [b, c], "journal.gap", 3),
        (lambda a, b, c: [a, c, b], "journal.gap", 4),
        (lambda a, b, c: [a, a], "journal.gap", 1),
        (lambda a, b, c: [a, frames((b"x",), (b"y",))[1]], "journal.gap", 2),
        (lambda a, b, c: [a, seal(1, shard_genesis(1), 3, [])], "journal.chain", 3),
        (lambda a, b, c: [frames((b"1", b"2", b"?"))[0], c], "journal.chain", 4),
    ],
)
def test_a_missing_or_foreign_frame_is_found(change, code, at):
    """A gap, a repeated frame, a frame of another history: named, with its place."""
    a, b, c = frames((b"1", b"2"), (b"3",), (b"4",))

    with pytest.raises(JournalError) as found:
        read_journal(write_journal(change(a, b, c)))

    assert (found.value.code, found.value.at) == (code, at)


@pytest.mark.req("R20")
def test_every_flipped_bit_is_found():
    """Whichever bit of a journal file changes, reading refuses it."""
    whole = read_journal(GOLDEN)
    for position in range(len(GOLDEN) * 8):
        broken = bytearray(GOLDEN)
        broken[position // 8] ^= 1 << position % 8
        try:
            journal = read_journal(bytes(broken))
        except JournalError:
            continue
        # A definition is bound by the start turn that names its hash; all else is in the chain.
        assert journal.turns == whole.turns
        assert journal.payloads == whole.payloads
        assert journal.definitions != whole.definitions


@pytest.mark.req("R20")
def test_every_truncation_is_found():
    """A file cut anywhere but between two documents is refused; there it is a shorter journal."""
    ends = []
    for size in range(len(GOLDEN)):
        try:
            read_journal(GOLDEN[:size])
        except JournalError as error:
            assert error.code in ("journal.truncated", "journal.unreadable")
        else:
            ends.append(size)
    assert len(ends) == 3  # nothing, the definition, the first frame


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\x80", "journal.unreadable"),
        (b"\x5f\xff", "journal.unreadable"),
        (b"\x58\x01\x00", "journal.unreadable"),
        (b"\x59\x01", "journal.truncated"),
        (head(2, 3) + b"\x00", "journal.truncated"),
        (head(2, 1) + b"\x00", "journal.unreadable"),
    ],
)
def test_other_bytes_are_no_journal(data, code):
    """Not a byte string, a long head, a cut head, a cut document, no record."""
    with pytest.raises(JournalError) as found:
        read_journal(data)
    assert found.value.code == code


def test_a_payload_is_its_address():
    """Equal values are equal payloads; tenants never share an address; erased bytes say so."""
    one, two = Payload.of([1], Tenant("a")), Payload.of([1], Tenant("b"))

    assert one == Payload.of([1], Tenant("a"))
    assert hash(one) == hash(Payload.of([1], Tenant("a")))
    assert one != two
    assert one != "text"
    assert repr(one).startswith("Payload(00")
    assert one.value == [1]
    with pytest.raises(PayloadError, match="gone") as gone:
        _ = Payload(one.addr, None).value
    assert gone.value.code == "payload.erased"


@pytest.mark.parametrize(
    ("addr", "data", "code"),
    [
        (b"\x01" + bytes(32), b"\xf6", "payload.scheme"),
        (b"\x00" * 3, b"\xf6", "payload.scheme"),
        (b"\x00" + bytes(32), b"\xf6", "payload.corrupt"),
    ],
)
def test_bytes_from_outside_are_held_against_their_address(addr, data, code):
    """Checked on both sides of the border."""
    with pytest.raises(PayloadError) as found:
        verified(addr, data, Tenant("a"))
    assert found.value.code == code


@pytest.mark.req("R212")
def test_a_value_that_is_too_large_is_refused_at_the_door(monkeypatch):
    """By name, before it is journalled; and shared parts are counted as often as they are used."""
    monkeypatch.setattr("pawlflow.model.payload.PAYLOAD_BYTES_MAX", 1_000)
    monkeypatch.setattr("pawlflow.model.payload.PARTS_MAX", 1_000)
    with pytest.raises(PayloadError) as found:
        Payload.of("x" * 1_001, Tenant("a"))
    assert found.value.code == "payload.too_large"

    part = ["x" * 100]
    assert fits({"a": part, "b": [part, b"x", 1.5, None]})
    assert not fits([part] * 20)
    assert not fits({str(n): part for n in range(20)})
    assert not fits([[[]] * 600] * 2)
