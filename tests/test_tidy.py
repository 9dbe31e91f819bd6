"""The house, counted: the walk, the core, sizes, import knots, strays and the glossary."""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SRC = ROOT / "src" / "pawlflow"

WALK_MAX = 1_800
CORE_MAX = 6_000
SYSTEM_CELL_MAX = 250
FILE_MAX = 400
FUNCTION_MAX = 60

# One command's way through the rooms, in order. A file that is not there yet is skipped by name.
WALK = (
    "api/routes.py",
    "engine/admission.py",
    "engine/shard.py",
    "engine/stepping.py",
    "kernel/step.py",
    "kernel/decide.py",
    "kernel/draft.py",
    "kernel/receipts.py",
    "kernel/forward.py",
    "kernel/evolve.py",
    "kernel/evolve_steps.py",
    "store/port.py",
    "effects/runner.py",
    "projections/reading.py",
)
CORE = ("model", "kernel", "engine", "store/port.py", "store/memory.py")
NOT_CORE = (
    *("model/types.py", "model/system.py", "model/batches.py", "model/timed.py"),
    *("model/checkpoints.py", "model/policies.py"),
    *("kernel/machine.py", "kernel/system", "engine/system"),
)
ENTRIES = (
    *("pawlflow", "pawlflow.cli.main", "pawlflow.testing"),
    *("pawlflow.testing.conformance", "pawlflow.testing.sim.__main__"),  # for users to run
    "pawlflow.testing.plugin",
)
# Machines (spec 002) are decided by the kernel; the shard that will run them is not here yet.
NOT_WIRED_YET = {
    *("pawlflow.kernel.machine", "pawlflow.model.types"),
}
OUTSIDE = {
    *("asyncio", "time", "datetime", "random", "secrets", "uuid", "os", "socket", "threading"),
    *("logging", "sqlite3", "subprocess", "pathlib", "tempfile", "urllib", "http", "io"),
}
THIRD_PARTIES = {
    "model": {"msgspec", "cbor2"},
    "definition": {"msgspec", "yaml", "jsonschema_rs"},  # is a schema a schema?
    "kernel": {"msgspec"},
}
WORDS = re.findall(
    r"\w+",
    "address admission attempt cell decide definition disposition effect event evolve failure "
    "frame gate input instance intent item journal lease lens mailbox payload plan projection "
    "receipt replay review round rules scenario send shard signal stamp step store turn undo "
    "view walk",
)

CODELESS = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}


@pytest.mark.parametrize("name", WALK)
def test_the_walk_has_its_files(name):
    """Every stop of the walk is a file; the ones still to come are listed by the skip."""
    if not (SRC / name).exists():
        pytest.skip(f"the walk has no {name} yet")


def test_the_walk_is_short():
    """A newcomer reads one command's whole way in an afternoon."""
    sizes = {name: code_lines(SRC / name) for name in WALK if (SRC / name).exists()}
    assert sum(sizes.values()) <= WALK_MAX, sizes


def test_the_core_is_small():
    """Model, kernel, engine and the reference store together stay readable."""
    sizes = {str(path.relative_to(SRC)): code_lines(path) for path in core_files()}
    assert sum(sizes.values()) <= CORE_MAX, sizes


def test_system_cells_are_small():
    """Each system cell is a machine that fits on a few pages."""
    sizes = {path.name: code_lines(path) for path in python_files(SRC / "kernel" / "system")}
    assert all(size <= SYSTEM_CELL_MAX for size in sizes.values()), sizes


def test_files_and_functions_are_short():
    """A file is one room, and a function does one thing."""
    files = [*python_files(SRC), *python_files(ROOT / "tests"), *python_files(ROOT / "bench")]
    assert not list(too_long(files))


def test_nothing_is_left_to_fix():
    """A later wish belongs in docs/decisions.md or in an issue."""
    folders = [ROOT / name for name in ("src", "tests", "bench", "docs", "examples")]
    assert not list(marked([ROOT / "Makefile", *folders]))


def test_imports_make_no_knot():
    """No module imports itself by way of others, not even lazily or for types."""
    assert knots(import_graph(SRC.parent)) == set()


def test_every_module_is_reached():
    """What the command, the package or the test kit cannot reach is retired and goes."""
    graph = import_graph(SRC.parent)
    assert set(graph) - reached(graph, ENTRIES) == NOT_WIRED_YET


