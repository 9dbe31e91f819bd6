"""Hashes over canonical bytes: ours, and those that AgentOS has published."""

from hashlib import sha256

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawlflow.model.codec import INT_MAX, INT_MIN, hash_of, self_described

parts_of_any_kind = st.lists(
    st.none() | st.booleans() | st.integers(INT_MIN, INT_MAX) | st.text() | st.binary()
)


@given(st.text(min_size=1), parts_of_any_kind)
def test_a_hash_covers_its_domain_and_parts(domain, parts):
    """It is the sha256 of the canonical list."""
    assert hash_of(domain, *parts) == sha256(cbor2.dumps([domain, *parts], canonical=True)).digest()


def test_parts_of_a_hash_cannot_run_together():
    """Lengths are part of what is hashed."""
    assert len({hash_of("d", "ab", "c"), hash_of("d", "a", "bc"), hash_of("d", b"ab", "c")}) == 3


POINT = {
    "$kind": "defschema",
    "name": "com.acme/Point@1",
    "type": {"record": {"x": {"int": {}}, "y": {"int": {}}}},
}
PLAN = {
    "$kind": "defplan",
    "name": "com.acme/Plan@1",
    "input": "com.acme/Point@1",
    "steps": [{"id": "end", "op": "end"}],
    "edges": [],
    "required_caps": [],
    "allowed_effects": [],
}
# smartcomputer-ai/agent-os, spec/test-vectors: canonical-cbor.json (three), schemas.json, and
# plans.json, which later versions dropped. (value, bytes, hash)
AGENT_OS = [
    (
        {},
        "d9d9f7a0",
        "sha256:75bd49cb964988d6fd2c058f51230c3dc2a254753751fbe0f313b4b1e0681b69",
    ),
    (
        {"a": 1, "b": 2},
        "d9d9f7a2616101616202",
        "sha256:7d5fc784e8d341244b992c902413575266e3140e9081fe12fc95849cf27e7df6",
    ),
    (
        ["hi", 1, True, None],
        "d9d9f78462686901f5f6",
        "sha256:0e2c2f23ecdea86fcc33f4975460ea705a19da61c5eef7218112387036581271",
    ),
    (
        POINT,
        "d9d9f7a3646e616d6570636f6d2e61636d652f506f696e7440316474797065a1667265636f7264a26178a1"
        "63696e74a06179a163696e74a065246b696e6469646566736368656d61",
        "sha256:9b74eadb8810612f1becfbf9b4502cccb0ef290b90e3e912b316fc279e779add",
    ),
    (
        PLAN,
        "d9d9f7a7646e616d656f636f6d2e61636d652f506c616e403165246b696e6467646566706c616e65656467"
        "65738065696e70757470636f6d2e61636d652f506f696e74403165737465707381a262696463656e64626f"
        "7063656e646d72657175697265645f63617073806f616c6c6f7765645f6566666563747380",
        "sha256:d22044a0312bc264029427c93af440d1c27749468f7bd94cdad3100849b343ae",
    ),
]


@pytest.mark.req("R6")
@pytest.mark.parametrize(("value", "data", "digest"), AGENT_OS)
def test_published_vectors_of_agent_os_are_reproduced(value, data, digest):
    """Their documents are our bytes behind the self-describe tag, which is hashed with them."""
    document = self_described(value)
    assert document.hex() == data
    assert "sha256:" + sha256(document).hexdigest() == digest
