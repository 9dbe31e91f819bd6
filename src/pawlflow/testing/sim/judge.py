"""The judge: answers what steps ask, by the policies that are durable at that moment.

It rules as chance has it, and always the same about one call under one set of policies: what is
watched is what the engine makes of a ruling, not Cedar.
"""

from hashlib import sha256
from typing import Any, Final

from pawlflow.kernel.system.policies import Policies
from pawlflow.model.ids import NO_ITEM, Tenant
from pawlflow.model.intents import Call
from pawlflow.model.payload import Payload
from pawlflow.model.policies import policies_cell
from pawlflow.testing.sim.chance import chance
from pawlflow.testing.sim.shadows import Shadows

ALLOWED: Final = 0.5
ASKED: Final = 0.9  # beyond that it is denied
GATES: Final = (
    [None, 1, None, False, "fail", "escalate"],
    ["Boss", 1, 25_000, True, "cancel", "fail"],
    ["Boss", 2, None, False, "fail", "escalate"],
)


class Judge:
    """Knows the journal, and nothing else."""

    def __init__(self, seed: int, shadows: Shadows) -> None:
        self.seed = seed
        self.shadows = shadows

    def in_force(self, tenant: Tenant) -> str:
        """The policies of a tenant, by name and version."""
        cell = policies_cell(tenant)
        shadow = self.shadows.addresses.get((cell.tenant, cell.key))
        state = None if shadow is None else shadow.cell.state
        found = state.in_force() if isinstance(state, Policies) else []
        return ", ".join(f"{each.name} v{each.version}" for each in found)

    def rule(self, call: Call) -> Payload:
        """The answer to a question; where no policy is in force, everything is allowed."""
        tenant = call.cell.tenant
        force = self.in_force(tenant)
        what = call.step if call.item == NO_ITEM else f"{call.step}[{call.item}]"
        site = f"ruling:{force}:{tenant}/{call.cell.key}.{what}.{call.round}"
        drawn = chance(self.seed, site, 0) if force else 0.0
        decision = "allow" if drawn < ALLOWED else "approval" if drawn < ASKED else "deny"
        said: dict[str, Any] = {
            "decision": decision,
            "code": "policy.denied" if decision == "deny" else "",
            "reason": f"as chance has it under {force or 'nothing'}",
            "hash": sha256(force.encode()).digest() if force else b"",
        }
        if decision == "approval":
            said["gate"] = GATES[int(chance(self.seed, site, 1) * len(GATES))]
            said["show"] = {"under": force}
        return Payload.of(said, tenant)
