"""What the tests of definitions share: texts with a mark at the place that is wrong."""

from pathlib import Path

import pytest

from pawlflow.definition.load import load_workflows

MARK = "§"  # stands before the character a finding must point at
HEAD = "apiVersion: pawl.dev/v1\nkind: Workflow\nmetadata: {name: w}\n"
A, B, C = (f"{{name: {name}, run: e.{name}, timeout: 1m}}" for name in "abc")


def spec(body: str) -> str:
    """A workflow whose spec is `body`, one field per line."""
    return HEAD + "spec:\n  timeout: 1h\n" + "".join(f"  {line}\n" for line in body.split("\n"))


def steps(*lines: str) -> str:
    """A workflow of these steps, each in braces on a line of its own."""
    return spec("\n".join(["steps:", *(f"- {line}" for line in lines)]))


def step(fields: str) -> str:
    """A workflow of one step with these fields beside its name and timeout."""
    return steps(f"{{name: a, timeout: 1m, {fields}}}")


def cases(path: Path, wrap):
    """The cases of a table of texts; its first lines say how it is written."""
    found = []
    for number, case in enumerate(path.read_text().split("\n>>> ")[1:]):
        header, _, body = case.partition("\n")
        how, code, name, *hint = (part.strip() for part in header.split("|"))
        text = body.partition("\n####")[0].rstrip("\n")
        row = (wrap(text) if how == "spec" else text, code, name, "".join(hint))
        found.append(pytest.param(*row, id=f"{number}-{code}"))
    return found


def marked(text: str) -> tuple[str, int, int]:
    """The text without its mark, and the line and column of the character behind it."""
    before, found, after = text.partition(MARK)
    assert found, "the row has no mark"
    return before + after, before.count("\n") + 1, len(before) - before.rfind("\n")


def all_marked(text: str) -> tuple[str, list[tuple[int, int]]]:
    """The text without its marks, and the line and column behind each of them."""
    found = []
    while MARK in text:
        text, line, column = marked(text)
        found.append((line, column))
    return text, found


def errors(text: str | bytes):
    """The errors of a file."""
    return [found for found in load_workflows(text, "f.yaml")[1] if found.severity == "error"]


def warnings(text: str):
    """The warnings of a file without errors."""
    workflows, findings = load_workflows(text, "f.yaml")
    assert workflows, findings
    return findings


def loaded(text: str):
    """The one workflow of a file without errors."""
    workflows, findings = load_workflows(text, "f.yaml")
    assert len(workflows) == 1, findings
    return workflows[0]


def assert_one(findings, text: str, code: str, name: str, hint: str) -> None:
    """Exactly one finding, at the mark, with its code, what it names and the way out."""
    _, line, column = marked(text)
    assert [(f.file, f.line, f.column, f.code) for f in findings] == [
        ("f.yaml", line, column, code)
    ]
    assert name in findings[0].message
    assert hint in findings[0].hint
    assert findings[0].hint, "no way out"
