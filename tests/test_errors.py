"""Every error has a code, every code is explained, and the page lists them all."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from pawlflow.cli.main import main
from pawlflow.errors import explanations
from tests.error_codes_kit import FORMED, Given, codes_in, files, forms_in

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "errors.md"


def page() -> str:
    """The page as it must be."""
    lines = [
        "# Errors",
        "",
        "Every error has a stable code; `pawl explain CODE` prints the same words. A code never",
        "changes its meaning.",
        "",
        "| code | cause | way out |",
        "|---|---|---|",
    ]
    known = explanations()
    lines += [
        f"| `{code}` | {words.cause} | {words.way_out} |" for code, words in sorted(known.items())
    ]
    return "\n".join(lines).replace("\\|", "|") + "\n"


def test_the_page_lists_every_code(request):
    """docs/errors.md is the table of the code."""
    if request.config.getoption("--rewrite-golden"):
        PAGE.write_text(page())
    assert PAGE.read_text() == page()


@pytest.mark.req("R94")
def test_every_code_in_the_source_is_explained():
    """Errors, findings, rejections, dispositions: a code that cannot be looked up helps nobody."""
    places: dict[str, list[str]] = {}
    for found in given():
        places.setdefault(found.code, []).append(found.place)

    unknown = {code: where for code, where in places.items() if code not in explanations()}

    assert unknown == {}
    assert len(places) > 200


def test_every_code_on_the_page_is_given_by_something():
    """A way out of a trouble that nobody can have only costs time."""
    real = {found.code for found in given() if found.gives}

    assert set(explanations()) - real == set()


def test_codes_that_are_put_together_are_known():
    """A code made of parts is listed with what it can be, or as what it is instead."""
    families = {code.partition(".")[0] for code in explanations()}
    formed = {form for _, text in files() for form in forms_in(text)}

    assert {form for form in formed if form.partition(".")[0] in families} <= set(FORMED)


def test_every_code_is_answered_by_explain():
    """`pawl explain CODE` prints cause and way out of each; the page has the same words."""
    told = json.loads(CliRunner().invoke(main, ["explain", "--json"]).stdout)
    rows = dict(re.findall(r"^\| `([^`]+)` \| (.*) \|$", PAGE.read_text(), re.MULTILINE))

    assert {each["code"] for each in told} == set(rows)
    assert {each["code"]: f"{each['cause']} | {each['way_out']}" for each in told} == rows


@pytest.mark.parametrize(
    ("source", "codes"),
    [
        ('raise StoreError("a.b", "words")', {("a.b", True)}),
        ('fail(code="a.b")', {("a.b", True)}),
        ('code = "a.b" if x else "a.c"', {("a.b", True), ("a.c", True)}),
        ('return ("a.b", "words")', {("a.b", True)}),
        ('if error.code == "a.b": pass', {("a.b", False)}),
        ('EXITS = dict.fromkeys(("a.b",), 2)', {("a.b", False)}),
        ('WAYS = {"a.b": "do this"}', {("a.b", False)}),
        ('class A(Record, tag="a.b"): pass', set()),
        ('@step(name="card.charge")\ndef f(): pass', set()),
        ('tell(INFO, "shard.flushed" if x else "a.b", n=1)', set()),
        ('reached("commit.full")', set()),
        ('path / "pawl.db"', set()),
        ('import_module("pawlflow.cli")', set()),
    ],
)
def test_the_finder_finds(source, codes):
    """Every way to give a code is seen; what is none is passed over."""
    assert {(found.code, found.gives) for found in codes_in(source, "x.py")} == codes


def given() -> list[Given]:
    """Every code in the source."""
    return [found for name, text in files() for found in codes_in(text, name)]


def test_every_explanation_says_something():
    """Cause and way out, each a sentence."""
    for code, words in explanations().items():
        assert re.fullmatch(r"[a-z]+\.[a-z_0-9]+", code), code
        assert len(words.cause) > 10, code
        assert words.way_out, code
