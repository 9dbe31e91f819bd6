"""The site: every page is built, every link leads somewhere, nothing comes from elsewhere."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from docs.build import broken, foreign, place_of, relinked, spaced

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site as `make docs` builds it."""
    out = tmp_path_factory.mktemp("site") / "site"
    command = [sys.executable, str(DOCS / "build.py"), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_the_site_is_whole_and_needs_no_network(site):
    """The build refuses warnings and broken links; what it lets out is looked at once more."""
    assert list(broken(site)) == []
    assert list(foreign(site)) == []
    shown = (site / "tutorial.html").read_text()
    assert not re.search(r'<(?:script|link|img|iframe)[^>]+(?:src|href)="(?:https?:)?//', shown)
    assert len(re.findall(r"<table>", (site / "errors.html").read_text())) >= 1


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_lists_and_file_names_are_shown(site):
    """What other readers of Markdown show as a list is one here; a file has its name above it."""
    assert '<span class="filename">steps.py</span>' in (site / "tutorial.html").read_text()
    contributing = (site / "source" / "CONTRIBUTING.html").read_text()
    assert "<li>" in contributing


def test_every_page_has_a_place_in_the_navigation():
    """A page that nothing leads to is read by nobody."""
    config = tomllib.loads((ROOT / "zensical.toml").read_text())
    named = set(leaves(config["project"]["nav"]))
    pages = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    assert pages - named == set()
    assert named - pages == set()


def leaves(entry):
    """Every page of a navigation."""
    if isinstance(entry, str):
        yield entry
    else:
        for each in entry.values() if isinstance(entry, dict) else entry:
            yield from leaves(each)


def test_files_elsewhere_become_pages(tmp_path):
    """A link out of docs/ leads to a page of the site, and a list begins after a blank line."""
    assert place_of(DOCS / "howto" / "waits.md") == Path("howto/waits.md")
    assert place_of(ROOT / "CONTRIBUTING.md") == Path("source/CONTRIBUTING.md")
    assert place_of(ROOT / "tests" / "test_walk.py") == Path("source/tests/test_walk.py.md")
    assert place_of(ROOT / "tests" / "crash") == Path("source/tests/crash/index.md")
    text, leads = relinked(DOCS / "walk.md")
    assert ROOT / "tests" / "test_walk.py" in leads
    assert "(source/tests/test_walk.py.md)" in text
    assert spaced("so:\n- one\n- two\n") == "so:\n\n- one\n- two\n"


def test_what_is_wrong_is_found(tmp_path):
    """A dead link, a lost heading, a font and a style from elsewhere are each told."""
    (tmp_path / "a.html").write_text(
        '<h1 id="x"></h1><a href="b.html"></a><a href="#y"></a><a href="#x"></a>'
        '<a href="https://elsewhere.example"></a><link href="//fonts.example/a.css">'
    )
    (tmp_path / "a.css").write_text("a { background: url(https://pictures.example/p.png) }")
    assert list(broken(tmp_path)) == [
        "a.html: b.html leads nowhere",
        "a.html: #y leads nowhere",
    ]
    assert list(foreign(tmp_path)) == [
        "a.html fetches //fonts.example/a.css",
        "a.css fetches https://pictures.example/p.png",
    ]
