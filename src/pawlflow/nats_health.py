"""How NATS stands: the server, and every stream and consumer as we ask for it."""

from collections.abc import Sequence

import msgspec

from pawlflow.bus.port import Bus, BusFacts, Consumer, Echo
from pawlflow.services import batches, protocol
from pawlflow.worker_hearing import batch_consumer
from pawlflow.worker_jobs import ACK_S


class BusHealth(msgspec.Struct, frozen=True):
    """What there is, by name; None where there is nothing yet."""

    facts: BusFacts
    streams: dict[str, Echo | None]
    consumers: dict[str, Echo | None]


async def health_of(bus: Bus) -> BusHealth:
    """Look at everything, and change nothing. Raises BusError."""
    facts = await bus.facts()
    if not facts.streams:
        return BusHealth(facts, {}, {})
    kept = (batches.BATCHES, protocol.COMPLETIONS, protocol.DEAD_LETTERS)
    wanted = (protocol.commands_stream(()), *kept)
    streams = {each.name: await bus.stream_echo(each) for each in wanted}
    services = [service_consumer(*each) for each in await bus.consumers(protocol.COMMANDS)]
    ours = (protocol.INTAKE, batches.INTAKE, *services)
    consumers = {each.name: await bus.consumer_echo(each) for each in ours}
    for name, _, _ in await bus.consumers(batches.BATCHES.name):
        consumers[f"{name}, batches"] = await bus.consumer_echo(batch_consumer(name))
    return BusHealth(facts, streams, consumers)


def service_consumer(name: str, subjects: Sequence[str], pending_max: int) -> Consumer:
    """The consumer that all workers of a service share."""
    return Consumer(
        stream=protocol.COMMANDS,
        name=name,
        subjects=tuple(subjects),
        deliver=f"workflow.v1.deliver.{name}",
        ack_s=ACK_S,
        pending_max=pending_max,
    )
