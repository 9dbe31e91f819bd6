"""Archives: one instance, proven without showing the others, by itself and against its store."""

import pytest
from msgspec.structs import replace

from pawlflow.model.ids import Digest, InstanceId, Tenant
from pawlflow.model.journal import merkle_root
from pawlflow.model.records import read
from pawlflow.projections.archive import Archivist, held_against
from pawlflow.projections.inclusion import merkle_path, root_over
from pawlflow.projections.journal_file import (
    DefinitionRecord,
    JournalError,
    PartRecord,
    Proven,
    documents,
    read_journal,
    write_journal,
)
from pawlflow.store.port import StoreError
from pawlflow.testing import Lab
from pawlflow.testing.journals import tell_file, verify_file
from tests.testing.lab_kit import on_a_loop, workflow

ME = Tenant("default")
KEPT = workflow(
    "kept",
    "retention: {completed: 1d}",
    "output: '${ steps.b }'",
    steps=("name: a, run: x.a, timeout: 1m", "name: b, run: x.b, timeout: 1m, dependsOn: [a]"),
)
pytestmark = pytest.mark.req("R218")


def head_of(store, key):
    """The head of an instance."""
    return store.load([(ME, InstanceId(key))])[ME, InstanceId(key)].head


async def played(lab, names):
    """Instances that share their commits, each closed and with a refusal beside it."""
    lab.add(KEPT)
    lab.script("x.a", {"big": "z" * 70_000})
    lab.script("x.b", "fine")
    await lab.start_many("kept", [(name, {"secret": f"of {name}"}) for name in names])
    await lab.idle()
    for name in names:
        with pytest.raises(Exception, match=name):
            await lab.signal(name, "late", {"said": f"to {name}"})


def archive_of(store, key):
    """The bytes of an archive."""
    return Archivist(store).archive(head_of(store, key))


@on_a_loop
async def test_an_archive_holds_one_instance_and_nothing_of_others():
    """Turns, dispositions, values and the definition; what shared its commits is not shown."""
    async with Lab() as lab:
        await played(lab, ["ann", "bob", "eve"])
        data = archive_of(lab.store, "bob")
        journal = read_journal(data)
        turns = [each.data for each in lab.store.story((ME, InstanceId("bob"))).entries]
    assert [turn for turn, _ in next(iter(journal.turns.values()))] == turns
    assert [each.code for each in journal.dispositions] == ["instance.closed"]
    assert verify_file(data).difference is None
    assert b"of bob" in data
    assert b"to bob" in data
    assert not [name for name in (b"ann", b"eve") if name in data]
    assert any("kept v1 default/bob" in line for line in tell_file(data))


@on_a_loop
async def test_an_archive_is_held_against_its_store():
    """Before it is removed, after, and once the id is used again; never against another store."""
    async with Lab() as lab, Lab(now="2026-02-02") as other:
        await played(lab, ["ann", "bob"])
        await played(other, ["ann", "bob"])
        first = read_journal(archive_of(lab.store, "ann"))
        assert list(held_against(lab.store, first)) == []
        await lab.skip("1d")
        assert list(held_against(lab.store, first)) == []
        await lab.start("kept", {"secret": "of another"}, id="ann")
        await lab.idle()
        second = read_journal(archive_of(lab.store, "ann"))
        await lab.skip("1d")
        for each in (first, second):
            assert list(held_against(lab.store, each)) == []
            assert {e.code for e in held_against(other.store, each)} == {"journal.elsewhere"}
        cut = replace(first, turns={cell: line[:-1] for cell, line in first.turns.items()})
        [error] = held_against(lab.store, cut)
        assert "whose last turn is this one" in str(error)


@on_a_loop
async def test_no_byte_of_an_archive_can_change_unseen():
    """Every flip and every cut is found by reading, or by deciding again."""
    async with Lab() as lab:
        await played(lab, ["ann", "bob"])
        data = archive_of(lab.store, "bob")
    small = data.replace(b"z" * 70_000, b"")  # the large value alone would take most of the time
    assert refused(small)
    spots = [*range(0, 2_000, 7), *range(len(data) - 1_500, len(data), 7)]
    for at in spots:
        changed = data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :]
        assert refused(changed), at
    for size in range(1, len(data), len(data) // 40):
        assert refused(data[:size]) or verify_file(data[:size]).turns < verify_file(data).turns


def refused(data):
    """Does reading or deciding again find that something is wrong?"""
    try:
        return verify_file(data).difference is not None
    except JournalError:
        return True


@on_a_loop
async def test_parts_must_prove_what_they_show():
    """Another place, another path, another order, no entry, a frame of another shard."""
    async with Lab() as lab:
        await played(lab, ["ann", "bob"])
        data = archive_of(lab.store, "bob")
    records = [read(DefinitionRecord | PartRecord, document, {}) for _, document in documents(data)]
    definition, *parts = records
    first = parts[0]
    shown = first.entries[0]
    wrong = {
        "journal.proof": [
            replace(first, entries=(replace(shown, index=shown.index + 1),)),
            replace(first, entries=(replace(shown, path=(*shown.path, Digest(bytes(32)))),)),
            replace(first, entries=(shown, shown)),
            replace(first, last=first.last + 1),
        ],
        "journal.hash": [
            replace(first, entries=()),
            replace(first, prev=Digest(bytes(32))),
            replace(first, hash=Digest(bytes(32))),
        ],
    }
    for code, forms in wrong.items():
        for form in forms:
            with pytest.raises(JournalError) as told:
                read_journal(write_journal([definition, form]))
            assert told.value.code in (code, "journal.hash")
    with pytest.raises(JournalError) as told:
        read_journal(write_journal([definition, *reversed(parts)]))
    assert told.value.code in ("journal.gap", "journal.proof")
    elsewhere = [parts[0], replace(parts[1], shard=parts[1].shard + 1)]
    with pytest.raises(JournalError) as told:
        read_journal(write_journal([definition, *elsewhere]))
    assert told.value.code == "journal.gap"
    assert isinstance(shown, Proven)


@pytest.mark.parametrize("size", range(1, 10))
def test_a_path_proves_a_leaf_at_its_place_alone(size):
    """For every tree and leaf; with another place, leaf or size there is another root, or none."""
    leaves = [Digest(bytes([number]) * 32) for number in range(size)]
    root = merkle_root(leaves)
    for index, leaf in enumerate(leaves):
        path = [sibling for _, sibling in merkle_path(leaves, index)]
        assert root_over(leaf, index, size, path) == root
        others = [each for each in range(size + 2) if each != index]
        assert root not in [root_over(leaf, each, size, path) for each in others]
        assert root_over(Digest(bytes([99]) * 32), index, size, path) != root
        assert root_over(leaf, index, size, [*path, leaf]) is None
        assert not path or root_over(leaf, index, size, path[1:]) is None


@on_a_loop
async def test_what_is_not_as_it_was_is_not_archived():
    """An instance that has gone on, or whose frame is another, gives no file."""
    async with Lab() as lab:
        await played(lab, ["ann"])
        head = head_of(lab.store, "ann")
        with pytest.raises(StoreError, match="gone on, or was removed"):
            Archivist(lab.store).archive(replace(head, hash=Digest(bytes(32))))
        frames = lab.store.shared.frames[head.shard]
        frames[0] = replace(frames[0], entries=[replace(e, beside=b"") for e in frames[0].entries])
        with pytest.raises(StoreError, match="it is not at 1 of its shard"):
            Archivist(lab.store).archive(head)
