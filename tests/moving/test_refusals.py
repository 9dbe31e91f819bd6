"""What a move refuses, and what refuses to be used while there is one."""

from contextlib import closing

import apsw
import pytest

from pawlflow.app import open_store
from pawlflow.engine.clock import SystemClock
from pawlflow.engine.places import mail_of
from pawlflow.model.ids import CellId, InstanceId, WorkflowName
from pawlflow.model.inputs import Signal
from pawlflow.model.payload import Payload
from pawlflow.moving import Told, undo, verify
from pawlflow.sides import side_of
from pawlflow.store.port import Batch, Fence, Filter, StoreConflictError
from pawlflow.testing.conformance_kit import Scribe, cell
from pawlflow.trouble import PawlError
from tests.moving.kit import TENANT, carried, journals, post
from tests.moving.test_kills import refusal

LETTER = mail_of(
    CellId(TENANT, WorkflowName("word"), InstanceId("word-1")),
    Signal("word.said", Payload.of({"to": "me"}, TENANT), "me"),
    "once",
)


class StopError(Exception):
    """Whoever watches has seen enough."""


def stop_after(rows):
    """Watch a move, and end it after so many rows."""

    def watch(done, _total):
        if done >= rows:
            raise StopError

    return watch


def code_of(call, *given):
    """The code of what goes wrong, and the message."""
    with pytest.raises(PawlError) as caught:
        call(*given)
    return caught.value.code, str(caught.value)


def stopped(source, target, rows=40):
    """A move that was cut short."""
    with pytest.raises(StopError):
        carried(source, target, stop_after(rows))


def taken_back(source, target=None, *, force=False):
    """Undo a move."""
    with closing(side_of(source)) as here:
        if target is None:
            return undo(here, None, SystemClock(), force=force)
        with closing(side_of(target)) as there:
            return undo(here, there, SystemClock(), force=force)


def posted(url):
    """Try to post."""
    with closing(open_store(url)) as store:
        return store.post([LETTER])


def one_order(url):
    """A store with one turn in it."""
    with closing(open_store(url)) as store:
        scribe = Scribe(store)
        scribe.now = max(head.now for head in scribe.heads.values())
        scribe.turn(cell("order-1"))
        scribe.commit()


# Marked stores


@pytest.mark.req("R219")
def test_a_store_that_was_moved_is_only_read(flight, postgres):
    """Owners and senders are told where it is now; readers read."""
    server = postgres.fresh()
    carried(flight, server)

    for use in (posted, lambda url: open_store(url).claim()):
        code, words = code_of(use, flight)
        assert (code, "postgresql://pawl@127.0.0.1" in words) == ("store.moved", True)
    with closing(open_store(flight)) as store:
        assert len(store.instances(Filter(tenant=TENANT, limit=200))) == 17
        assert store.facts()["move"].done
    assert code_of(carried, flight, postgres.fresh())[0] == "store.moved"


@pytest.mark.req("R219")
def test_while_it_is_moved_neither_store_is_used(flight, postgres):
    """Also by who has opened it before, or comes with mail."""
    server = postgres.fresh()
    with closing(open_store(flight)) as early:
        stopped(flight, server)
        assert code_of(early.claim)[0] == "store.moving"
        assert code_of(early.post, [LETTER])[0] == "store.moving"
    assert (code_of(posted, server)[0], refusal(server)) == ("store.unfinished", "store.unfinished")
    assert code_of(carried, flight, postgres.fresh())[0] == "store.moving"
    assert code_of(carried, server, postgres.fresh())[0] == "store.unfinished"


@pytest.mark.req("R219")
def test_a_server_that_was_moved_refuses_late_mail_and_late_owners(postgres, tmp_path):
    """A trigger and the fences see to it, whatever those know who come late."""
    server, file = postgres.fresh(), f"sqlite:///{tmp_path}/new.db"
    one_order(server)
    with closing(open_store(server)) as late, closing(open_store(server)) as owner:
        heads = owner.claim()
        postgres.execute(f"DELETE FROM {schema_of(server)}.node")  # it is taken for dead
        carried(server, file)
        assert code_of(late.post, [LETTER])[0] == "store.moved"
        fences = [Fence(head.shard, head.epoch, head.seq) for head in heads]
        with pytest.raises(StoreConflictError):
            owner.append(Batch(id=b"late", fences=fences))
    assert refusal(server) == "store.moved"
    assert posted(file) == [1]