@pytest.mark.req("R14")
@pytest.mark.parametrize(
    "room", ["model", "definition", "kernel", "projections/journal_file.py", "requests.py"]
)
def test_inner_rooms_see_no_clock_no_chance_and_no_world(room):
    """Time and chance are arguments; nothing inside reads, writes, waits or logs."""
    for path in python_files(SRC / room):
        assert not OUTSIDE & packages(path), path


@pytest.mark.parametrize("room", THIRD_PARTIES)
def test_inner_rooms_know_few_third_parties(room):
    """Code that decides is code we wrote: the inner rooms import what is listed, no more."""
    used = {name for path in python_files(SRC / room) for name in third_parties(path)}
    assert used <= THIRD_PARTIES[room]


def test_the_glossary_is_complete():
    """One word per idea: every house word has its entry, in order, and names a file that exists."""
    entries = glossary((ROOT / "docs" / "glossary.md").read_text())
    assert set(WORDS) - set(entries) == set()
    assert list(entries) == sorted(entries)
    places = [place for found in entries.values() for place in found]
    assert [place for place in places if not (SRC / place).exists()] == []


def test_counters_count(tmp_path):
    """Blank lines, comments and docstrings are no code; strings that are values are."""
    sample = plant(
        tmp_path / "sample.py",
        '"""Doc."""\n\n# why\nclass A:\n    """Doc\n    on two lines."""\n\n'
        '    text = """two\nlines"""\n\n\ndef f():\n    return [\n        1,\n    ]\n',
    )
    assert code_lines(sample) == 1 + 2 + 4
    assert code_lines(plant(tmp_path / "empty.py", "")) == 0


def test_long_files_and_functions_are_found(tmp_path):
    """One line more than allowed is named, with its place."""
    body = "def short():\n" + "    pass\n" * (FUNCTION_MAX - 1)
    fine = plant(tmp_path / "fine.py", body + "\n" * (FILE_MAX - FUNCTION_MAX))
    long = plant(tmp_path / "long.py", body + "    pass\n" + "\n" * FILE_MAX)
    assert list(too_long([fine])) == []
    assert [line.split(": ", 1)[1] for line in too_long([long])] == [
        f"{FILE_MAX + FUNCTION_MAX + 1} lines",
        f"short has {FUNCTION_MAX + 1} lines",
    ]


def test_marks_are_found(tmp_path):
    """The mark is found in code and prose, in any folder below."""
    plant(tmp_path / "a" / "b.py", "# FIX" + "ME: later\n")
    plant(tmp_path / "c.md", "fine\n")
    assert list(marked([tmp_path])) == [f"{tmp_path / 'a' / 'b.py'}:1"]


def test_knots_and_strays_are_found(tmp_path):
    """A cycle is named without its bystanders; a module nobody imports is a stray."""
    package = tmp_path / "pawlflow"
    plant(package / "__init__.py", "from pawlflow import a\nLAZY = 'pawlflow.lazy:main'\n")
    plant(package / "a.py", "from pawlflow.b import x\n")
    plant(package / "b.py", "def x():\n    import pawlflow.c\n")
    plant(package / "c.py", "from pawlflow import b, d\n")
    plant(package / "d.py", "")
    plant(package / "lazy.py", "")
    plant(package / "stray.py", "from pawlflow import d\n")
    graph = import_graph(tmp_path)
    assert knots(graph) == {"pawlflow.b", "pawlflow.c"}
    assert set(graph) - reached(graph, ["pawlflow"]) == {"pawlflow.stray"}


def test_third_parties_are_found(tmp_path):
    """Neither the standard library nor our own rooms are third parties."""
    text = (
        "import os.path\nimport yaml.nodes\nfrom pawlflow.model import ids\nfrom rich import box\n"
    )
    assert third_parties(plant(tmp_path / "a.py", text)) == {"yaml", "rich"}


def test_glossary_entries_are_read():
    """A row is a word, what it means and where it lives; places stand in code marks."""
    text = "| word | means | in |\n|---|---|---|\n| cell | a | `x.py` |\n| lease | b | later |\n"
    assert glossary(text) == {"cell": ["x.py"], "lease": []}


def code_lines(path: Path) -> int:
    """Count the lines that hold code: no blanks, no comments, no docstrings."""
    text = path.read_text()
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in CODELESS:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            lines.difference_update(docstring_lines(node))
    return len(lines)


