"""Known faults of the engine that the simulator found and walks around until they are mended.

Each has a name, the reason, and one place in the simulator that asks for it. What is mended is
taken out here, and planted once more in planted_again.py.
"""

KNOWN: dict[str, str] = {
    "held.cut_off": """Deadlines.hold() puts a later time into the heap than the row of the cell
        has. When note() trims the heap to HELD_MAX / 2 that entry may be cut off, though the row
        lies before the new horizon: it is never read again, and the deadline is lost""",
}


def walked_around(name: str) -> bool:
    """Must this be avoided for now?"""
    return name in KNOWN
