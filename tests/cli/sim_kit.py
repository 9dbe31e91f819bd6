"""Workflows with a mistake each, and one without, to be run by `pawl sim` as a process."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
EXAMPLE = ROOT / "examples" / "sim"
PAWL = [sys.executable, "-c", "from pawlflow.cli.main import entry; entry()"]
HEAD = "apiVersion: pawl.dev/v1\nkind: Workflow\nmetadata: {name: shop}\nspec:\n  timeout: 2d\n"

TWICE = """\
  steps:
    - {name: charge, run: card.charge, timeout: 10s, onTimeout: retry, retryPolicy: {maxRetries: 3}}
    - {name: ship, run: parcel.send, dependsOn: [charge], timeout: 1m}
"""
NO_UNDO = """\
  failurePolicy: compensate
  steps:
    - {name: reserve, run: stock.reserve, timeout: 30s}
    - {name: charge, run: card.charge, dependsOn: [reserve], timeout: 30s, undo: {run: card.refund}}
"""
PASSED_BY = """\
  input: {type: object, required: [n], properties: {n: {type: integer, minimum: 0, maximum: 500}}}
  steps:
    - {name: gate, approval: {role: Boss, expires: 24h}, when: input.n > 100}
    - {name: pay, run: bank.pay, dependsOn: [gate], timeout: 30s}
"""
LATE_CANCEL = """\
  steps:
    - {name: charge, run: card.charge, timeout: 30s, onFailure: compensate, undo: {run: card.back}}
    - {name: ship, run: parcel.send, dependsOn: [charge], timeout: 30s, onFailure: compensate}
"""
HANGS = """\
  steps:
    - {name: charge, run: card.charge}
"""
RIGHT = """\
  failurePolicy: compensate
  steps:
    - name: charge
      run: card.charge
      timeout: 30s
      retryPolicy: {maxRetries: 3}
      undoOnFailure: true
      undo: {run: card.refund, timeout: 1d, retryPolicy: {maxRetries: 5}}
    - {name: gate, approval: {role: Boss, expires: 1h, onExpire: fail}, dependsOn: [charge]}
    - {name: ship, run: parcel.send, dependsOn: [gate], timeout: 30s}
"""
ONCE = "executed('charge') <= 1"
BACK = "state == 'completed' || executed('charge') <= undone('charge')"


def sim(folder: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a process."""
    return subprocess.run(
        [*PAWL, "sim", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **env},
    )


def written(folder: Path, steps: str, name: str = "shop.yaml") -> Path:
    """A workflow in a file."""
    path = folder / name
    path.write_text(HEAD + steps)
    return path
