"""Processes that begin together: they come, are told when, and are waited for.

Of nothing but the standard library, since a peer's interpreter runs it as well.
"""

import subprocess
import sys
from time import perf_counter
from typing import Final

READY: Final = "ready\n"


def measured(words: list[str], count: int) -> tuple[float, list[str]]:
    """The seconds from when all may begin until the last is done, and what each says then."""
    processes = [
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(count)
    ]
    try:
        assert all(heard(each) == READY for each in processes), "one of them did not come"
        began = perf_counter()
        for each in processes:
            go_on(each)
        said = [heard(each) for each in processes]
        seconds = perf_counter() - began
        for each in processes:  # none leaves before all are done: its work might go to others
            go_on(each)
        assert [each.wait(60) for each in processes] == [0] * count
    finally:
        for each in processes:
            each.kill()
            each.wait()
    return seconds, said


def heard(process: "subprocess.Popen[str]") -> str:
    """What a process says next; a library may say something as well."""
    assert process.stdout is not None
    line = process.stdout.readline()
    while line and line != READY and not line[0].isdigit():
        line = process.stdout.readline()
    return line


def go_on(process: "subprocess.Popen[str]") -> None:
    """It may."""
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def told(line: str) -> None:
    """In one of them: say something, and wait until one may go on."""
    sys.stdout.write(line)
    sys.stdout.flush()
    sys.stdin.readline()