def docstring_lines(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
    """Give the lines of a node's docstring, none if it has none."""
    if ast.get_docstring(node, clean=False) is None:
        return range(0)
    return range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)


def python_files(folder: Path) -> list[Path]:
    """List the Python files below a folder (or the file itself), in order."""
    return [folder] if folder.is_file() else sorted(folder.rglob("*.py"))


def core_files() -> list[Path]:
    """List the files that the core's budget counts."""
    files = [path for part in CORE for path in python_files(SRC / part)]
    return [path for path in files if not any(path.is_relative_to(SRC / x) for x in NOT_CORE)]


def too_long(paths: Iterable[Path]) -> Iterator[str]:
    """Name every file and function above its limit."""
    for path in paths:
        text = path.read_text()
        if (length := len(text.splitlines())) > FILE_MAX:
            yield f"{path}: {length} lines"
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or 0) - node.lineno + 1
                if length > FUNCTION_MAX:
                    yield f"{path}:{node.lineno}: {node.name} has {length} lines"


def marked(places: Iterable[Path]) -> Iterator[str]:
    """Name every line of a text file that carries the mark of unfinished work."""
    files = [
        file for place in places for file in ([place] if place.is_file() else place.rglob("*"))
    ]
    for path in sorted(files):
        if path.suffix in {".py", ".md", ".yaml", ".sh", ""} and path.is_file():
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if "FIX" + "ME" in line:
                    yield f"{path}:{number}"


def import_graph(top: Path) -> dict[str, set[str]]:
    """Map each module below `top` to the modules of ours that it imports or names in a string."""
    files = {module_name(path, top): path for path in python_files(top / "pawlflow")}
    return {
        name: {edge for found in imported(path) if (edge := nearest(found, files))} - {name}
        for name, path in files.items()
    }


def module_name(path: Path, top: Path) -> str:
    """Turn a path into the dotted name that imports it."""
    parts = path.relative_to(top).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path) -> Iterator[str]:
    """Give every dotted name a file imports; a string `module:function` is a lazy import."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import():
                yield from (alias.name for alias in node.names)
            case ast.ImportFrom():
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
            case ast.Constant(value=str(text)) if re.fullmatch(r"pawlflow(\.\w+)+(:\w+)?", text):
                yield text.partition(":")[0]


def nearest(name: str, modules: Iterable[str]) -> str:
    """Find the module a dotted name leads to: itself, or the one that holds it."""
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name


def knots(graph: dict[str, set[str]]) -> set[str]:
    """Give the modules that lie on a cycle: peel off leaves, then those nobody imports."""
    left = set(graph)
    while True:
        used = {edge for name in left for edge in graph[name]}
        peeled = {name for name in left if not graph[name] & left or name not in used}
        if not peeled:
            return left
        left -= peeled


def reached(graph: dict[str, set[str]], entries: Iterable[str]) -> set[str]:
    """Follow imports from the entries; importing a module imports its packages too."""
    seen: set[str] = set()
    todo = list(entries)
    while todo:
        name = todo.pop()
        if name in graph and name not in seen:
            seen.add(name)
            todo += [*graph[name], name.rpartition(".")[0]]
    return seen


def third_parties(path: Path) -> set[str]:
    """Give the top-level packages a file imports that are neither ours nor Python's."""
    return packages(path) - sys.stdlib_module_names - {"pawlflow"}


def packages(path: Path) -> set[str]:
    """Give the top-level packages a file imports."""
    nodes = [
        n
        for n in ast.walk(ast.parse(path.read_text()))
        if isinstance(n, ast.Import | ast.ImportFrom)
    ]
    names = [a.name for n in nodes if isinstance(n, ast.Import) for a in n.names]
    names += [n.module or "" for n in nodes if isinstance(n, ast.ImportFrom)]
    return {name.partition(".")[0] for name in names}


def glossary(text: str) -> dict[str, list[str]]:
    """Read the glossary's rows: the word, and the places in code marks of the last column."""
    rows = re.findall(r"^\| ([a-z]+) \|.*\|([^|]*)\|$", text, re.MULTILINE)
    return {word: re.findall(r"`([^`]+)`", place) for word, place in rows if word != "word"}


def plant(path: Path, text: str) -> Path:
    """Write a sample file, with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path
