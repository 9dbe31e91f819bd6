"""What a NATS server says it keeps, held against what is asked for. Nothing is changed here."""

from typing import Any

from nats.js import JetStreamContext, api
from nats.js.errors import NotFoundError

from pawlflow.bus.port import BusFacts, Echo

STREAM = ("retention", "storage", "discard", "max_age", "duplicate_window")
CONSUMER = ("ack_policy", "ack_wait", "max_ack_pending", "deliver_subject", "deliver_group")
Differences = dict[str, tuple[str, str]]


async def facts_of(js: JetStreamContext, version: str, message_max: int) -> BusFacts:
    """What the server is, and how much of it is used."""
    account = await js.account_info()
    return BusFacts(
        version=version,
        streams=True,
        used=account.storage,
        used_max=account.limits.max_storage,
        message_max=message_max,
    )


async def stream_echo(js: JetStreamContext, wanted: api.StreamConfig) -> Echo | None:
    """A stream as the server has it; None if there is none."""
    assert wanted.name is not None
    try:
        info = await js.stream_info(wanted.name)
    except NotFoundError:
        return None
    return Echo(
        name=wanted.name,
        differs=stream_differs(wanted, info.config),
        waiting=info.state.messages,
        bytes=info.state.bytes,
    )


async def consumer_echo(
    js: JetStreamContext, stream: str, wanted: api.ConsumerConfig
) -> Echo | None:
    """A consumer as the server has it; None if there is none."""
    assert wanted.durable_name is not None
    try:
        info = await js.consumer_info(stream, wanted.durable_name)
    except NotFoundError:
        return None
    return Echo(
        name=wanted.durable_name,
        differs=consumer_differs(wanted, info.config),
        waiting=info.num_pending or 0,
        unanswered=info.num_ack_pending or 0,
    )


async def consumers_of(js: JetStreamContext, stream: str) -> list[tuple[str, tuple[str, ...], int]]:
    """Who takes messages of a stream: name, subjects, and how many at a time."""
    try:
        found = await js.consumers_info(stream)
    except NotFoundError:
        return []
    return [
        (each.name, subjects_of(each.config), each.config.max_ack_pending or 0) for each in found
    ]


def stream_differs(wanted: api.StreamConfig, found: api.StreamConfig) -> Differences:
    """What was asked for and what is there, where it is something else. More subjects may be."""
    wrong = differing(wanted, found, STREAM)
    if not set(wanted.subjects or ()) <= set(found.subjects or ()):
        wrong["subjects"] = ", ".join(wanted.subjects or ()), ", ".join(found.subjects or ())
    return wrong


def consumer_differs(wanted: api.ConsumerConfig, found: api.ConsumerConfig) -> Differences:
    """The same of a consumer."""
    wrong = differing(wanted, found, CONSUMER)
    if set(subjects_of(wanted)) != set(subjects_of(found)):
        wrong["subjects"] = ", ".join(subjects_of(wanted)), ", ".join(subjects_of(found))
    return wrong


def differing(wanted: Any, found: Any, names: tuple[str, ...]) -> Differences:
    """Settings that are not as they were asked for."""
    pairs = {name: (getattr(wanted, name), getattr(found, name)) for name in names}
    return {
        name: (setting(left), setting(right))
        for name, (left, right) in pairs.items()
        if left != right
    }


def setting(value: Any) -> str:
    """A setting in words."""
    return str(getattr(value, "value", value))


def subjects_of(config: api.ConsumerConfig) -> tuple[str, ...]:
    """What a consumer takes."""
    one = [config.filter_subject] if config.filter_subject else []
    return tuple(config.filter_subjects or one)
