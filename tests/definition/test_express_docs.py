"""The page on expressions: its examples give what it says, and no error code is missing."""

import json
import re
from pathlib import Path

import pytest
from express_kit import calculate

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "expressions.md").read_text()
SCOPE = json.loads(re.search(r"```json\n(.*?)```", PAGE, re.DOTALL)[1])
EXAMPLES = re.findall(
    r"^(.+?) +=> (.+)$", "".join(re.findall(r"```cel\n(.*?)```", PAGE, re.DOTALL)), re.MULTILINE
)


@pytest.mark.req("R67")
@pytest.mark.parametrize(("source", "result"), EXAMPLES)
def test_examples_give_what_the_page_says(source, result):
    """A result is JSON, or the code of an error."""
    wanted = result if result.startswith("expression.") else json.loads(result)
    assert calculate(source, **SCOPE) == wanted


def test_every_error_code_is_on_the_page():
    """Each code that the package can raise has its row in the table."""
    folder = ROOT / "src" / "pawlflow" / "definition" / "express"
    raised = {code for path in folder.glob("*.py") for code in codes(path.read_text())}
    assert raised == set(re.findall(r"^\| `(expression\.\w+)` \|", PAGE, re.MULTILINE))


def codes(text):
    """The error codes in a text, as whole strings."""
    return re.findall(r'"(expression\.\w+)"', text)
