"""Many at once: deliveries are found by what they say of themselves, and told together."""

import asyncio
from pathlib import Path

from pawlflow import Pawl

PARCELS = [("Graz", 3), ("Linz", 30), ("Graz", 25), ("Wien", 8), ("Graz", 7)]
pawl = Pawl("sqlite:///fleet.db")
pawl.load(Path(__file__).with_name("fleet.yaml"))


@pawl.effect("parcel.bring")
async def bring(city: str, lorry: str) -> str:
    return f"to {city} by {lorry}"


async def main() -> None:
    async with pawl:
        for number, (city, weight) in enumerate(PARCELS):
            await pawl.start("delivery", {"city": city, "weight": weight}, id=f"d-{number}")
        heavy = pawl.list("heavy && state == 'waiting'")
        print("heavy:", sorted(row["id"] for row in heavy))
        told = await pawl.batch(
            "signal",
            where="city == 'Graz' && weight < 20",
            event="lorry.arrived",
            data={"plate": "G 1"},
            by="ann",
        )
        print(f"{told['act']}: {told['done']} of {told['matched']}")
        await pawl.run("d-0").result(timeout="20s")
        stopped = await pawl.batch("cancel", where="heavy", by="ann", comment="too heavy for us")
        print(f"{stopped['act']}: {[each['result'] for each in stopped['results']]}")
        print("left:", [row["id"] for row in pawl.list(state="waiting")])


asyncio.run(main())
