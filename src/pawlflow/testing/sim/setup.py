"""The setup of a run: how many nodes and instances, which faults, how small the limits are.

Everything is drawn from the seed, and everything is written to a tape: a tape does not change its
meaning when the drawing does.
"""

from typing import Final

import msgspec

from pawlflow.engine import core, outcomes, shard, staging, stepping, timers
from pawlflow.testing.sim.chance import Dice
from pawlflow.testing.sim.faults import swarm
from pawlflow.testing.sim.language import rooms_of, stirred_by
from pawlflow.testing.sim.patching import Change


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """What a run consists of."""

    seed: int
    profile: str = "whole"
    nodes: int
    tenants: int
    flows: int
    instances: int
    only: tuple[int, ...] | None = None  # of the instances; a shrunk tape keeps few
    rooms: tuple[str, ...] = ()  # parts of the language that definitions use
    places: int  # shards that instances live in
    storm_ms: int  # faults strike until then
    rates: dict[str, float]
    knobs: dict[str, int]


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """A layer of defence that is taken away, so that the rest must carry alone."""

    reoffers: bool = True  # calls without a sign are offered again
    dedupe: bool = True  # executors do each step key once
    redelivery: bool = True  # the bus brings what was not acknowledged once more
    without: frozenset[str] = frozenset()  # faults that only the missing layer could bear


LOSSES: Final = frozenset({"bus.drop", "exec.crash_before", "exec.crash_after"})
PROFILES: Final = {
    "whole": Profile(),
    "no-sweep": Profile(reoffers=False, without=LOSSES),
    "no-dedupe": Profile(dedupe=False),
    "no-redelivery": Profile(redelivery=False),
}

# Knob -> values a seed may give it, and the constants of the engine that it stands for.
KNOBS: Final[dict[str, tuple[int, ...]]] = {
    "turns": (1, 2, 5, 500),
    "bytes": (600, 4_000, 1_048_576),
    "hot_cells": (1, 3, 8, 4_096),
    "hot_bytes": (20_000, 268_435_456),
    "mail_page": (1, 1, 3, 500),
    "due_page": (1, 3, 1_000),
    "due_held": (2, 6, 8_192),
    "recovery_page": (1, 3, 200),
    "loads": (1, 3, 256),
    "snapshot_bytes": (4_500, 6_000, 65_536),
    "hops": (1, 64),
    "starts_waiting": (2, 20_000),
    "waiting": (8, 200_000),
    "slow_ms": (1, 5, 60),
    "patience": (0, 1),  # attempts that went down with their engine get their time again
    "gains": (0, 1),  # a node with an engine gives that the shards it claims, instead of another
}
PATCHED: Final = {  # wherever in the engine a module has this name
    "mail_page": "MAIL_PAGE",
    "due_page": "PAGE",
    "due_held": "HELD_MAX",
    "recovery_page": "RECOVERY_PAGE",
    "loads": "LOADS_MAX",
    "snapshot_bytes": "SNAPSHOT_BYTES_MIN",
    "hops": "HOPS_MAX",
    "starts_waiting": "STARTS_WAITING_MAX",
    "waiting": "WAITING_MAX",
}
ROOMS: Final = (core, outcomes, shard, staging, stepping, timers)


def limits_of(knobs: dict[str, int]) -> list[Change]:
    """The constants of the engine that these knobs stand for, as they are to be."""
    found = [
        (room, name, knobs[knob])
        for knob, name in PATCHED.items()
        for room in ROOMS
        if name in vars(room)
    ]
    assert {name for _, name, _ in found} == set(PATCHED.values()), "a limit of the engine moved"
    return found


def setup_of(seed: int, profile: str = "whole") -> Setup:
    """The setup of a seed."""
    dice = Dice(seed)
    plain = dice.roll("knobs.plain") < 0.2
    knobs = {
        name: choices[-1] if plain else dice.pick(f"knob:{name}", choices)
        for name, choices in KNOBS.items()
    }
    rooms = rooms_of(dice)
    return Setup(
        seed=seed,
        profile=profile,
        nodes=dice.pick("nodes", (1, 2, 2, 3)),
        tenants=dice.pick("tenants", (1, 2, 2)),
        flows=dice.between("flows", 1, 3),
        instances=dice.between("instances", 4, 24 if not rooms else 12),
        rooms=rooms,
        places=dice.pick("places", (1, 1, 2, 6)),
        storm_ms=dice.pick("storm", (60_000, 180_000, 420_000)),
        rates=swarm(dice, PROFILES[profile].without, stirred_by(rooms)),
        knobs=knobs,
    )
