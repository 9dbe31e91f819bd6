"""Faults: what may go wrong, how often, and the tape of what did.

A seed switches each kind on or off and draws its rate (swarm testing: many seeds with few kinds of
fault find more than few seeds with all of them). A fault that fires is known by its site and its
number there; a run can be repeated with only some of them allowed.
"""

from typing import Final

import msgspec

from pawlflow.testing.sim.chance import Dice, chance

# Kind -> rates it may have. Kinds of `each` message, call or commit first, then kinds per second.
RATES: Final[dict[str, tuple[float, ...]]] = {
    "bus.drop": (0.05, 0.1, 0.25),
    "bus.double": (0.1, 0.3, 1.0),
    "bus.delay": (0.05, 0.2),
    "exec.transient": (0.1, 0.4),
    "exec.terminal": (0.05, 0.2),
    "exec.validation": (0.1, 0.3),
    "exec.invalid": (0.1, 0.3),
    "exec.slow": (0.05, 0.2),
    "exec.crash_before": (0.05, 0.2),
    "exec.crash_after": (0.05, 0.2),
    "exec.lie": (0.05, 0.2),
    "exec.deaf": (0.2, 0.6),
    "store.failed": (0.003, 0.01),
    "store.applied": (0.01, 0.05),
    "store.lost": (0.01, 0.05),
    "store.late": (0.01, 0.03),
    "store.slow": (0.02, 0.1),
    "store.torn": (0.003, 0.01),
    "store.rot": (0.05, 0.3),
    "store.lands": (0.3,),
    "store.unread": (0.001, 0.003),
    "clock.back": (0.002, 0.01),
    "post.failed": (0.05, 0.2),
    "post.unknown": (0.05, 0.2),
    "post.garbage": (0.05, 0.2),
    "poke.lost": (0.2, 1.0),
    "crash.before": (0.003, 0.01),
    "crash.after": (0.003, 0.01),
    "crash.publish": (0.01, 0.03),
    "crash.reply": (0.003, 0.01),
    "kernel.poison": (0.003, 0.01),
    "buggify.flush.split": (0.1, 0.5),
    "buggify.cache.evict": (0.1, 0.5),
    "client.hasty": (0.1, 0.4),
    "client.early": (0.5,),
    "client.twice": (0.1, 0.3),
    "client.regret": (0.1, 0.4),
    "client.reject": (0.1, 0.3),
    "client.edit": (0.2, 0.5),
    "client.emit": (0.3, 0.6),
    "client.claim": (0.1, 0.3),
    "client.limits": (0.3, 0.6),
    "client.cancel": (0.003, 0.01),
    "client.pause": (0.005, 0.02),
    "client.changes": (0.4, 0.7),
    "client.away": (0.6, 0.9),
    "client.batch": (0.01, 0.03),
    "client.hold": (0.03, 0.1),
    "client.backfill": (0.03, 0.1),
    # Per look of the weather, which is every two seconds.
    "node.crash": (0.003, 0.01, 0.03),
    "node.pause": (0.005, 0.02),
    "node.steal": (0.01, 0.04),
    "clock.jump": (0.02, 0.1),
    "store.full": (0.01, 0.03),
}


class Fired(msgspec.Struct, frozen=True):
    """A fault that happened: its name, when, and in words."""

    id: str
    at: int
    words: str = ""


class Faults:
    """Asks whether a fault happens here and now, and remembers those that did."""

    def __init__(self, dice: Dice, rates: dict[str, float], allowed: frozenset[str] | None) -> None:
        self.dice = dice
        self.rates = rates
        self.allowed = allowed
        self.fired: list[Fired] = []
        self.healed = False
        self.now = 0

    def fires(self, kind: str, key: str, words: str = "") -> bool:
        """Does this kind of fault strike this thing? The question itself is counted."""
        site = f"{kind}:{key}"
        n = self.dice.count(site)
        if self.healed:
            return False
        if self.allowed is not None:
            hit = f"{site}#{n}" in self.allowed
        else:
            rate = self.rates.get(kind, 0.0)
            hit = rate > 0 and chance(self.dice.seed, site, n) < rate
        if hit:
            self.fired.append(Fired(f"{site}#{n}", self.now, words))
        return hit


def swarm(
    dice: Dice, without: frozenset[str], always: frozenset[str] = frozenset()
) -> dict[str, float]:
    """Which kinds of fault a seed has, and how often each strikes."""
    share = dice.pick("swarm.share", (0.15, 0.3, 0.5, 0.8))
    rates: dict[str, float] = {}
    for kind, choices in RATES.items():
        drawn = dice.roll(f"swarm.on:{kind}") < share and kind not in without
        if drawn or kind in always:
            rates[kind] = dice.pick(f"swarm.rate:{kind}", choices)
    return rates
