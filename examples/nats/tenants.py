"""Two tenants, each with an account of the NATS server of its own."""

import sys

from pawlflow import Pawl


def engine_for(host: str) -> Pawl:
    """A tenant is known by the connection that it speaks over."""
    accounts = {"acme": f"nats://acme:one@{host}", "globex": f"nats://globex:two@{host}"}
    return Pawl("sqlite:///provision.db", nats=accounts)


if __name__ == "__main__":
    engine_for(sys.argv[1])
