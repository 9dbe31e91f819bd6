"""`pawl ls --where`: instances by what they say of themselves, and by what they are."""

import pytest

from pawlflow.model.ids import Tenant, TimeMs
from pawlflow.store.memory import MemoryStore
from pawlflow.store.port import Term
from pawlflow.where import VALUES_MAX, WAYS_MAX, WhereError, filter_of, parse_where
from tests.cli.many_kit import parked
from tests.store.kit import tamper

NOW = TimeMs(1_800_000_000_000)


def ids(place, *words: str) -> set[str]:
    """The instances that `ls` prints."""
    return {row["id"] for row in place.told("ls", *words)}


def numbered(*numbers: int) -> set[str]:
    """p-1, p-2, ..."""
    return {f"p-{n}" for n in numbers}


@pytest.mark.req("R216", "R183")
def test_instances_are_listed_by_their_attributes(place):
    """Texts, numbers and lists of them, with && and ||; several filters must all hold."""
    parked(place, 23)

    assert ids(place, "--where", "name == 'car 7'") == {"p-7"}
    assert ids(place, "--where", "n >= 20") == numbered(20, 21, 22)
    assert ids(place, "--where", "lot in [1, 2]", "--where", "n > 5") == numbered(11, 12, 21, 22)
    assert ids(place, "--where", "n < 2 || n == 9 || name == 'car 11'") == numbered(0, 1, 9, 11)
    assert ids(place, "--where", "lot == 3 && (n == 3 || n == 13)") == numbered(3, 13)
    assert ids(place, "--where", "20.5 < n") == numbered(21, 22)
    assert ids(place, "--where", "search.n == 4 && name != 'car 5'") == {"p-4"}
    assert ids(place, "--where", "n == 'car 7'") == set()
    [row] = place.told("ls", "--where", "n == 4")
    assert row["search"] == {"n": 4, "lot": 4, "name": "car 4"}
    assert place.shown("p-4")["search"] == row["search"]
    assert "n=4 lot=4 name=car 4" in place.pawl("show", "p-4").stdout


@pytest.mark.req("R183")
def test_instances_are_listed_by_what_they_are(place):
    """State, workflow, version, id and times, beside the options there were before."""
    parked(place, 4)
    place.pawl("start", "order.yaml", "--id", "o-1", "--input", '{"amount": 1}')
    place.pawl("cancel", "p-3")

    assert ids(place, "--where", "state == 'cancelled'") == {"p-3"}
    assert ids(place, "--where", "workflow == 'parked' && state != 'cancelled'") == numbered(
        0, 1, 2
    )
    assert ids(place, "--where", "workflow == 'order'", "--where", "version == 1") == {"o-1"}
    assert ids(place, "--where", "id in ['p-1', 'nobody']") == {"p-1"}
    assert ids(place, "--where", "started_at > '2020-01-01T00:00:00Z'") == numbered(0, 1, 2, 3) | {
        "o-1"
    }
    assert ids(place, "--where", "created_at > '+1h'") == set()
    assert ids(place, "--where", "closed_at > '-1h'") == {"p-3"}
    assert ids(place, "--where", "n > 1", "--state", "waiting") == {"p-2"}
    assert ids(place, "--where", "rollback == 'none'", "--workflow", "order") == {"o-1"}


@pytest.mark.req("R183")
def test_a_filter_is_paged(place):
    """`--limit` and `--after` go on where the last page ended; nothing comes twice."""
    parked(place, 12)
    whole = [row["id"] for row in place.told("ls", "--where", "n < 10")]
    pages = [place.told("ls", "--where", "n < 10", "--limit", "4")]
    while len(pages[-1]) == 4:
        last = pages[-1][-1]["id"]
        pages.append(place.told("ls", "--where", "n < 10", "--limit", "4", "--after", last))

    assert [len(page) for page in pages] == [4, 4, 2]
    assert [row["id"] for page in pages for row in page] == whole
    done = place.pawl("ls", "--where", "n < 10", "--limit", "4")
    assert f"pawl ls --where 'n < 10' --limit 4 --after {whole[3]}" in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("nn == 1", "where.unknown", "did you mean 'n'"),
        ("speed == 1", "where.unknown", "known are lot, n, name"),
        ("n = 1", "where.invalid", "did you mean '=='"),
        ("n == other", "where.invalid", "compared with a constant"),
        ("n != 1", "where.unindexed", "add a state"),
        ("version == 1 && n != 2", "where.unindexed", "version, n"),
        ("n == 1 || rollback == 'none'", "where.unindexed", "rollback"),
        ("state == 'faild'", "where.invalid", "did you mean 'failed'"),
        ("started_at > 'yesterday'", "where.invalid", "a time like"),
    ],
)
def test_a_filter_that_cannot_be_used_says_why(place, words, code, said):
    """Usage, exit 2; what is known is named, and the way out."""
    parked(place, 1)

    done = place.pawl("ls", "--where", words)

    assert done.exit_code == 2
    assert f"[{code}]" in done.stderr
    assert said in done.stderr


