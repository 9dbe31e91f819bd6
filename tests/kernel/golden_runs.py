"""Golden journals: what is asked of every one of them."""

from functools import partial

from pawlflow.testing.journals import tell_file, verify_file
from pawlflow.testing.runner import run_scenario
from tests.golden_kit import FOLDER, Golden
from tests.kernel.plain_host import PlainHost
from tests.scenarios import scenario_named


def check_bytes(name: str) -> bytes:
    """Chains, roots and addresses hold, and every turn is decided again to the same bytes."""
    data = (FOLDER / "journals" / f"{name}.journal").read_bytes()
    verdict = verify_file(data)

    assert verdict.difference is None
    assert verdict.turns > 0
    return data


def check_run(name: str, golden: Golden, rules: int) -> None:
    """Playing the scenario by these rules gives the journal, and what it tells."""
    data = run_scenario(scenario_named(name), host=partial(PlainHost, rules=rules)).journal

    golden(f"journals/{name}.journal", data)
    golden(f"journals/{name}.txt", ("\n".join(tell_file(data)) + "\n").encode())
