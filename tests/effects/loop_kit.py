"""A world that counts what loops do to it."""

from collections import Counter

from pawlflow import Retry

AGAIN = Retry(max=3, backoff="constant", initial="1ms")


class World:
    """Outside: how often each function was run."""

    def __init__(self):
        self.ran = Counter()

    def does(self, name, result=None):
        """A function that is counted."""

        def fn(*_):
            self.ran[name] += 1
            return {"of": name} if result is None else result

        return fn


async def result_of(pawl, workflow, given=None, **more):
    """Start, and wait for the end."""
    return await (await pawl.start(workflow, given, **more)).result(timeout="20s")
