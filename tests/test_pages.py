"""The tutorial, the how-to pages and the pages for newcomers from elsewhere, from top to bottom."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages_kit import READ_ONLY, Session, blocks_of, environment, matches, mended

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = [DOCS / "tutorial.md", *sorted(DOCS.glob("howto/*.md")), *sorted(DOCS.glob("from/*.md"))]
SHOWN = [page for page in PAGES if page.name != "README.md"]
DAILY = {"tutorial.md", "fan-out.md", "sagas.md", "testing.md"}  # all others are run by night


@pytest.mark.timeout(180)  # a page is many processes
@pytest.mark.parametrize(
    "page",
    [page if page.name in DAILY else pytest.param(page, marks=pytest.mark.slow) for page in SHOWN],
    ids=lambda page: str(page.relative_to(DOCS)),
)
def test_a_page_does_what_it_says(page, tmp_path, request):
    """Every file is written and every command run, in order, and prints what the page says."""
    text = page.read_text()
    told = Session(text, tmp_path, environment(tmp_path / "bin"), installs=False).run()
    if request.config.getoption("--rewrite-golden"):
        page.write_text(mended(text, told))
    wrong = [each for each in told if not each.is_right]
    assert not wrong, "\n".join(
        f"$ {each.command}\nexit {each.code}, printed:\n{each.actual}\nand said:\n{each.error}"
        for each in wrong[:1]
    )


@pytest.mark.parametrize("page", SHOWN, ids=lambda page: str(page.relative_to(DOCS)))
def test_nothing_on_a_page_is_left_out(page):
    """A block is a file, a command, or text; what is neither could be wrong for ever."""
    blocks = blocks_of(page.read_text())
    loose = [b for b in blocks if not b.title and b.language not in (*READ_ONLY, "console", "sh")]
    assert [(b.line, b.language) for b in loose] == []
    assert any(b.language == "console" for b in blocks)
    assert all(page.name == "tutorial.md" for b in blocks if b.language == "sh")


@pytest.mark.parametrize("page", SHOWN, ids=lambda page: str(page.relative_to(DOCS)))
def test_the_programs_of_a_page_are_tidy(page, tmp_path):
    """They are formatted, and have no unused name: what readers copy is what we would write."""
    files = [block for block in blocks_of(page.read_text()) if block.title.endswith(".py")]
    for number, block in enumerate(files):
        path = tmp_path / str(number) / block.title
        path.parent.mkdir(parents=True)
        path.write_text(block.text)
    if not files:
        return
    ruff = [sys.executable, "-m", "ruff"]
    for verb in (["check", "--select", "E,F,I,UP,B"], ["format", "--check"]):
        command = [*ruff, *verb, "--isolated", "--line-length", "100", str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


def test_the_runner_of_pages_runs(tmp_path):
    """Files, exits, background jobs, a second terminal, and what is wrong: each is seen."""
    page = (
        '```python title="a.py"\nprint(open("b").read())\n```\n'
        "```console\n$ python a.py 2>/dev/null # exit 1\n$ cat b || echo none\nnone\n"
        "$ (cat /dev/null; echo one) &\none\n```\n"
        "```console\n$ mkfifo p; cat p\n```\n"
        '```console title="two"\n$ echo here > p\n```\n'
        "```console\nhere\n$ echo a; echo b 7 c\na\nb ... c\n$ echo x\ny\n```\n"
    )
    told = Session(page, tmp_path, environment(tmp_path / "bin"), installs=False).run()
    wrong = [each for each in told if not each.is_right]
    assert [(each.command, each.actual) for each in wrong] == [("$ echo x", "x\n")]
    assert mended(page, told) == page.replace("y\n```", "x\n```")
    assert matches("a\n...\nd\n", "a\nb\nc\nd\n")
    assert not matches("a\n...\nd\n", "a\nb\n")
    assert matches("at 12:00:01.250 in 1.5s\n", "at 09:31:00.001   in 20ms\n")
