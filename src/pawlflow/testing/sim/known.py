"""Known faults of the engine that the simulator found and walks around until they are mended.

Each has a name, the reason, and one place in the simulator that asks for it. What is mended is
taken out here, and planted once more in planted_again.py.
"""

KNOWN: dict[str, str] = {}
