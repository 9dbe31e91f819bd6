"""`Pawl`: an engine in this process.

A store, the shards it owns, and the functions that carry out effects. Leaving it loses nothing;
entering it again goes on with everything that was in flight.
"""

from pathlib import Path
from typing import Literal

from pawlflow.app import DEFAULT_URL
from pawlflow.blocking import BlockingPawl
from pawlflow.effects.runner import CONCURRENCY
from pawlflow.engine.shard import Limits
from pawlflow.hosting import Hosted
from pawlflow.runs import Run as Run
from pawlflow.secrets import Source
from pawlflow.services.gateway import Given


class Pawl(Hosted):
    """An engine in this process: `async with Pawl("sqlite:///pawl.db") as pawl: ...`."""

    @staticmethod
    def blocking(  # noqa: PLR0913  # what may be chosen of an engine
        url: str = DEFAULT_URL,
        *,
        tenant: str = "default",
        driver: Literal["inline", "thread"] = "inline",
        concurrency: int = CONCURRENCY,
        limits: Limits | None = None,
        by: str = "python",
        secrets: Source = None,
        processes: int | None = None,
        nats: Given = None,
        read_models: bool = False,
        retention: bool | None = None,
        archive: str | Path | None = None,
    ) -> BlockingPawl:
        """The same for programs without an event loop: `with Pawl.blocking(...) as pawl: ...`."""
        made = Pawl(
            url,
            tenant=tenant,
            driver=driver,
            concurrency=concurrency,
            limits=limits,
            by=by,
            secrets=secrets,
            processes=processes,
            nats=nats,
            read_models=read_models,
            retention=retention,
            archive=archive,
        )
        return BlockingPawl(made)
