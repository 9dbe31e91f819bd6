"""The collector of a process that serves."""

import subprocess
import sys

CODE = """
import gc
from pawlflow.collector import collect_seldom
collect_seldom()
print(*gc.get_threshold(), gc.get_freeze_count() > 1_000, gc.isenabled())
"""


def test_it_looks_seldom_and_not_at_what_was_there():
    """It stays on: cycles of users' functions go, too, only later."""
    ran = subprocess.run([sys.executable, "-c", CODE], check=True, capture_output=True, text=True)
    assert ran.stdout.split() == ["50000", "20", "50", "True", "True"]
