"""Every error has a code, every code is explained, and the page lists them all."""

import re
from pathlib import Path

import pytest

from pawlflow.errors import explanations

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "errors.md"
# Codes in the source: a dotted name in quotes, beside a word that makes it one.
USED = re.compile(
    r"(?:Rejected|PayloadError|CodecError|JournalError|failure_of|timed_out|fail|TypeMismatch|"
    r"SchemaError|refused|invalid|failed|Store[A-Za-z]*Error|UrlError|BadRequestError|NotFound|"
    r"Refused|WhereError|DefinitionError|PawlError|Verdict|found|problem|end)\(\s*(?:[a-z_]+,\s*)?(?:\"[a-z_]+\",\s*)?\"([a-z]+\.[a-z_]+)\""
)


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
    """A code that nobody can look up helps nobody."""
    used = {
        code
        for path in (ROOT / "src").rglob("*.py")
        for code in USED.findall(path.read_text())
        if not path.name.startswith("types") and "sim" not in path.parts
    }
    assert len(used) > 40
    assert used - set(explanations()) == set()


def test_every_explanation_says_something():
    """Cause and way out, each a sentence."""
    for code, words in explanations().items():
        assert re.fullmatch(r"[a-z]+\.[a-z_0-9]+", code), code
        assert len(words.cause) > 10, code
        assert words.way_out, code
