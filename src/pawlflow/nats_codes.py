"""What the codes of NATS, completions and workers mean: cause, and the way out."""

from typing import Final

NATS_CODES: Final[dict[str, tuple[str, str]]] = {
    "completion.attempt": (
        "A completion is of an attempt that was never made. It is a dead letter.",
        "Send back the header X-Workflow-Attempt of the command, or leave `attempt` out.",
    ),
    "completion.instance": (
        "A completion names a step, and an instance that the step is not of. It is a dead letter.",
        "Send back the headers X-Workflow-Instance-Id and X-Workflow-Step-Id of one command.",
    ),
    "completion.key": (
        "A completion is signed by a key that the tenant does not have, or that was revoked.",
        "`pawl keys create --executor` registers one, `pawl keys ls` lists them.",
    ),
    "completion.malformed": (
        "A completion is not what docs/nats.md says; the message says where. It is a dead letter.",
        "Mend the service; the command is sent again after a silence.",
    ),
    "completion.signature": (
        "The signature of a completion does not fit its key and what it says.",
        "Sign tenant, instance, step, attempt, outcome and result as docs/nats.md says.",
    ),
    "completion.tenant": (
        "A completion speaks for another tenant than the step's.",
        "Send back the header X-Tenant-Id of the command, over a connection of that tenant.",
    ),
    "completion.unsigned": (
        "A completion is not signed, and unsigned ones are not taken.",
        "Give the service a key (`pawl keys create --executor`), or PAWL_NATS_UNSIGNED=allow.",
    ),
    "keys.form": (
        "PAWL_EXECUTOR_KEY, or `key=`, is no key of an executor.",
        "Use ID:KEY as `pawl keys create --executor` prints it.",
    ),
    "keys.unknown": ("The tenant has no key with this id.", "`pawl keys ls` lists them."),
    "nats.driver": (
        "The driver for NATS, or the library for signatures, is not installed.",
        "pip install 'pawlflow[nats]'",
    ),
    "nats.overlap": (
        "Another stream keeps a subject that this one was to keep.",
        "Nothing, for commands: that stream is as good. Completions need theirs: rename the other.",
    ),
    "nats.request": (
        "A request over NATS is not what docs/nats.md says; the message names the field.",
        "Mend the request.",
    ),
    "nats.stream": (
        "A stream or consumer of Pawl cannot be made, or is not as it was asked for.",
        "Delete it: it is made anew, and what it held is sent again.",
    ),
    "nats.tenant": (
        "A request is for another tenant than the one it comes from.",
        "Leave `tenant_id` out, or use a connection of that tenant.",
    ),
    "nats.too_large": (
        "The parameters of a step are larger than the server's max_payload.",
        "Pass a reference instead, or raise max_payload.",
    ),
    "nats.unreachable": (
        "The NATS server, or a stream of it, does not answer.",
        "Check the URL and the server; what was to be sent is in the journal, and is sent later.",
    ),
    "nats.version": ("The NATS server is too old.", "Use nats-server 2.10 or newer."),
    "worker.closed": (
        "A worker was to tell the engine something, and is not open.",
        "Tell it inside of `async with worker:`, or after `await worker.open()`.",
    ),
    "worker.command": (
        "A worker was given a command that is not of its service, or twice.",
        "Name it SERVICE.v1.RESOURCE.ACTION, once.",
    ),
    "worker.memory": (
        "The memory of a worker cannot be opened.",
        "Name a file that can be written: memory='sqlite:///PATH'.",
    ),
}
