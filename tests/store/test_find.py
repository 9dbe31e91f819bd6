"""Finding costs what is found: counted in steps of the database's machine, never in time."""

import re
from pathlib import Path

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pawlflow.model.ids import TimeMs
from pawlflow.store import find
from pawlflow.store.memory import MemoryStore
from pawlflow.store.port import Attributes, Filter, Scalar, Term
from pawlflow.store.sqlite import SqliteStore
from pawlflow.store.sqlite_schema import MIGRATIONS, opened
from pawlflow.testing.conformance_kit import ACME, Scribe, cell
from pawlflow.testing.conformance_search import fact, term

EVERY = 1_000  # of so many instances one has a rare value
STATES = ("running", "failed", "completed")


def filled(store: SqliteStore, count: int) -> SqliteStore:
    """Instances of five workflows in three states, with common, rare and unique values."""
    scribe = Scribe(store)
    for first in range(0, count, 500):
        described = [described_as(scribe, n) for n in range(first, min(first + 500, count))]
        scribe.commit(attributes=described)
        scribe.cells.clear()  # each is written once, and looking through them all takes long
    return store


def described_as(scribe: Scribe, n: int) -> Attributes:
    """The nth instance, and what it says of itself."""
    scribe.now = TimeMs(1_000 + n)
    head = scribe.turn(
        cell(f"i-{n}", workflow=f"w{n % 5}"),
        shard=n % 7,
        state=STATES[n % 3],
        started_at=TimeMs(1_000 + n),
        closed_at=TimeMs(5_000 + n) if n % 3 else None,
    )
    said: dict[str, Scalar] = {"env": "prod", "n": n, "rare": n % EVERY == 7, "half": n % 2}
    return Attributes(head.ref, said)


class Counted:
    """A store whose statements are counted, and what each of them does."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        self.steps = self.statements = 0
        store._db.trace_v2(apsw.SQLITE_TRACE_PROFILE, self.count)

    def count(self, told) -> None:
        """One more statement."""
        self.statements += 1
        self.steps += told["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]

    def cost(self, *where: Term, **more: object) -> tuple[int, int]:
        """How many are on the first page of a filter, and how many steps it takes."""
        self.steps = self.statements = 0
        heads = self.store.instances(Filter(tenant=ACME, where=[where] if where else [], **more))
        return len(heads), self.steps


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """The same store with 1,000 and with 8,000 instances."""
    folder = tmp_path_factory.mktemp("find")
    made = [filled(SqliteStore(folder / f"{n}.db"), n) for n in (1_000, 8_000)]
    yield [Counted(each) for each in made]
    for each in made:
        each.close()


@pytest.mark.req("R183", "R216")
@pytest.mark.parametrize(
    "terms",
    [
        [],
        [term("env", "==", "prod")],
        [term("n", "==", 77)],
        [term("n", "==", 77, 78, 79)],
        [term("n", "<", 40)],
        [term("n", ">=", 100), term("n", "<", 120), fact("id", "==", "i-110")],
        [term("env", "==", "prod"), term("n", "<", 40)],
        [fact("state", "==", "failed"), term("n", "<=", 40)],
        [fact("state", "==", "failed")],
        [fact("workflow", "==", "w1"), fact("state", "!=", "failed")],
        [fact("created_at", "<", 1_040)],
        [fact("started_at", "<=", 1_040)],
        [fact("closed_at", "<", 5_040)],
    ],
    ids=lambda terms: " ".join(f"{each.name}{each.op}" for each in terms) or "all",
)
def test_a_page_costs_the_same_however_many_there_are(stores, terms):
    """Eight times the instances, the same matches: the same steps, within a few more levels."""
    small, large = (counted.cost(*terms, limit=50) for counted in stores)

    assert small[0] == large[0] > 0
    assert large[1] < small[1] * 1.25


@pytest.mark.req("R183")
def test_the_last_page_costs_no_more_than_the_first(stores):
    """The place in the list is a place in the index."""
    _, large = stores
    first = large.cost(limit=50)
    last = large.cost(limit=50, before=(TimeMs(1_060), 0))

    assert first[0] == last[0] == 50
    assert last[1] < first[1] * 1.25


@pytest.mark.req("R216")
def test_the_most_selective_term_leads(stores):
    """Of a common and a rare value the rare one is walked, whichever is named first."""
    _, large = stores
    common, rare = term("env", "==", "prod"), Term("rare", "==", (True,))
    alone, costs = large.cost(rare), [large.cost(common, rare), large.cost(rare, common)]

    assert alone[0] == 8
    for found, steps in costs:
        assert found == 8
        assert steps < 8 * 200 + 2 * find.PROBE * find.PROBE_GROWTH * 10
    many = large.cost(common, term("half", "==", 1), limit=10_000)
    assert many[0] == 4_000


@pytest.mark.req("R216")
def test_every_statement_of_a_search_uses_an_index(stores):
    """No plan scans a table, and none sorts but what it has found."""
    _, large = stores
    texts: list[str] = []
    large.store._db.trace_v2(apsw.SQLITE_TRACE_STMT, lambda told: texts.append(told["sql"]))
    for terms in (
        [term("n", ">", 7_990)],
        [fact("closed_at", ">", 12_990), term("env", "==", "prod")],
        [fact("started_at", ">", 8_990)],
        [fact("id", "==", "i-1")],
    ):
        large.store.instances(Filter(tenant=ACME, where=[terms]))
    large.store.attribute_names(ACME)
    large.store.systems(ACME, "$batch", "", 10)
    large.store._db.trace_v2(apsw.SQLITE_TRACE_PROFILE, large.count)

    asked = {text for text in texts if text.lstrip().startswith(("SELECT", "WITH"))}
    assert len(asked) >= 8
    for text in asked:
        numbered = {int(each) for each in re.findall(r"\?(\d+)", text)}
        values = (None,) * (max(numbered) if numbered else text.count("?"))
        plan = [row[3] for row in large.store._db.execute(f"EXPLAIN QUERY PLAN {text}", values)]
        scans = {line for line in plan if line.startswith("SCAN")}
        tables = {line for line in scans if line.split()[1] in ("cell", "search", "attributes")}
        assert tables == set(), (text, plan)
        assert not any("TEMP B-TREE" in line for line in plan), (text, plan)


def test_a_store_of_an_older_version_is_brought_up(tmp_path):
    """Its instances are listed as before; those that come are found by what they say."""
    path = tmp_path / "old.db"
    opened(path, busy_ms=1_000, migrations=MIGRATIONS[:2]).close()
    store = SqliteStore(path)
    try:
        [head] = filled(store, 1).instances(Filter(tenant=ACME))
        assert store.facts()["version"] == MIGRATIONS[-1][0]
        assert store.attributes([head.ref]) != {}
        assert store.integrity() == []
    finally:
        store.close()


# Any filter, any values: both stores, and a plain look at everything

SCALARS: st.SearchStrategy[Scalar] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([2**53, 2**53 + 1, -(2**63), 2**63 - 1]),
    st.floats(-3, 3, allow_nan=False).map(lambda each: round(each * 2) / 2),
    st.sampled_from([float(2**53), 1e300, -0.0]),
    st.text("ab\0é\U0001f600", max_size=2),
)
OPS = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
TERMS = st.one_of(
    st.builds(Term, st.sampled_from("xy"), OPS, st.lists(SCALARS, max_size=3).map(tuple)),
    st.builds(
        lambda name, op, value: Term(name, op, (value,), builtin=True),
        st.sampled_from(["created_at", "started_at", "closed_at"]),
        OPS,
        st.one_of(st.integers(1_000, 1_008), st.none()),
    ),
    st.builds(
        lambda name, op, value: Term(name, op, value, builtin=True),
        st.sampled_from(["state", "workflow", "id"]),
        OPS,
        st.lists(st.sampled_from(["running", "failed", "w0", "w1", "i-2"]), max_size=2).map(tuple),
    ),
)
FILTERS = st.lists(st.lists(TERMS, max_size=3), max_size=3)


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Two stores, in which each example has a tenant of its own."""
    path: Path = tmp_path_factory.mktemp("both") / "pawl.db"
    file = SqliteStore(path)
    yield [Scribe(MemoryStore()), Scribe(file)]
    file.close()


