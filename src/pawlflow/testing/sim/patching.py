"""Patching: code that is changed from outside, for as long as a `with` lasts."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from inspect import getattr_static
from typing import Any, Final

Change = tuple[Any, str, Any]  # a module or class, the name of its attribute, what to put there
INHERITED: Final = object()


@contextmanager
def patched(changes: Sequence[Change]) -> Iterator[None]:
    """Make the changes, and take them back in the end."""
    before: list[Change] = []
    try:
        for where, name, value in changes:
            real(where, name)  # there must be something to change
            before.append((where, name, vars(where).get(name, INHERITED)))
            setattr(where, name, value)
        yield
    finally:
        for where, name, value in reversed(before):
            if value is INHERITED:
                delattr(where, name)
            else:
                setattr(where, name, value)


def real(where: Any, name: str) -> Any:
    """What a module or class has now."""
    return getattr_static(where, name)
