"""Chance without state: every draw is a hash of the seed, a site and how often that was asked.

No draw depends on any other, so a fault that is taken away shifts nothing else. Sites are named by
what they are about (`bus.drop:acme/i3.s1.1`), so even a changed history meets the same chances.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final, TypeVar

Option = TypeVar("Option")

BITS: Final = 64


def chance(seed: int, site: str, n: int) -> float:
    """A number from 0 up to, but not including, 1: always the same one for these three."""
    raw = blake2b(f"{seed}\0{site}\0{n}".encode(), digest_size=BITS // 8).digest()
    return (int.from_bytes(raw, "big") >> 11) / (1 << 53)


class Dice:
    """Draws by site; each site counts its own."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.counts: dict[str, int] = {}

    def count(self, site: str) -> int:
        """How often this site was asked before; it is counted now."""
        n = self.counts.get(site, 0)
        self.counts[site] = n + 1
        return n

    def roll(self, site: str) -> float:
        """The next number of a site."""
        return chance(self.seed, site, self.count(site))

    def between(self, site: str, low: int, high: int) -> int:
        """A whole number, both ends included."""
        return low + int(self.roll(site) * (high - low + 1))

    def pick(self, site: str, options: Sequence[Option]) -> Option:
        """One of these."""
        return options[int(self.roll(site) * len(options))]

    def bytes(self, site: str, size: int = 16) -> bytes:
        """Bytes that no other draw gives."""
        text = f"{self.seed}\0{site}\0{self.count(site)}"
        return blake2b(text.encode(), digest_size=size).digest()