@pytest.mark.req("R216")
@given(
    rows=st.lists(st.dictionaries(st.sampled_from("xy"), SCALARS), max_size=8),
    where=FILTERS,
    limit=st.integers(1, 4),
)
def test_both_stores_find_what_a_look_at_everything_finds(both, rows, where, limit):
    """The same instances in the same order, page by page; an index never changes an answer."""
    tenant = type(ACME)(f"t-{both[0].now}")
    answers = [answer(scribe, tenant, rows, where, limit) for scribe in both]

    assert answers[0] == answers[1]


def answer(scribe, tenant, rows, where, limit):
    """What one store finds, held against a look at all heads."""
    for n, values in enumerate(rows):
        scribe.now = TimeMs(scribe.now + n % 2)
        head = scribe.turn(
            cell(f"i-{n}", tenant=tenant, workflow=f"w{n % 2}"),
            shard=n % 3,
            created_at=TimeMs(1_000 + n // 2),
            state=STATES[n % 3],
            started_at=None if n % 5 == 4 else TimeMs(1_000 + n // 2 + 3 * (n % 3 == 1)),
            closed_at=TimeMs(1_004 + n) if n % 3 == 2 else None,
        )
        scribe.commit(attributes=[Attributes(head.ref, values)])
    heads = {head.ref: (head, rows[n]) for n, head in enumerate(scribe.cells.values())}
    scribe.now = TimeMs(scribe.now + 1)
    scribe.cells.clear()
    wanted = Filter(tenant=tenant, where=where, limit=limit)
    meant = [head for head, values in heads.values() if find.means(wanted, head, values)]
    meant.sort(key=lambda head: (head.created_at, head.ref), reverse=True)
    found = []
    while page := scribe.store.instances(wanted):
        found += page
        wanted = replace(wanted, before=(page[-1].created_at, page[-1].ref))
    assert found == meant
    return [(head.cell.key, head.created_at) for head in found]
