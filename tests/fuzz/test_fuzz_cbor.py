"""The fuzz target of the codec still runs, on seeds and on every one-byte cut and flip of them."""

import pytest

from pawlflow.model.codec import encode

fuzz_cbor = pytest.importorskip(
    "fuzz_cbor", reason="atheris is not installed", exc_type=ImportError
)

SEEDS = [
    {},
    {"repo": "r1", "n": 3},
    [1.5, -0.0, None, True, b"\xff", "ü"],
    [[[{"a": -1000}]]],
    2**40,
]


@pytest.mark.req("R5")
@pytest.mark.parametrize("value", SEEDS)
def test_the_target_holds_near_its_seeds(value):
    """Every prefix, and every byte replaced by every other."""
    data = encode(value)
    for at in range(len(data)):
        fuzz_cbor.check(data[:at])
        for byte in range(256):
            fuzz_cbor.check(data[:at] + bytes((byte,)) + data[at + 1 :])
