"""Refusals: what is returned where an input does not become a turn."""

import msgspec


class Rejected(msgspec.Struct, frozen=True):
    """An input we refuse: nothing changed. `code` is stable, `detail` names the thing."""

    code: str
    detail: str = ""