def schema_of(url):
    return url.partition("schema=")[2]


@pytest.mark.req("R219")
def test_numbers_and_keys_of_mail_go_on(flight, postgres):
    """Mail that waits is not doubled by who sends it again, and no number comes twice."""
    server = postgres.fresh()
    with closing(open_store(flight)) as store:
        waiting = {each.key: each.id for each in store.mail(range(32), 0, 100)}
        answers = [store.answer(number) for number in range(1, 40)]
    assert any(each is not None and each.code for each in answers)
    carried(flight, server)

    with closing(open_store(server)) as store:
        assert [store.answer(number) for number in range(1, 40)] == answers
    assert posted(server) == [waiting["once"]]
    post(server)
    with closing(open_store(server)) as store:
        found = [each.id for each in store.mail(range(32), 0, 100)]
        assert len(found) == len(set(found)) == len(waiting) + 1
        assert min(set(found) - set(waiting.values())) > max(waiting.values())


# Wrong targets


@pytest.mark.req("R219")
def test_a_target_that_holds_something_is_left_alone(flight, postgres, tmp_path):
    """A store with a turn in it, or an unfinished move of somebody else."""
    server, file = postgres.fresh(), f"sqlite:///{tmp_path}/new.db"
    for url in (server, file):
        one_order(url)
        before = journals(url)
        code, words = code_of(carried, flight, url)
        assert (code, "is not empty" in words) == ("move.not_empty", True)
        assert journals(url) == before
    other = postgres.fresh()
    stopped(file, other, 1)
    code, words = code_of(carried, flight, other)
    assert (code, f"holds a part of {file}" in words) == ("move.not_empty", True)
    assert refusal(flight) is None


@pytest.mark.req("R219")
def test_a_target_that_cannot_be_used_is_told_by_its_code(flight, postgres, tmp_path):
    """The store itself, a newer version, a server that is not there, somebody else's file."""
    newer = postgres.fresh()
    open_store(newer).close()
    postgres.execute(f"UPDATE {schema_of(newer)}.meta SET value = '99' WHERE name = 'version'")
    away = postgres.fresh().replace(f":{postgres.port}/", ":1/")
    (tmp_path / "text.db").write_text("hello")
    for target, code in {
        flight: "move.same",
        flight.replace("flight.db", "./flight.db"): "move.same",
        newer: "store.newer",
        away: "store.unreachable",
        f"sqlite:///{tmp_path}/text.db": "store.not_ours",
        "memory:": "store.url",
    }.items():
        assert code_of(carried, flight, target)[0] == code, target
    server = postgres.fresh()
    one_order(server)
    assert code_of(carried, server, server)[0] == "move.same"
    assert refusal(flight) is None


@pytest.mark.req("R219")
def test_a_store_with_an_owner_is_not_moved(flight, postgres, tmp_path):
    """Neither from there nor to there; afterwards nothing is marked."""
    server, file = postgres.fresh(), f"sqlite:///{tmp_path}/new.db"
    with closing(open_store(flight)) as owner:
        owner.claim()
        assert code_of(carried, flight, server)[0] == "store.owned"
    for target in (server, file):
        with closing(open_store(target)) as owner:
            owner.claim()
            assert code_of(carried, flight, target)[0] == "store.owned"
    assert refusal(flight) is None


@pytest.mark.req("R219")
def test_what_is_damaged_is_not_carried_on(flight, postgres, tmp_path):
    """A journal that does not give its hashes, and a cell without its last turn."""
    db = apsw.Connection(str(tmp_path / "flight.db"))
    db.execute("UPDATE entry SET hash = zeroblob(32) WHERE id = 7")
    db.close()
    assert code_of(carried, flight, postgres.fresh())[0] == "store.chain"


# Verifying

