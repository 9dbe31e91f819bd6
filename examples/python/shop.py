"""Lists, texts, children and plans that are built from their input."""

import asyncio
from dataclasses import dataclass

from pawlflow import Pawl, child, each, expr, flow, sleep, step, text, wait_for


@dataclass
class Parcel:
    item: str
    grams: int


@step(timeout="10s")
def pack(item: str) -> Parcel:
    return Parcel(item, 100 * len(item))


@step(timeout="10s")
def weigh(parcels: list[Parcel]) -> int:  # made from the journal's plain values
    return sum(parcel.grams for parcel in parcels)


@step(timeout="10s")
async def tell(words: str) -> str:
    print(words)
    return words


@flow(timeout="1d")
def dispatch(request):
    letter = tell(text("{} g for {}", request.grams, request.name))
    return {"letter": letter}


@flow(timeout="1d")
def order(name, items, express=False):
    parcels = each(items, pack, limit=8)
    grams = weigh(parcels)
    tell(text("{name} is in a hurry", name=name), name="hurry", when=express == True)
    rest = sleep("10ms", after=grams, when=(grams > 500) & ~express)
    sent = child(dispatch, {"grams": grams, "name": name}, after=rest)
    got = wait_for("parcel.arrived", match=lambda event: event.name == name, after=sent)
    return {"grams": grams, "count": expr("size(x)", x=items), "signed": got.by}


@flow(build=True, timeout="1h")
def publish(request):
    earlier = None
    for dataset in request["datasets"]:
        after = [] if earlier is None else [earlier]
        earlier = tell(f"publishing {dataset}", name=f"publish-{dataset}", after=after)


async def main() -> None:
    async with Pawl("memory:") as pawl:
        run = await pawl.start(order, {"name": "zoe", "items": ["ham", "mustard"]})
        await pawl.signal(run.id, "parcel.arrived", {"name": "zoe", "by": "a neighbour"})
        print(await run.result(timeout="1m"))
        run = await pawl.start(publish, {"datasets": ["rivers", "lakes"]})
        await run.result(timeout="1m")
        print(", ".join(run.show()["steps"]))


if __name__ == "__main__":
    asyncio.run(main())
