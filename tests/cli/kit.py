"""A small shop to run the command on."""

from pathlib import Path

from click.testing import CliRunner, Result

from pawlflow.cli.main import main

ROOT = Path(__file__).parent.parent.parent
ORDER = """\
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: order}
spec:
  timeout: 1h
  steps:
    - {name: charge, run: card.charge, timeout: 30s}
    - {name: ship, run: parcel.send, dependsOn: [charge], timeout: 10m}
  output: {done: true}
"""
SCENARIO = """\
apiVersion: pawl.dev/v1
kind: Scenario
metadata: {name: an order is shipped}
spec:
  workflow: ./order.yaml
  stubs:
    ship: [{ok: {}, after: 90s}]
  expect:
    state: completed
    elapsed: 1m30s
"""


def pawl(*arguments: str | Path) -> Result:
    """Run the command in this process."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def changed(shop: Path, before: str, after: str, name: str = "shipped.yaml") -> Path:
    """The scenario (or another file) with one thing changed."""
    path = shop / name
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))
    return path
