"""What the documents say is run: every YAML example is checked or played, every link followed.

Python is quoted from the programs and tests of the examples: tests/test_examples_python.py and
tests/test_examples_testing.py run them; and where a page sends its reader to a function, the
function is there.
"""

import ast
import re
import subprocess
import sys
from pathlib import Path
from textwrap import indent
from typing import NamedTuple

import pytest

from pawlflow.definition.load import load_workflows

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("bench/*.md")])
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
POINTER = re.compile(r"`([\w.]+)` in\s+\[[^\]]*\]\(([^)\s]+\.py)\)")
PROGRAMS = [
    path
    for name in ("python", "testing", "nats", "ores")
    for path in ROOT.glob(f"examples/{name}/**/*.py")
]
PYTHON = {path: path.read_text() for path in sorted(PROGRAMS)}


class Example(NamedTuple):
    """One fenced block that is a whole document of ours."""

    page: str
    line: int
    kind: str
    file: str
    text: str


def examples(page: str, text: str) -> list[Example]:
    """Find the workflows and scenarios of a page; `yaml no-check` marks one as a mere sketch."""
    found = []
    for fence in FENCE.finditer(text):
        language, title = re.fullmatch(r"(.*?)(?: title=\"(.*)\")?", fence[1].strip()).groups()
        kind = re.search(r"^kind: (Workflow|Scenario)\b", fence[2], re.MULTILINE)
        name = re.search(r"^metadata: \{name: ([\w-]+)|^ +name: ([\w-]+)", fence[2], re.MULTILINE)
        if language == "yaml" and kind and name:
            line = text.count("\n", 0, fence.start()) + 1
            file = title or f"{name[1] or name[2]}.yaml"
            found.append(Example(page, line, kind[1], file, fence[2]))
    return found


def broken_links(page: Path, text: str) -> list[str]:
    """Give the relative links of a page that lead nowhere, headings included."""
    broken = []
    for target in LINK.findall(FENCE.sub("", text)):
        path, _, heading = target.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        place = (page.parent / path) if path else page
        if not place.exists() or (heading and heading not in headings(place.read_text())):
            broken.append(target)
    return broken


def headings(text: str) -> set[str]:
    """Give the anchors of a page's headings."""
    titles = re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def lost_pointers(page: Path, text: str) -> list[str]:
    """Give the functions and classes that a page says are in a file, and are not."""
    found = POINTER.findall(FENCE.sub("", text))
    return [name for name, target in found if name not in defined_in(page.parent / target)]


def defined_in(path: Path) -> set[str]:
    """Give what a file defines at its top, and the methods of its classes as `Class.method`."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    tops = [node for node in ast.parse(path.read_text()).body if isinstance(node, kinds)]
    inner = [(top, node) for top in tops if isinstance(top, ast.ClassDef) for node in top.body]
    methods = {f"{top.name}.{node.name}" for top, node in inner if isinstance(node, kinds)}
    return methods | {top.name for top in tops}


def unquoted(text: str, files: list[str]) -> list[str]:
    """Give the python blocks of a page that are no piece of a file, at any indentation."""
    blocks = [fence[2] for fence in FENCE.finditer(text) if fence[1].strip() == "python"]
    spaces = [" " * width for width in (0, 4, 8, 12)]
    return [
        block
        for block in blocks
        if not any(f"\n{indent(block, space)}" in f"\n{file}" for space in spaces for file in files)
    ]


def pawl(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the command as a user does."""
    command = [sys.executable, "-c", "from pawlflow.cli.main import main; main()", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


ALL = [found for page in PAGES for found in examples(str(page.relative_to(ROOT)), page.read_text())]


@pytest.mark.parametrize("example", ALL, ids=lambda e: f"{e.page}:{e.line}")
def test_examples_hold(example, tmp_path):
    """A workflow is read without a finding; a scenario passes beside its page's workflows."""
    if example.kind == "Workflow":
        assert load_workflows(example.text, example.page)[1] == []
        return
    for other in ALL:
        if other.page == example.page and other.kind == "Workflow":
            (tmp_path / other.file).write_text(other.text)
    (tmp_path / "scenario.yaml").write_text(example.text)
    done = pawl("test", "scenario.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_readme_shows_the_example_files():
    """What the README prints is what `make demo` runs."""
    shown = [found.text for found in ALL if found.page == "README.md"]
    files = [ROOT / "examples" / name for name in ("order.yaml", "order.scenario.yaml")]
    assert shown == [file.read_text() for file in files]


def test_the_readme_quotes_a_whole_program():
    """The Python on the front page can be copied and run as it stands, below its first line."""
    text = (ROOT / "README.md").read_text()
    blocks = [fence[2] for fence in FENCE.finditer(text) if fence[1].strip() == "python"]
    _, _, program = PYTHON[ROOT / "examples" / "python" / "order.py"].partition("\n\n")
    assert blocks == [program]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_is_quoted_from_files_that_run(page):
    """A python block is a piece of a file in the examples, word for word."""
    assert unquoted(page.read_text(), list(PYTHON.values())) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_functions_are_where_a_page_says(page):
    """A name with a file beside it is defined there."""
    assert lost_pointers(page, page.read_text()) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    """A relative link names a file or folder that exists, and a heading that it has."""
    assert broken_links(page, page.read_text()) == []


def test_the_collector_collects(tmp_path):
    """Sketches and other blocks are left alone; a broken link and a lost heading are named."""
    workflow = "```yaml\nkind: Workflow\nmetadata: {name: a-b}\n```\n"
    sketch = workflow.replace("yaml", "yaml no-check")
    scenario = "\n```yaml\nkind: Scenario\nmetadata:\n  name: c\n```\n"
    found = examples("p", workflow + sketch + scenario + "```yaml\nsteps: []\n```\n")
    assert [(e.line, e.kind, e.file) for e in found] == [
        (1, "Workflow", "a-b.yaml"),
        (10, "Scenario", "c.yaml"),
    ]
    titled = workflow.replace("yaml", 'yaml title="x.yaml"')
    assert [(e.kind, e.file) for e in examples("p", titled)] == [("Workflow", "x.yaml")]

    page = tmp_path / "page.md"
    page.write_text(
        "# A title, here\n[a](page.md#a-title-here) [b](no.md) [c](#no) [d](https://x.y)\n"
    )
    assert broken_links(page, page.read_text()) == ["no.md", "#no"]


def test_the_collector_of_python_collects(tmp_path):
    """A quote is found at any indentation; a changed one, and a lost function, are named."""
    file = "def f():\n    if x:\n\n        return 1\n\n\nclass C:\n    def m(self): ...\n"
    good = "```python\nif x:\n\n    return 1\n```\n"
    assert unquoted(good + "```sh\nls\n```\n", [file]) == []
    assert unquoted(good.replace("1", "2"), [file]) == ["if x:\n\n    return 2\n"]

    (tmp_path / "a.py").write_text(file)
    page = tmp_path / "page.md"
    text = "`f` in [a](a.py), `C.m` in\n[a](a.py), `g` in [a](a.py), `C.n` in [a](a.py)\n"
    assert lost_pointers(page, text) == ["g", "C.n"]
