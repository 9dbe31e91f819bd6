"""CloudEvents 1.0, structured JSON: the same envelopes in the words of everybody's event routers.

A list of these is the JSON batch format. Nothing is lost: every member of an envelope has its
attribute, and `data` is the payload.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote

from pawlflow.projections.event_schema import payload_schema_id

TYPE_PREFIX: Final = "dev.pawl."
SEQUENCE_DIGITS: Final = 20  # of any 64-bit number, so that text sorts as numbers do
# What the specification keeps out of attributes: controls, lone surrogates, noncharacters.
NOT_ALLOWED: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"
    + "".join(chr(plane << 16 | 0xFFFE) + chr(plane << 16 | 0xFFFF) for plane in range(1, 17))
    + "]"
)
EXTENSIONS: Final = {  # lower-case letters and digits: the specification allows no others
    "sequence": "sequence",
    "correlationid": "correlationId",
    "causationid": "causationId",
    "tenantid": "tenantId",
    "projectid": "projectId",
    "moduleid": "moduleId",
    "actor": "actor",
    "batch": "batch",
    "schemaversion": "schemaVersion",
}


def cloud_events(envelopes: Iterable[Mapping[str, Any]], workflow: str) -> list[dict[str, Any]]:
    """Envelopes of one instance as CloudEvents."""
    return [cloud_event(envelope, workflow) for envelope in envelopes]


def cloud_event(envelope: Mapping[str, Any], workflow: str) -> dict[str, Any]:
    """One envelope as a CloudEvent. `workflow` is the name of the instance's workflow."""
    kind = envelope["eventType"]
    told = {
        "specversion": "1.0",
        "id": envelope["eventId"],
        "source": f"/pawl/{quote(envelope['tenantId'], safe='')}/{quote(workflow, safe='')}",
        "type": f"{TYPE_PREFIX}{kind}",
        "subject": envelope["workflowInstanceId"],
        "time": envelope["occurredAt"],
        "datacontenttype": "application/json",
        "dataschema": payload_schema_id(kind),
        "traceparent": traceparent(envelope),
    }
    for attribute, member in EXTENSIONS.items():
        value = envelope.get(member)
        if value not in (None, ""):
            told[attribute] = extension(attribute, value)
    return told | {"data": envelope["payload"]}


def extension(name: str, value: Any) -> Any:
    """An extension's value. The sequence sorts as text, as its extension asks."""
    if name == "sequence":
        return f"{value:0{SEQUENCE_DIGITS}}"
    return NOT_ALLOWED.sub("\ufffd", value) if isinstance(value, str) else value


def traceparent(envelope: Mapping[str, Any]) -> str:
    """W3C trace context: the run is the trace, the event a span of it that nobody recorded."""
    span = envelope["eventId"].replace("-", "")[:16]
    return f"00-{envelope['traceId']}-{span}-00"
