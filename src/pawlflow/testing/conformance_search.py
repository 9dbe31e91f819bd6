"""Promises about finding instances: by attributes, by facts of their heads, page by page."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from pawlflow.model.ids import Tenant, TimeMs
from pawlflow.store.port import Attributes, Filter, Head, Scalar, Term
from pawlflow.testing.conformance_kit import ACME, Scribe, StoreTests, cell, refused
from pawlflow.testing.conformance_rows import paged, place_of

OTHER = Tenant("other")


class SearchPromises(StoreTests):
    """What a new instance says of itself leads to it, from its first turn on, for ever."""

    def described(self, values: Sequence[dict[str, Scalar]], **facts: Any) -> list[Head]:
        """New instances, one for each of these, each a millisecond younger than the one before."""
        scribe = Scribe(self.store)
        heads: list[Head] = []
        for number, each in enumerate(values):
            scribe.now = TimeMs(1_000 + number)
            head = scribe.turn(cell(f"i-{number}"), shard=number % 3, **facts)
            scribe.commit(attributes=[Attributes(head.ref, each)])
            heads.append(head)
        return heads

    def found(self, *terms: Term, **wanted: Any) -> list[str]:
        """The ids of instances that pass all these terms, newest first."""
        heads = self.store.instances(Filter(tenant=ACME, where=[terms], **wanted))
        return [head.cell.key for head in heads]

    def test_instances_are_found_by_what_they_say(self) -> None:
        """Equal to one value, or to any of some; newest first, and after a restart."""
        self.described([{"repo": "a", "n": 1}, {"repo": "b", "n": 1}, {"repo": "a", "n": 2}, {}])
        assert self.found(term("repo", "==", "a")) == ["i-2", "i-0"]
        self.again()
        assert self.found(term("repo", "==", "a"), term("n", "==", 1)) == ["i-0"]
        assert self.found(term("repo", "==", "b", "a", "c")) == ["i-2", "i-1", "i-0"]
        assert self.found(term("repo", "==", "A")) == []
        assert self.found(term("other", "==", "a")) == []

    def test_numbers_are_compared_as_numbers(self) -> None:
        """Integers and floats together, exactly, beyond what a float can hold."""
        big = 2**53
        values: list[Scalar] = [1, 1.0, 1.5, -3, big, big + 1, float(big), 2**63 - 1, -(2**63), 0.0]
        self.described([{"n": value} for value in values])
        for op, holds in COMPARED.items():
            for probe in (1, 1.0, 1.25, big, big + 1, float(big), -(2**63), 0, -0.0):
                wanted = [f"i-{at}" for at, value in enumerate(values) if holds(value, probe)]
                assert self.found(term("n", op, probe)) == wanted[::-1], (op, probe)

    def test_texts_are_compared_by_their_characters(self) -> None:
        """By code points: no collation, no case, no normal form; nul and all planes count."""
        values: list[Scalar] = ["", "a", "A", "ab", "ä", "a\u0308", "a\0b", "\uffff", "\U0001f600"]
        self.described([{"t": value} for value in values])
        for op, holds in COMPARED.items():
            for probe in ("", "a", "aa", "ä", "a\0", "\uffff", "\U0010ffff"):
                wanted = [f"i-{at}" for at, value in enumerate(values) if holds(value, probe)]
                assert self.found(term("t", op, probe)) == wanted[::-1], (op, probe)

    def test_kinds_of_values_are_apart(self) -> None:
        """True is not 1, null is not false, "1" is no number; only `!=` holds across kinds."""
        values: list[Scalar] = [None, False, True, 0, 1, "", "1"]
        self.described([{"v": value} for value in values])
        for at, value in enumerate(values):
            assert self.found(term("v", "==", value)) == [f"i-{at}"]
            others = [f"i-{n}" for n in range(len(values)) if n != at]
            assert self.found(term("v", "!=", value)) == others[::-1]
        assert self.found(term("v", ">=", 0)) == ["i-4", "i-3"]
        assert self.found(term("v", ">=", "")) == ["i-6", "i-5"]
        assert self.found(term("v", "==", *BOTH_ONES)) == ["i-4", "i-2"]
        assert self.found(term("v", "==", 1, 1.0)) == ["i-4"]

    def test_what_is_found_comes_page_by_page(self) -> None:
        """Each page goes on below the last one, whichever index leads there; none comes twice."""
        heads = self.described([{"n": n % 5, "even": n % 2 == 0} for n in range(23)])
        asked = [
            [term("even", "==", *YES)],
            [term("n", ">=", 2)],
            [term("n", "==", 0, 3)],
            [term("n", "<", 4), term("even", "!=", *YES)],
            [fact("state", "==", "running"), term("n", "!=", 1)],
            [fact("created_at", ">=", 1_005), term("n", ">", 0)],
        ]
        for terms in asked:
            whole = self.store.instances(Filter(tenant=ACME, where=[terms]))
            pages = paged(
                lambda last, terms=terms: self.store.instances(
                    Filter(tenant=ACME, where=[terms], limit=2, before=last)
                ),
                place_of,
                None,
            )
            assert pages == whole == sorted(whole, key=place_of, reverse=True)
            assert 0 < len(whole) < len(heads)

    def test_any_of_several_filters_may_mean_an_instance(self) -> None:
        """An instance that several of them mean comes once."""
        self.described([{"n": n, "odd": bool(n % 2)} for n in range(8)])
        either = [[term("odd", "==", *YES)], [term("n", "<=", 3)], [fact("id", "==", "i-6")]]
        heads = self.store.instances(Filter(tenant=ACME, where=either))
        assert [head.cell.key for head in heads] == [f"i-{n}" for n in (7, 6, 5, 3, 2, 1, 0)]

    def test_facts_of_the_head_are_found_too(self) -> None:
        """Workflow, state, version, rollback, id and times, as the last turn left them."""
        scribe = Scribe(self.store)
        plan = [
            ("order", "failed", 1_000, 1_000, 5_000),
            ("order", "running", 2_000, 2_000, None),
            ("bill", "failed", 3_000, 9_000, 9_500),  # it was queued for long
            ("bill", "queued", 4_000, None, None),
        ]
        for number, (workflow, state, created, started, closed) in enumerate(plan):
            scribe.turn(
                cell(f"i-{number}", workflow=workflow),
                created_at=created,
                state=state,
                started_at=started,
                closed_at=closed,
                version=number,
            )
        scribe.turn(cell("$pool/1", workflow="$pool"))
        scribe.commit()
        asked = [
            (fact("workflow", "==", "bill"), "3 2"),
            (fact("workflow", "!=", "bill"), "1 0"),
            (fact("state", "==", "failed", "queued"), "3 2 0"),
            (fact("state", ">", "failed"), "3 1"),
            (fact("version", ">=", 2), "3 2"),
            (fact("rollback", "==", "none"), "3 2 1 0"),
            (fact("id", "==", "i-1", "i-3", "nobody", "$pool/1"), "3 1"),
            (fact("created_at", ">", 2_000), "3 2"),
            (fact("created_at", "==", 2_000), "1"),
            (fact("started_at", ">", 1_500), "2 1"),
            (fact("started_at", ">=", 9_000), "2"),
            (fact("started_at", "<", 9_000), "1 0"),
            (fact("started_at", "==", None), "3"),
            (fact("closed_at", ">", 5_000), "2"),
            (fact("closed_at", "<=", 5_000), "0"),
            (fact("closed_at", "!=", None), "2 0"),
        ]
        for asks, wanted in asked:
            assert self.found(asks) == [f"i-{n}" for n in wanted.split()], asks
        assert self.found(fact("state", "==", "failed"), fact("started_at", ">", 1_500)) == ["i-2"]
        assert self.found(fact("closed_at", ">", 1), states=["failed"], workflow="order") == ["i-0"]

    def test_tenants_find_their_own(self) -> None:
        """Equal names and values of another tenant lead nowhere, and are not known."""
        self.described([{"repo": "a", "env": None}])
        scribe = Scribe(self.store)
        head = scribe.turn(cell("i-0", tenant=OTHER))
        scribe.commit(attributes=[Attributes(head.ref, {"repo": "a", "team": "x"})])
        filters = Filter(tenant=OTHER, where=[[term("repo", "==", "a")]])
        assert self.store.instances(filters) == [head]
        assert self.found(term("repo", "==", "a")) == ["i-0"]
        assert self.store.attribute_names(ACME) == ["env", "repo"]
        assert self.again().attribute_names(OTHER) == ["repo", "team"]
        assert self.store.attribute_names(Tenant("nobody")) == []

    def test_attributes_are_kept_as_they_came(self) -> None:
        """An integer is no float; who has none is left out."""
        values: dict[str, Scalar] = {"b": True, "i": 1, "f": 1.0, "t": "x", "n": None}
        one, two = self.described([values, {}])
        found = self.again().attributes([one.ref, two.ref, two.ref + 32])
        assert found == {one.ref: values, two.ref: {}}
        assert [type(each) for each in found[one.ref].values()] == [
            type(values[name]) for name in found[one.ref]
        ]

    def test_only_a_new_instance_is_described(self) -> None:
        """Once, with its first turn; everything else is a mistake, and nothing is written."""
        [head] = self.described([{"n": 1}])
        scribe = Scribe(self.store)
        scribe.cells[head.ref] = head
        scribe.turn(head.cell, state="failed")
        late = scribe.batch(attributes=[Attributes(head.ref, {"n": 2})])
        refused("store.batch", lambda: self.store.append(late))
        fresh = scribe.turn(cell("new"))
        twice = scribe.batch(attributes=[Attributes(fresh.ref, {}), Attributes(fresh.ref, {})])
        refused("store.batch", lambda: self.store.append(twice))
        self.store.append(replace(twice, attributes=[Attributes(fresh.ref, {"n": 3})]))
        assert self.found(term("n", ">=", 1)) == ["new", "i-0"]

    def test_system_cells_of_a_kind_are_listed(self) -> None:
        """By key, highest first, page by page; their keys begin with their kind."""
        scribe = Scribe(self.store)
        keys = ["$pool/b", "$pool/a", "$pool/c", "$pools/x", "$po/y"]
        for key in keys:
            scribe.turn(cell(key, workflow=key.partition("/")[0]))
        scribe.turn(cell("$pool/d", tenant=OTHER, workflow="$pool"))
        scribe.turn(cell("order-1"))
        scribe.commit()

        def listed(before: str, limit: int) -> list[str]:
            return [head.cell.key for head in self.store.systems(ACME, "$pool", before, limit)]

        assert listed("", 10) == ["$pool/c", "$pool/b", "$pool/a"]
        assert listed("$pool/c", 1) == ["$pool/b"]
        assert listed("$pool/a", 10) == []


YES: tuple[Scalar, ...] = (True,)
BOTH_ONES: tuple[Scalar, ...] = (1, True)
COMPARED: dict[str, Any] = {
    "==": lambda value, probe: value == probe,
    "!=": lambda value, probe: value != probe,
    "<": lambda value, probe: value < probe,
    "<=": lambda value, probe: value <= probe,
    ">": lambda value, probe: value > probe,
    ">=": lambda value, probe: value >= probe,
}


def term(name: str, op: Any, *values: Scalar) -> Term:
    """A comparison with an attribute."""
    return Term(name, op, values)


def fact(name: str, op: Any, *values: Scalar) -> Term:
    """A comparison with a fact of the head."""
    return Term(name, op, values, builtin=True)
