"""Who answers: the policies of a store, read anew for every question."""

import asyncio
from types import SimpleNamespace

import pytest

from pawlflow import policing
from pawlflow.app import open_store
from pawlflow.model.ids import Tenant
from pawlflow.policing import Judge, in_force, policies_of
from pawlflow.store.port import StoreError

REQUEST = {
    "action": "go",
    "principal": {"type": "User", "id": "zoe"},
    "resource": {},
    "context": {"workflow": "w", "step": "s", "requester": "zoe"},
}


def test_a_tenant_without_policies_has_none():
    """Nothing is made by looking."""
    store = open_store("memory:")

    assert policies_of(store, Tenant("acme")) is None
    assert in_force(store, Tenant("acme")) == []


@pytest.mark.req("R126")
def test_a_store_that_does_not_answer_is_asked_a_few_times(tmp_path, monkeypatch):
    """Then it is said so, and the kernel denies: nothing is allowed by silence."""
    monkeypatch.setattr(policing, "PAUSE_S", 0)
    store = open_store(f"sqlite:///{tmp_path}/p.db")
    store.claim()
    ctx = SimpleNamespace(tenant=Tenant("default"))
    judge = Judge(store)
    assert asyncio.run(judge.ask(ctx, **REQUEST))["decision"] == "allow"
    looks = []

    class Unwell:
        """A store whose server is away."""

        def load(self, addresses):
            """Nothing comes."""
            looks.append(addresses)
            raise StoreError("store.unreachable", "nobody is there")

    with pytest.raises(StoreError):
        asyncio.run(Judge(Unwell()).ask(ctx, **REQUEST))
    assert len(looks) == policing.TRIES
    store.close()
