"""docs/journal.md is enough: a reader in another language, written from it, agrees with ours."""

import asyncio
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from pawlflow.kernel.replay import read_turn
from pawlflow.model.beside import Beside
from pawlflow.model.codec import encode
from pawlflow.model.ids import CellId
from pawlflow.model.journal import instance_genesis, shard_genesis, turn_hash
from pawlflow.model.payload import address_of
from pawlflow.model.records import read
from pawlflow.projections.archive import Archivist
from pawlflow.projections.journal_file import (
    DefinitionRecord,
    FrameRecord,
    JournalError,
    TurnEntry,
    documents,
    read_journal,
    seal,
    write_journal,
)
from pawlflow.testing import Lab
from pawlflow.testing.journals import verify_file
from tests.golden_kit import FOLDER
from tests.testing.lab_kit import workflow

NODE = shutil.which("node")
READER = FOLDER / "read_journal.mjs"
JOURNALS = sorted((FOLDER / "journals").glob("*.journal"))
WHOLE = (FOLDER / "journals" / "two-tenants-in-one-frame.journal").read_bytes()
FLIPS = range(0, len(WHOLE), 47)  # each costs a process; so every 47th byte
CELL = CellId("acme", "w", "i-1")

pytestmark = [
    pytest.mark.req("R189"),
    pytest.mark.skipif(NODE is None, reason="Node.js is not installed: no `node` on the path"),
]


@pytest.mark.parametrize("path", JOURNALS, ids=lambda path: path.stem)
def test_another_language_reads_the_same_turns(path):
    """Every golden journal: the same instances, turns, inputs, events and head."""
    done = read_elsewhere(path)

    assert done.stderr == ""
    assert done.stdout.splitlines() == list(told(path.read_bytes()))


@pytest.mark.parametrize("at", FLIPS)
def test_another_language_finds_the_flipped_byte(at, tmp_path):
    """Wherever a byte changes, both readers refuse the file, and for the same reason."""
    broken = WHOLE[:at] + bytes([WHOLE[at] ^ 0xFF]) + WHOLE[at + 1 :]

    assert refused_elsewhere(broken, tmp_path) == refused_here(broken)


