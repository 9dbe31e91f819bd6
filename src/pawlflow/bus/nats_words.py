"""Streams, consumers and headers in the words of NATS."""

from collections.abc import Mapping
from typing import Final

from nats.js import api

from pawlflow.bus import nats_echo as echo
from pawlflow.bus.port import BusError, Consumer, Stream

TWICE_S: Final = 120.0  # in which a message with the same id counts once


def config_of(stream: Stream, subjects: tuple[str, ...]) -> api.StreamConfig:
    """A stream in the words of NATS."""
    policy = api.RetentionPolicy.WORK_QUEUE if stream.once else api.RetentionPolicy.LIMITS
    return api.StreamConfig(
        name=stream.name,
        subjects=list(subjects),
        retention=policy,
        storage=api.StorageType.FILE,
        discard=api.DiscardPolicy.OLD,
        max_age=stream.age_s,
        duplicate_window=min(TWICE_S, stream.age_s),
        description="made by Pawl",
    )


def compare(stream: Stream, found: api.StreamConfig) -> None:
    """Is the stream what was asked for? An old server, or somebody else, may differ."""
    wrong = echo.stream_differs(config_of(stream, stream.subjects), found)
    if wrong:
        message = (
            f"the stream {stream.name} is not as it was asked for ({', '.join(wrong)}): "
            "delete it, and it is made anew; what it held is sent again"
        )
        raise BusError("nats.stream", message)


def fits(known: api.ConsumerConfig, wanted: api.ConsumerConfig) -> bool:
    """Is a consumer for what it is wanted for? A server adds to what is said about it."""
    subjects = [
        (each.filter_subject, sorted(each.filter_subjects or ())) for each in (known, wanted)
    ]
    about = (wanted.metadata or {}).items() <= (known.metadata or {}).items()
    return subjects[0] == subjects[1] and about


def consumer_of(consumer: Consumer) -> api.ConsumerConfig:
    """A consumer in the words of NATS."""
    one = consumer.subjects[0] if len(consumer.subjects) == 1 else None
    return api.ConsumerConfig(
        durable_name=consumer.name,
        deliver_subject=consumer.deliver,
        deliver_group=consumer.name,
        ack_policy=api.AckPolicy.EXPLICIT,
        ack_wait=consumer.ack_s,
        max_ack_pending=consumer.pending_max,
        filter_subject=one,
        filter_subjects=None if one else list(consumer.subjects),
        metadata=dict(consumer.about) or None,
    )


def size_of(headers: Mapping[str, str]) -> int:
    """The bytes of headers, as they travel: the server counts them, too."""
    return 12 + sum(len(name) + len(value.encode()) + 4 for name, value in headers.items())
