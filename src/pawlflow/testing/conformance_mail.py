"""Promises about the mailbox: the one door between cells and processes."""

from pawlflow.model.ids import Tenant
from pawlflow.store.port import SHARDS, Taken
from pawlflow.testing.conformance_kit import Scribe, StoreTests, cell, letter, refused

EVERY = tuple(range(SHARDS))
ORDER = cell("order-1")
REFUSALS_KEPT = 10_000


class MailPromises(StoreTests):
    """Posted mail waits, in order, until a batch takes it."""

    def test_mail_waits_in_the_order_it_was_posted(self) -> None:
        """Ids rise; nothing is missed, and everything comes back as it was."""
        posted = [letter(cell(f"order-{n}"), shard=n % 3, text=b"%d" % n) for n in range(9)]
        ids = self.store.post(posted[:4]) + self.store.post(posted[4:])
        assert ids == sorted(set(ids))
        assert min(ids) > 0
        found = self.store.mail(EVERY, 0, 100)
        assert [mail.id for mail in found] == ids
        assert [(mail.shard, mail.cell, mail.input, mail.beside) for mail in found] == [
            (mail.shard, mail.cell, mail.input, mail.beside) for mail in posted
        ]

    def test_mail_is_read_by_shard_and_page(self) -> None:
        """Only these shards, only above the id, only so many."""
        ids = self.store.post([letter(ORDER, shard=n % 3) for n in range(9)])
        assert [mail.id for mail in self.store.mail([1], 0, 100)] == ids[1::3]
        assert [mail.id for mail in self.store.mail([0, 2], ids[2], 3)] == [ids[3], ids[5], ids[6]]
        assert self.store.mail(EVERY, ids[-1], 100) == []
        assert self.store.mail([], 0, 100) == []

    def test_whose_mail_it_is_is_told_without_it(self) -> None:
        """The same rows in the same order, by id and tenant."""
        other = cell("order-1", tenant="other")
        posted = [letter(other if n % 4 == 0 else ORDER, shard=n % 3) for n in range(9)]
        ids = self.store.post(posted)
        lines = self.store.mail_lines(EVERY, 0, 100)
        assert lines == [(mail.id, mail.cell.tenant) for mail in self.store.mail(EVERY, 0, 100)]
        assert [mail for mail, _ in self.again().mail_lines([0, 2], ids[2], 3)] == [
            *(ids[3], ids[5], ids[6])
        ]
        assert self.store.mail_lines([], 0, 100) == []

    def test_mail_is_read_by_its_ids(self) -> None:
        """What still waits in these shards, oldest first; an id that was never given is none."""
        scribe = Scribe(self.store)
        ids = self.store.post([letter(ORDER, shard=n % 2, text=b"%d" % n) for n in range(6)])
        scribe.commit(fences=[0], taken=[Taken(ids[2])])
        wanted = [ids[4], ids[3], ids[2], ids[0], ids[-1] + 7]
        found = self.store.mail_by_id(EVERY, wanted)
        assert [(mail.id, mail.input) for mail in found] == [
            *((ids[0], b"0"), (ids[3], b"3"), (ids[4], b"4"))
        ]
        assert [mail.id for mail in self.store.mail_by_id([1], wanted)] == [ids[3]]
        assert self.store.mail_by_id(EVERY, []) == []

    def test_mail_is_counted_by_the_beginning_of_its_key(self) -> None:
        """Of one tenant, what waits, no further than asked; mail without a key is not counted."""
        scribe = Scribe(self.store)
        other = cell("order-1", tenant="other")
        keys = ["begin:1", "begin:2", "begin:\U0010ffff", "begin", "begio", "b", None]
        ids = self.store.post([letter(ORDER, key=key) for key in keys])
        self.store.post([letter(other, key="begin:1")])
        count = self.store.posted
        tenant = ORDER.tenant
        assert [count(tenant, "begin:", most) for most in (1, 3, 100)] == [1, 3, 3]
        assert (count(tenant, "begin:1", 9), count(tenant, "x", 9)) == (1, 0)
        assert (count(other.tenant, "begin:", 9), count(Tenant("nobody"), "begin:", 9)) == (1, 0)
        scribe.commit(fences=[0], taken=[Taken(ids[1])])
        assert self.again().posted(tenant, "begin:", 9) == 2

    def test_posted_mail_is_durable(self) -> None:
        """It is there after the store was closed and opened again."""
        [mail] = self.store.post([letter(ORDER)])
        assert [each.id for each in self.again().mail(EVERY, 0, 10)] == [mail]

    def test_nothing_to_post_is_fine(self) -> None:
        """No mail, no ids."""
        assert self.store.post([]) == []

    def test_a_batch_posts_too(self) -> None:
        """What turns send lies in the mailbox with them."""
        scribe = Scribe(self.store)
        scribe.turn(ORDER)
        scribe.commit(mail=[letter(cell("order-2"), shard=9), letter(cell("order-3"), shard=9)])
        found = self.store.mail([9], 0, 10)
        assert [mail.cell.key for mail in found] == ["order-2", "order-3"]

    def test_taken_mail_is_gone(self) -> None:
        """Exactly once: with the batch that took it, and never again."""
        scribe = Scribe(self.store)
        first, second = self.store.post([letter(ORDER), letter(ORDER)])
        scribe.turn(ORDER)
        scribe.commit(taken=[Taken(first)])
        assert [mail.id for mail in self.store.mail(EVERY, 0, 10)] == [second]
        refused("store.batch", lambda: scribe.commit(fences=[0], taken=[Taken(first)]))
        twice = [Taken(second), Taken(second, "no")]
        refused("store.batch", lambda: scribe.commit(fences=[0], taken=twice))
        assert [mail.id for mail in self.again().mail(EVERY, 0, 10)] == [second]

    def test_mail_of_another_shard_cannot_be_taken(self) -> None:
        """The fence must be of the mail's own shard."""
        scribe = Scribe(self.store)
        [mail] = self.store.post([letter(ORDER, shard=4)])
        refused("store.batch", lambda: scribe.commit(fences=[0], taken=[Taken(mail)]))
        assert len(self.store.mail([4], 0, 10)) == 1

    def test_ids_are_never_given_twice(self) -> None:
        """Not even when the mailbox was emptied, and the store closed."""
        scribe = Scribe(self.store)
        [first] = self.store.post([letter(ORDER)])
        scribe.commit(fences=[0], taken=[Taken(first)])
        [second] = self.again().post([letter(ORDER)])
        assert second > first

    def test_one_key_is_one_mail_while_it_waits(self) -> None:
        """A sender who tries again gets the id of the first; after that was taken, a new one."""
        scribe = Scribe(self.store)
        [first] = self.store.post([letter(ORDER, key="k", text=b"first")])
        assert self.store.post([letter(ORDER, key="k", text=b"again")]) == [first]
        assert [mail.input for mail in self.store.mail(EVERY, 0, 10)] == [b"first"]
        scribe.commit(fences=[0], taken=[Taken(first)], mail=[letter(ORDER, key="k")])
        [waiting] = self.store.mail(EVERY, 0, 10)
        assert waiting.id > first
        assert waiting.key == "k"
        scribe.commit(fences=[0], mail=[letter(ORDER, key="k")])
        assert self.store.mail(EVERY, 0, 10) == [waiting]

    def test_keys_of_tenants_do_not_meet(self) -> None:
        """Nobody can keep another tenant's mail out by guessing its key; no key is never equal."""
        other = cell("order-1", tenant="other")
        posted = [letter(ORDER, key="k"), letter(other, key="k"), letter(ORDER), letter(ORDER)]
        assert len(set(self.store.post(posted))) == 4
        twice = self.store.post([letter(ORDER, key=""), letter(ORDER, key="")])
        assert twice[0] == twice[1]

    def test_senders_are_answered(self) -> None:
        """None while it waits, then what the owner said; unknown mail waits for ever."""
        scribe = Scribe(self.store)
        taken, rejected = self.store.post([letter(ORDER), letter(ORDER)])
        assert self.store.answer(taken) is None
        no = Taken(rejected, "instance.closed", "too late")
        scribe.commit(fences=[0], taken=[Taken(taken), no])
        store = self.again()
        assert store.answer(taken) == Taken(taken)
        assert store.answer(rejected) == no
        assert store.answer(rejected + 1) is None
        assert store.answer(0) is None

    def test_the_last_refusals_are_kept(self) -> None:
        """The last 10,000, in the order they were given."""
        scribe = Scribe(self.store)
        ids = self.store.post([letter(ORDER) for _ in range(REFUSALS_KEPT + 5)])
        late = ids.pop(0)
        scribe.commit(fences=[0], taken=[Taken(mail, "no") for mail in ids])
        scribe.commit(fences=[0], taken=[Taken(late, "no")])
        assert self.store.answer(late) == Taken(late, "no")
        assert self.store.answer(ids[4]) == Taken(ids[4])
        assert self.store.answer(ids[5]) == Taken(ids[5], "no")
