"""What tests of services start with."""

import pytest

from pawlflow import worker_jobs
from tests.services.batches_kit import ONE
from tests.services.kit import WORKFLOW


@pytest.fixture
def parties(tmp_path, monkeypatch):
    """Workflows in files, completions without a signature, and no long waits."""
    monkeypatch.setenv("PAWL_NATS_UNSIGNED", "allow")
    monkeypatch.setattr(worker_jobs, "LATER_S", 0.1)
    (tmp_path / "provision.yaml").write_text(WORKFLOW)
    (tmp_path / "one.yaml").write_text(ONE)
    return tmp_path
