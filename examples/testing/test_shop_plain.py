"""The same without `async`: a blocking lab, on a file, at a time of its own."""

from pathlib import Path
from typing import Any

import pytest

from pawlflow.testing import BlockingLab, assert_replays


@pytest.fixture
def pawl_options(tmp_path: Path) -> dict[str, Any]:
    """What the labs of these tests are made with."""
    return {"url": f"sqlite:///{tmp_path}/shop.db", "now": "2026-12-24T18:00Z"}


def test_an_order_on_christmas_eve(pawl_blocking: BlockingLab) -> None:
    """Everything is scripted here: `*` stands for whatever has no script of its own."""
    pawl_blocking.load(Path(__file__).with_name("shop.yaml"))
    pawl_blocking.script("letter-writer", {"text": "Merry Christmas!"})
    pawl_blocking.script("*", {"payment": "p-1"})

    run = pawl_blocking.start("shop", {"card": "4711", "amount": 2000}, id="order-1")
    pawl_blocking.skip("14h")
    pawl_blocking.approve("order-1", "large", by="zoe", role="boss")

    assert run.result() == {"payment": "p-1"}
    assert pawl_blocking.now.isoformat() == "2026-12-25T08:00:00+00:00"
    assert_replays(run)
