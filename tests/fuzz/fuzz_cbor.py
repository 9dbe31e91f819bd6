"""Fuzz the reader of canonical CBOR: `python tests/fuzz/fuzz_cbor.py [corpus] -max_total_time=60`.

Whatever the bytes are, `decode` returns a value whose only form they are, or raises CodecError.
"""

import sys

import atheris
import cbor2

with atheris.instrument_imports(include=["pawlflow.model.codec"]):
    from pawlflow.model.codec import CodecError, decode, encode


def check(data):
    """Read, and compare with our writer and with another implementation's."""
    try:
        value = decode(data, bytes_max=1 << 16)
    except CodecError:
        return
    assert encode(value) == data
    assert cbor2.dumps(value, canonical=True) == data


def main():
    """Run until stopped, or as long as the arguments of libFuzzer say."""
    atheris.Setup(sys.argv, check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
