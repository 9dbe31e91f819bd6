"""How hard the property tests try (HYPOTHESIS_PROFILE), and the golden files."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.golden_kit import Golden, golden_of
from tests.servers import nats as nats
from tests.servers import postgres as postgres

# A shell lets its background jobs ignore Ctrl-C, and processes hand that on: tests send it.
signal.signal(signal.SIGINT, signal.default_int_handler)

SLOW_MACHINES = [HealthCheck.too_slow]

settings.register_profile(
    "dev", max_examples=50, deadline=None, suppress_health_check=SLOW_MACHINES
)
settings.register_profile("ci", settings.get_profile("dev"), max_examples=200, derandomize=True)
settings.register_profile(
    "nightly", settings.get_profile("dev"), max_examples=20_000, print_blob=True
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


# Whole systems at work: what they run through is covered by tests of its parts, and being watched
# line by line would double their time.
BARE = (
    *("sim", "crash", "nodes", "examples"),
    *("cli/test_sim.py", "cli/test_sim_refused.py", "cli/test_new.py", "cli/test_demo.py"),
    *("testing/test_ioa_runs.py", "testing/test_usersim.py", "testing/test_plugin.py"),
    *("test_pages.py", "test_scenarios.py", "test_scenarios_sqlite.py", "test_site.py"),
    *("test_examples_python.py", "test_examples_testing.py", "test_wheel.py"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what runs without coverage."""
    here = Path(__file__).parent
    for item in items:
        name = item.path.relative_to(here).as_posix()
        if name in BARE or name.partition("/")[0] in BARE:
            item.add_marker("bare")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Golden files are a promise: they are rewritten only by hand."""
    parser.addoption("--rewrite-golden", action="store_true", help="write tests/golden anew")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Hold bytes against a golden file."""
    return golden_of(request)
