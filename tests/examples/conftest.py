"""One stage for all tests, and one engine for those of a module."""

from collections.abc import Iterator

import pytest

from examples.ores.flows import bundle_publish
from examples.ores.stage import ROOT, Stage
from pawlflow import BlockingPawl, Pawl
from tests.examples.kit import staged
from tests.servers import Nats, NoServerError, Postgres

FLOWS = sorted((ROOT / "examples" / "ores" / "flows").glob("*.yaml"))


@pytest.fixture(scope="session")
def own_nats() -> Iterator[Nats]:
    """A server that no other test deletes streams of."""
    try:
        server = Nats()
    except NoServerError as trouble:
        pytest.skip(str(trouble))
    yield server
    server.remove()


@pytest.fixture(scope="session")
def stage(postgres: Postgres, own_nats: Nats, tmp_path_factory) -> Iterator[Stage]:
    """All services at work."""
    with staged(postgres, own_nats, tmp_path_factory.mktemp("logs")) as made:
        yield made


@pytest.fixture(scope="module")
def pawl(stage: Stage) -> Iterator[BlockingPawl]:
    """An engine that knows the four workflows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PAWL_NATS_UNSIGNED", "allow")
        made = Pawl.blocking(stage.database, nats=stage.nats, driver="thread")
        made.load(*FLOWS)
        made.register(bundle_publish)
        with made:
            yield made