def test_an_attribute_that_is_only_declared_is_known(place):
    """No instance has it yet: the list is empty, and that is no mistake."""
    parked(place, 0)

    assert ids(place, "--where", "lot == 1") == set()
    assert place.pawl("ls", "--where", "lott == 1").exit_code == 2


@pytest.mark.req("R216")
def test_a_start_that_cannot_be_found_is_refused(place):
    """The attribute and what is wrong with it are named."""
    parked(place, 0)

    done = place.pawl("start", "parked", "--id", "p-x", "--input", '{"n": [1]}')

    assert done.exit_code == 5
    assert "[search.failed]" in done.stderr
    assert place.pawl("show", "p-x").exit_code == 4


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE attributes SET data = x'a1616e01' WHERE ref = (SELECT min(ref) FROM attributes)",
        "DELETE FROM attributes",
        "DELETE FROM search WHERE name = 'lot'",
        "UPDATE search SET value = 99 WHERE name = 'n' AND value = 2",
        "UPDATE search SET at = at + 1 WHERE name = 'n' AND value = 0",
        "INSERT INTO attributes SELECT ref, x'a1616e01' FROM cell WHERE workflow = 'order'",
    ],
)
def test_an_index_that_was_changed_is_found(place, sql):
    """`replay --all` holds the rows that instances are found by against what they said."""
    parked(place, 3)
    place.pawl("start", "order.yaml", "--id", "o-1", "--input", '{"amount": 1}')
    assert place.pawl("replay", "--all").exit_code == 0
    tamper(place.db, sql)

    report = place.told("replay", "--all", exits=5)

    assert {each["code"] for each in report["differences"]} == {"store.index"}


# The grammar


def read(*texts: str) -> list[list[Term]]:
    """What filters stand for."""
    return [list(terms) for terms in parse_where(texts, NOW)]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ('repo == "r1"', [[Term("repo", "==", ("r1",))]]),
        ("100 <= amount", [[Term("amount", ">=", (100,))]]),
        ("amount > -1.5", [[Term("amount", ">", (-1.5,))]]),
        ("env in ['a', null, true]", [[Term("env", "==", ("a", None, True))]]),
        ("urgent", [[Term("urgent", "==", (True,))]]),
        ("!urgent", [[Term("urgent", "==", (False,))]]),
        ("!!urgent", [[Term("urgent", "==", (True,))]]),
        ("${ a == 1 }", [[Term("a", "==", (1,))]]),
        ("search['git-repo'] == 1", [[Term("git-repo", "==", (1,))]]),
        ("search.state == 'x'", [[Term("state", "==", ("x",))]]),
        ("git.repo == 1", [[Term("git.repo", "==", (1,))]]),
        ("version >= 2", [[Term("version", ">=", (2,), builtin=True)]]),
        ("started_at == null", [[Term("started_at", "==", (None,), builtin=True)]]),
        ("created_at > '-1h'", [[Term("created_at", ">", (NOW - 3_600_000,), builtin=True)]]),
        (
            "closed_at < '2027-01-15T09:00:00+01:00'",
            [[Term("closed_at", "<", (1_800_000_000_000,), builtin=True)]],
        ),
        ("a == 1 || b == 2 && c", None),
    ],
)
def test_filters_are_read(text, terms):
    """Comparisons with constants on either side; bare names are truths; times are moments."""
    if terms is None:
        terms = [
            [Term("a", "==", (1,))],
            [Term("b", "==", (2,)), Term("c", "==", (True,))],
        ]
    assert read(text) == terms


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected a value"),
        ("1 == 1", "a name and a constant"),
        ("a < b < c", "joined by && and ||"),
        ("a + 1 == 2", "a name and a constant"),
        ("git-repo == 1", "search['git-repo']"),
        ("size(a) == 1", "a name and a constant"),
        ("a < true", "use == or !="),
        ("a >= null", "use == or !="),
        ("a == [1]", "compared with a constant"),
        ("a == b'x'", "holds text, numbers"),
        ("a in 1", "a list of constants"),
        ("a in [b]", "a list of constants"),
        ("!(a == 1)", "turn a comparison around"),
        ("state", "must be compared"),
        ("a ? b : c", "joined by && and ||"),
        ("workflow == 1", "workflow is text"),
        ("version == 'x'", "version is a number"),
        ("a and b", "write && for and"),
        ("started_at > '1800-01-01'", "a time like"),
        (f"a in [{', '.join(map(str, range(VALUES_MAX + 1)))}]", f"at most {VALUES_MAX}"),
        (" || ".join(f"a == {n}" for n in range(WAYS_MAX + 1)), "alternatives"),
        (" && ".join(["(a || b)"] * 6), "alternatives"),
    ],
)
def test_what_is_no_filter_is_refused(text, said):
    """With the text, the reason and, where there is one, the way out."""
    with pytest.raises(WhereError) as error:
        read(text)

    assert error.value.code == "where.invalid"
    assert said in str(error.value)


def test_no_filter_means_everything():
    """Nothing is asked of the store that it did not answer before."""
    wanted = filter_of(MemoryStore(), Tenant("acme"), now=NOW)

    assert (wanted.where, wanted.states, wanted.workflow) == ((), (), None)
