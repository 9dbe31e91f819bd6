"""`--worker MODULE` with functions that changed meanwhile: as an engine in Python takes them."""

import sys

import pytest

from tests.cli.live_kit import Place

FIRST = """
from pawlflow import flow, step, wait_for

@step(timeout="5s", undo="unbook")
async def book(x): return x

@step
async def unbook(x): print("undone", flush=True)

@step(timeout="5s")
async def greet(who, mood): return f"hi {who}, {mood}"

@flow(timeout="30d", failure_policy="compensate")
def hello(request):
    return greet(request.who, "well", after=wait_for("go", after=book(request.who)))
"""
FEWER = """
from pawlflow import flow, step

@step(timeout="5s")
async def greet(SIGNATURE): return f"hello {who}, {mood}"

@step
async def unbook(x): print("undone", flush=True)

@step
async def other(): return 1

@flow(timeout="30d")
def hello(request): return CALL
"""
CALLS = 'greet(request.who, "well")'
FILE = """\
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: filed}
spec:
  timeout: 1h
  steps: [{name: g, run: greet, timeout: 5s, with: {whom: ann, mood: well}}]
"""


class There(Place):
    """The commands of one terminal in its folder."""

    def ran(self, *words, exits=0):
        done = self.pawl(*words)
        assert done.exit_code == exits, done.output + repr(done.exception)
        return done


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An instance of the first module that waits for its signal."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    made = There(tmp_path)
    (tmp_path / "first.py").write_text(FIRST)
    made.ran("start", "first.py:hello", "--id", "h-1", "--input", '{"who": "ann"}')
    made.ran("wait", "h-1", "--worker", "first.py", "--timeout", "500ms", exits=75)
    assert made.shown("h-1")["steps"]["book"]["state"] == "succeeded"
    made.ran("signal", "h-1", "go")
    return made


def changed(place, signature, call=CALLS):
    """The module as it is now, with this function."""
    text = FEWER.replace("SIGNATURE", signature).replace("CALL", call)
    body = text.replace("{who}", f"{{{signature.split(',')[0]}}}")
    (place.folder / "now.py").write_text(body)


@pytest.mark.req("R69", "R185")
@pytest.mark.parametrize("call", [CALLS, "other()"])
def test_a_parameter_that_was_renamed_gets_its_value(place, call):
    """Whether the flow calls the function still, or only what is in flight does."""
    changed(place, "name, mood", call)
    done = place.ran("wait", "h-1", "--worker", "now.py")
    assert "hello ann, well" in done.stdout
    assert place.state_of("h-1") == "completed"


@pytest.mark.req("R69", "R185")
@pytest.mark.parametrize("signature", ["who, mood, extra", "name, humour, mood"])
def test_a_function_that_needs_more_is_not_the_one_and_nothing_is_undone(place, signature):
    """The instance waits for one that fits: the first module carries it on."""
    changed(place, signature)
    done = place.ran("wait", "h-1", "--worker", "now.py", exits=3)
    assert "the function here needs" in done.stderr
    assert "and the call gives mood, who" in done.stderr
    assert place.state_of("h-1") == "running"
    assert "undone" not in done.stdout
    assert "hi ann, well" in place.ran("wait", "h-1", "--worker", "first.py").stdout


@pytest.mark.req("R185")
def test_functions_of_a_module_without_flows_are_for_files(place):
    """What `with` gives under another name is a mistake in the file, and told as one."""
    (place.folder / "steps.py").write_text(
        "from pawlflow import step\n\n@step\nasync def greet(who, mood): return who\n"
    )
    (place.folder / "filed.yaml").write_text(FILE)
    done = place.ran("run", "filed.yaml", "--worker", "steps.py", "--id", "f-1", exits=1)
    assert "greet needs who; `with` gives mood, whom" in done.stderr
    assert place.shown("f-1")["error"]["code"] == "effect.arguments"