CHANGES = {
    "frames": "UPDATE {s}.frame SET epoch = epoch + 1 WHERE pos = (SELECT max(pos) FROM {s}.frame)",
    "entries": "UPDATE {s}.entry SET beside = 'x' WHERE pos = (SELECT min(pos) FROM {s}.entry)",
    "turns": "UPDATE {s}.entry SET prev = 0 WHERE number = 2",
    "published": "UPDATE {s}.published SET at = at + 1 WHERE name = 'nap'",
    "definitions": "DELETE FROM {s}.definition WHERE get_byte(hash, 0) > 0",
    "blobs": "UPDATE {s}.blob SET data = 'x'",
    "mentions": "DELETE FROM {s}.cell_blob",
    "cells": "UPDATE {s}.pulse SET due_at = 1 WHERE due_at > 1",
    "attributes": "UPDATE {s}.attributes SET data = 'x'",
    "search": "DELETE FROM {s}.search",
    "reviews": "UPDATE {s}.review SET role = 'boss'",
    "snapshots": "UPDATE {s}.snapshot SET data = 'x'",
    "mail": "UPDATE {s}.mailbox SET dedupe = 'twice' WHERE dedupe IS NOT NULL",
    "refusals": "DELETE FROM {s}.refusal",
    "dispositions": "UPDATE {s}.disposition SET tenant = 'other'",
    "shards": "UPDATE {s}.shard SET batch = 'x'",
}


@pytest.mark.req("R219")
def test_every_byte_is_compared_before_it_is_let_go(flight, postgres):
    """Whatever is changed behind its back is found."""
    server = postgres.fresh()
    carried(flight, server)
    with closing(side_of(flight)) as source, closing(side_of(server)) as target:
        verify(source, target, Told(None, 0))
        for part, change in CHANGES.items():
            with target._db.transaction(force_rollback=True):
                target._db.execute(change.format(s=schema_of(server)).encode())
                code, words = code_of(verify, source, target, Told(None, 0))
            assert (code, "pawl move --undo" in words) == ("move.differs", True), part


@pytest.mark.req("R219")
def test_a_copy_that_differs_is_not_let_go(flight, postgres):
    """Both stores stay marked; emptied, it is moved again."""
    server = postgres.fresh()

    def meddle(done, total):
        if done * 2 == total:
            postgres.execute(CHANGES["blobs"].format(s=schema_of(server)))

    assert code_of(carried, flight, server, meddle)[0] == "move.differs"
    assert (refusal(flight), refusal(server)) == ("store.moving", "store.unfinished")
    assert code_of(carried, flight, server)[0] == "move.differs"
    assert taken_back(flight, server) == "given up"
    carried(flight, server)
    assert journals(server) == journals(flight)


# The way back


@pytest.mark.req("R219")
def test_a_move_is_given_up(flight, postgres):
    """The source is used again; the target is empty, and takes the next move from the beginning."""
    server = postgres.fresh()
    stopped(flight, server)
    assert taken_back(flight, server) == "given up"
    with closing(side_of(server)) as side:
        assert not any(side.sizes().values())
    assert (refusal(flight), refusal(server)) == (None, None)

    stopped(flight, server)
    assert taken_back(flight) == "given up"
    assert refusal(server) == "store.unfinished"
    one_order(flight)  # it goes on: what was copied before is of no use
    assert not carried(flight, server).resumed
    assert journals(server) == journals(flight)


@pytest.mark.req("R219")
def test_a_move_that_has_ended_is_undone(flight, postgres):
    """If nothing has happened there since; from then on that one refuses."""
    server, before = postgres.fresh(), journals(flight)
    carried(flight, server)
    assert code_of(taken_back, flight)[0] == "move.target"
    assert code_of(taken_back, flight, postgres.fresh())[0] == "move.target"

    assert taken_back(flight, server) == "undone"

    assert (refusal(flight), refusal(server)) == (None, "store.moved")
    assert journals(flight)[:2] == before[:2]
    assert code_of(taken_back, flight, server)[0] == "move.none"


@pytest.mark.req("R219")
def test_a_target_that_has_gone_on_is_not_left_behind(flight, postgres, tmp_path):
    """Unless it is said so; the other way is to move it on to a new place."""
    server = postgres.fresh()
    carried(flight, server)
    posted(server)
    one_order(server)

    assert code_of(taken_back, flight, server)[0] == "move.ahead"
    assert refusal(flight) == "store.moved"
    assert code_of(carried, server, flight)[0] == "store.moved"
    carried(server, f"sqlite:///{tmp_path}/new.db")
    assert taken_back(flight, force=True) == "undone"
