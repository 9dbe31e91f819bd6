"""How hard the property tests try (HYPOTHESIS_PROFILE), and the golden files."""

import os

import pytest
from hypothesis import HealthCheck, settings

from tests.golden_kit import Golden, golden_of
from tests.servers import nats as nats
from tests.servers import postgres as postgres

SLOW_MACHINES = [HealthCheck.too_slow]

settings.register_profile(
    "dev", max_examples=50, deadline=None, suppress_health_check=SLOW_MACHINES
)
settings.register_profile("ci", settings.get_profile("dev"), max_examples=200, derandomize=True)
settings.register_profile(
    "nightly", settings.get_profile("dev"), max_examples=20_000, print_blob=True
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Golden files are a promise: they are rewritten only by hand."""
    parser.addoption("--rewrite-golden", action="store_true", help="write tests/golden anew")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Hold bytes against a golden file."""
    return golden_of(request)
