"""The canonical form: one definition, one hash, whatever the file looks like."""

from pathlib import Path

import msgspec
import pytest
from check_kit import HEAD, loaded

from pawlflow.definition.canonical import (
    definition_bytes,
    definition_from_bytes,
    definition_hash,
    written,
)
from pawlflow.definition.load import load_workflows
from pawlflow.definition.shape import Step, Workflow
from pawlflow.model.codec import CodecError, decode, encode

BLOCK = """\
# the same workflow, written at length
kind: Workflow
apiVersion: "pawl.dev/v1"
metadata:
  version: 1
  name: w
spec:
  steps:
    - run: e.x            # an effect
      name: a
      with:
        b: 2
        a: '${ input.n }'
      timeout: 1h
      mutates: true
      retryPolicy: {maxRetries: 1, backoff: exponential, initialDelay: 1000ms, maxDelay: 1m}
      limit: 100
      dependsOn: []
  timeout: 90m
  failurePolicy: abort
  search: {}
"""
FLOW = HEAD + (
    "spec: {timeout: 1h30m, steps: [{name: a, run: e.x, timeout: 60m, "
    "retryPolicy: {maxRetries: 1}, with: {a: '${ input.n }', b: 2}}]}"
)


@pytest.mark.req("R61")
def test_layout_does_not_reach_the_hash():
    """Key order, comments, quotes, block or flow style, defaults written out: all the same."""
    assert definition_hash(loaded(BLOCK)) == definition_hash(loaded(FLOW))


@pytest.mark.req("R61")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("b: 2", "b: 3"),
        ("b: 2", "b: 2.0"),
        ("60m", "61m"),
        ("name: a,", "name: b,"),
        ("maxRetries: 1", "maxRetries: 2"),
        ("name: w", "name: w, version: 2"),
        ("name: w", "name: w, labels: {a: b}"),
    ],
)
def test_what_a_definition_says_does(old, new):
    """Any difference in meaning, types included, is another definition."""
    assert definition_hash(loaded(FLOW.replace(old, new))) != definition_hash(loaded(FLOW))


def test_bytes_give_the_workflow_back():
    """Nothing is lost on the way, and defaults are not written."""
    flow = loaded(FLOW)
    data = definition_bytes(flow)
    assert definition_from_bytes(data) == flow
    assert "version" not in decode(data)
    with pytest.raises(CodecError):
        definition_from_bytes(data + b"\x00")


def test_the_hash_is_what_it_always_was():
    """Instances are pinned to it: this value can never change."""
    flow = Workflow(name="w", steps=(Step(name="a", kind="run", target="e.x"),))
    assert definition_bytes(flow).hex() == (
        "a2646e616d65617765737465707381a3646b696e646372756e646e616d6561616674617267657463652e78"
    )
    assert definition_hash(flow).hex() == (
        "ae9172f26c6437c9273410d3ce351643cc16fbce52aa377a10cea1f14f211dc1"
    )


HOME = Path(__file__).parent.parent.parent / "examples"
EXAMPLES = [HOME / "order.yaml", *sorted([*HOME.glob("workflows/*"), *HOME.glob("python/*.yaml")])]


@pytest.mark.req("R61")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_one_step_after_another_gives_the_bytes_of_the_whole(path):
    """How it is written is nobody's business: the bytes are those of all plain values at once."""
    flows, _ = load_workflows(path.read_bytes(), path.name)

    assert flows
    for flow in flows:
        assert definition_bytes(flow) == encode(written(flow))


@pytest.mark.parametrize("steps", [0, 1, 23, 24, 256, 70_000])
def test_any_number_of_steps_is_written_like_the_whole(steps):
    """Also where the head of the list grows, and beside a field that is called like it."""
    step = Step(name="a", kind="run", target="e.x")
    flow = Workflow(name="w", steps=(step,) * steps, metadata={"annotations": {"steps": []}})

    assert definition_bytes(flow) == encode(written(flow))


def nested(depth: int) -> list:
    """Lists inside each other."""
    value: list = []
    for _ in range(depth - 1):
        value = [value]
    return value


@pytest.mark.parametrize("value", [nested(60), nested(61), nested(62), object(), "\ud800", 1 << 64])
@pytest.mark.parametrize("where", ["metadata", "params"])
def test_what_has_no_bytes_is_refused_as_the_whole_would_be(value, where):
    """As deep as the whole may be, and where not, the error names the same place."""
    step = Step(name="a", kind="run", target="e.x")
    deep = Step(name="b", kind="run", target="e.x", params={"p": value})
    flow = Workflow(name="w", steps=(step, deep if where == "params" else step))
    flow = flow if where == "params" else msgspec.structs.replace(flow, metadata={"k": value})

    assert outcome(definition_bytes, flow) == outcome(lambda each: encode(written(each)), flow)


def outcome(write, flow: Workflow) -> bytes | str:
    """The bytes, or the words of the error."""
    try:
        return write(flow)
    except CodecError as error:
        return f"{error.code} {error}"