@pytest.mark.parametrize("size", [1, 2, 60, len(WHOLE) // 2, len(WHOLE) - 1])
def test_another_language_finds_the_cut(size, tmp_path):
    """A file that ends inside a document is not whole."""
    assert refused_elsewhere(WHOLE[:size], tmp_path) == "journal.truncated"


def test_another_language_reads_every_value(tmp_path):
    """The golden vectors, laid beside a turn as payloads, are canonical to both."""
    lines = (FOLDER / "cbor.vectors.txt").read_text(encoding="utf-8").splitlines()
    values = [bytes.fromhex(line.split("\t")[0]) for line in lines if not line.startswith("#")]
    data = with_beside(*values)

    done = read_elsewhere(written(data, tmp_path))

    assert done.stderr == ""
    assert done.stdout.splitlines() == list(told(data))


@pytest.mark.parametrize(
    "value",
    [
        "",  # nothing
        "0000",  # bytes behind the value
        "1817",  # a head longer than needed
        "1900ff",
        "3b8000000000000000",  # below -2^63
        "f97e00",  # NaN
        "f97c00",  # infinity
        "fa3f800000",  # 1.0 fits a half
        "fb3ff8000000000000",  # 1.5 fits a half
        "fb36a0000000000000",  # 2^-149 fits a single
        "f7",  # undefined
        "f820",  # another simple value
        "c000",  # a tag
        "9fff",  # an indefinite length
        "61ff",  # no UTF-8
        "63eda080",  # a surrogate
        "a2616201616102",  # keys out of order
        "a2616101616102",  # a key twice
        "a10102",  # a key that is no text
        "81" * 65 + "f6",  # too deep
        "5b0000000000000001ff",  # a length longer than needed
        "9b0fffffffffffffff",  # a length that nothing backs
    ],
)
def test_another_language_refuses_other_bytes(value, tmp_path):
    """A value has one byte form; whatever else stands beside a turn is refused by both."""
    broken = with_beside(bytes.fromhex(value))

    assert refused_elsewhere(broken, tmp_path) == refused_here(broken) == "journal.entry"


@pytest.mark.parametrize(
    ("turn", "code"),
    [
        (b"\x80", "journal.turn"),  # no field at all
        (b"\xff", "journal.turn"),
        (encode([2, 1, 1, [0, 1], ["tick"], []]), "journal.turn"),  # a format to come
        (encode([1, 1, 1, [0, 1], ["tick"], [["step.invented"]]]), "journal.turn"),
        (encode([1, 1, 1, [0, 1], ["tick", 0], []]), "journal.turn"),  # longer than known
        (encode([1, 1, 1, [0.0, 1], ["tick"], []]), "journal.turn"),  # a float is no int
        (encode([1, 1, 1, [0, 1], ["tick"], []]), "journal.definition"),  # no start
        (encode([1, 1, 1, [0, 1, b""], ["tick"], [], [], []]), "journal.definition"),
    ],
)
def test_another_language_refuses_what_it_does_not_know(turn, code, tmp_path):
    """The hashes hold, the bytes are no turn. Left out defaults and written ones read alike."""
    sealed = turn_hash(instance_genesis(CELL), turn)
    broken = write_journal([seal(0, shard_genesis(0), 1, [(TurnEntry(CELL, turn), sealed)])])

    assert refused_elsewhere(broken, tmp_path) == refused_here(broken) == code


@pytest.fixture(scope="module")
def archive() -> bytes:
    """An instance that shared its commits with others, as an archive."""

    async def play() -> bytes:
        async with Lab() as lab:
            lab.add(workflow("w", steps=("name: a, run: x.a", "name: b, run: x.b, dependsOn: [a]")))
            lab.script("*", "fine")
            await lab.start_many("w", [(f"i-{number}", {}) for number in range(40)])
            await lab.idle()
            head = lab.store.load([("default", "i-7")])["default", "i-7"].head
            return Archivist(lab.store).archive(head)

    return asyncio.run(play())


@pytest.mark.req("R218")
def test_another_language_reads_an_archive(archive, tmp_path):
    """The same turns; each is proven to be in a frame of which nothing else is shown."""
    done = read_elsewhere(written(archive, tmp_path))

    assert done.stderr == ""
    assert done.stdout.splitlines() == list(told(archive))


@pytest.mark.req("R218")
@pytest.mark.parametrize("part", [0.1, 0.3, 0.5, 0.7, 0.9, 0.97])
def test_another_language_finds_what_was_changed_in_an_archive(archive, part, tmp_path):
    """Wherever a byte changes, both readers refuse the file, and for the same reason."""
    at = int(len(archive) * part)
    broken = archive[:at] + bytes([archive[at] ^ 0xFF]) + archive[at + 1 :]

    assert refused_elsewhere(broken, tmp_path) == refused_here(broken)


def told(data: bytes) -> Iterator[str]:
    """The lines of the other reader, from ours."""
    journal = read_journal(data)
    for cell, turns in journal.turns.items():
        for bytes_of_turn, _ in turns:
            turn = read_turn(bytes_of_turn, journal.payloads)
            name = f"{cell.tenant}/{cell.workflow}/{cell.key}"
            tags = [tag_of(event) for event in turn.events]
            yield " ".join([f"{name} turn {turn.number} {tag_of(turn.input)}:", *tags])
    yield f"head {journal.head.hex()} at {journal.last}"


def tag_of(record: msgspec.Struct) -> str:
    return str(type(record).__struct_config__.tag)


def read_elsewhere(path: Path) -> subprocess.CompletedProcess[str]:
    """Run the reader as its user does."""
    command = [str(NODE), str(READER), str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def refused_elsewhere(data: bytes, folder: Path) -> str:
    """The code under which the other reader refuses a file; it prints nothing of it."""
    done = read_elsewhere(written(data, folder))
    assert (done.returncode, done.stdout) == (1, "")
    return done.stderr.partition(" at ")[0]


def refused_here(data: bytes) -> str:
    """The code under which we refuse a file."""
    with pytest.raises(JournalError) as caught:
        verify_file(data)
    return caught.value.code


def written(data: bytes, folder: Path) -> Path:
    """A file with these bytes."""
    path = folder / "a.journal"
    path.write_bytes(data)
    return path


def with_beside(*values: bytes) -> bytes:
    """The whole journal with more bytes beside its first turn, which no frame's hash covers."""
    definition, frame, *rest = (
        read(DefinitionRecord | FrameRecord, document, {}) for _, document in documents(WHOLE)
    )
    turn, *others = frame.entries
    more = [Beside(address_of(value, turn.cell.tenant), value) for value in values]
    turn = replace(turn, payloads=(*turn.payloads, *more))
    return write_journal([definition, replace(frame, entries=(turn, *others)), *rest])
