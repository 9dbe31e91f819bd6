"""A user's file with mistakes; each line that is marked must be told."""

from typing import Any

from pawlflow import Pawl, flow, step


@step
async def save(number: int, name: str = "") -> str:
    """Take a number."""
    return name * number


@step(timeout=3)  #: error
async def late() -> None:
    """Say a duration wrongly."""


@flow
def wrong(request: Any) -> Any:
    """Call it wrongly."""
    save("text")  #: error
    save()  #: error
    save(1, nobody=2)  #: error
    return save(1)


async def main() -> None:
    """Use it wrongly."""
    number: int = await save(1)  #: error by mypy
    async with Pawl("memory:", colour="red") as pawl:  #: error
        await pawl.start(wrong, {}, id=3)  #: error
    assert number
