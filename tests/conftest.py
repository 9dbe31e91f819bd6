"""How hard the property tests try; HYPOTHESIS_PROFILE chooses, `dev` is the default."""

import os

from hypothesis import HealthCheck, settings

SLOW_MACHINES = [HealthCheck.too_slow]

settings.register_profile(
    "dev", max_examples=50, deadline=None, suppress_health_check=SLOW_MACHINES
)
settings.register_profile("ci", settings.get_profile("dev"), max_examples=200, derandomize=True)
settings.register_profile(
    "nightly", settings.get_profile("dev"), max_examples=20_000, print_blob=True
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))
