"""Items and children: one step for many pictures, and a workflow as a step of another."""

import asyncio
from pathlib import Path

from pawlflow import Context, Pawl, Terminal

pawl = Pawl("sqlite:///album.db")
pawl.load(Path(__file__).with_name("album.yaml"))  # the child is in the same file


@pawl.effect("picture.shrink")
async def shrink(picture: str, ctx: Context) -> dict:
    if picture.endswith(".txt"):
        raise Terminal(f"picture {ctx.item} is none")  # onFailure: skip leaves null in its place
    return {"name": picture, "size": "small"}


@pawl.effect("page.write")
async def write(title: str, pictures: list) -> str:
    return f"{title} with {len(pictures)} pictures"


@pawl.effect("page.hang")
async def hang(page: str) -> dict:
    return {"seen": page}


async def main() -> None:
    async with pawl:
        given = {"pictures": ["sea.jpg", "notes.txt", "sun.jpg"], "pages": ["May", "June"]}
        run = await pawl.start("album", given, id="album-1")
        print(await run.result(timeout="1m"))
        shown = run.show()
        items = shown["steps"]["shrink"]["items"]
        print(f"shrink: {items['done']} of {items['total']}, {items['skipped']} skipped")
        print(f"shrink[1]: {shown['steps']['shrink[1]']['error']['message']}")
        for child in shown["children"]:
            of_child = pawl.run(child["id"]).show()
            print(f"{child['step']}: {child['workflow']} {child['state']}, {of_child['output']}")


asyncio.run(main())
