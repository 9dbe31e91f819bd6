"""`Lab`: an engine under test, in virtual time."""

from typing import Any

from pawlflow.testing.lab_blocking import BlockingLab
from pawlflow.testing.lab_hosting import HostedLab


class Lab(HostedLab):
    """An engine under test: `async with Lab() as lab: ...`. It is a `Pawl` in every other way."""

    @staticmethod
    def blocking(url: str = "memory:", **options: Any) -> BlockingLab:
        """The same for plain tests: `with Lab.blocking() as lab: ...`."""
        return BlockingLab(url, **options)
