"""Secrets: references until the last moment, and taken out again of whatever an attempt says.

Only references that the definition itself writes are resolved, each at the place where it stands
there. One that came as data, in an input say, is data: nobody reads a secret by asking for it.
"""

import base64
import json
import re
import string
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Protocol
from urllib.parse import quote, quote_plus

from pawlflow.definition.express.template import SECRET, is_secret
from pawlflow.model.ids import Tenant

Path = tuple[str | int, ...]
Reference = tuple[Path, str]  # where a secret stands, and its name
VALUE_MIN: Final = 4  # characters
BASE64: Final = frozenset(string.ascii_letters + string.digits + "+/-_")
ESCAPE: Final = re.compile("%[0-9A-F]{2}")
LINE_MIN: Final = 12  # a line of a value of several lines is a secret too, unless it is short


class Secrets(Protocol):
    """Where values come from. Called off the event loop, so it may take its time."""

    def get(self, tenant: str, name: str) -> str | None:
        """The value, now. None, or a LookupError: there is none."""
        ...


class SecretMissing(Exception):  # noqa: N818  # of an attempt, like Terminal
    """A reference that nothing stands behind."""


class SecretTooShort(Exception):  # noqa: N818
    """A value that cannot be told from any other text, and so cannot be kept out of it."""


class SecretUnavailable(Exception):  # noqa: N818
    """A provider broke; what it said is not told, for it may hold anything."""


class Hidden:
    """The secret values that one attempt was given, to be taken out of what it says."""

    __slots__ = ("cores", "found", "names", "pattern")

    def __init__(self, values: Mapping[str, str]) -> None:
        whole = {form: name for name, value in values.items() for form in forms_of(value)}
        cores = {core: name for name, value in values.items() for core in cores_of(value)}
        self.cores = cores.keys() - whole.keys()
        self.names = cores | whole
        longest_first = sorted(self.names, key=len, reverse=True)
        self.pattern = re.compile("|".join(map(re.escape, longest_first))) if self.names else None
        self.found: set[str] = set()  # what was taken out, by name

    def text(self, said: str) -> str:
        """The same without any secret."""
        if self.pattern is None or self.pattern.search(said) is None:
            return said
        parts: list[str] = []
        end = 0
        for match in self.pattern.finditer(said):
            form, (begin, until) = match.group(), match.span()
            if form in self.cores:  # the letters beside it hold some bits of it
                begin -= begin > 0 and said[begin - 1] in BASE64
                until += until < len(said) and said[until] in BASE64
            name = self.names[form]
            self.found.add(name)
            parts += (said[end : max(end, begin)], f"[secret {name}]")
            end = until
        return "".join((*parts, said[end:]))

    def held_by(self, given: Any) -> set[str]:
        """The secrets that a value holds, by name."""
        self.found.clear()
        self.value(given)
        return set(self.found)

    def value(self, given: Any) -> Any:
        """The same value without any secret, in whatever it holds."""
        if self.pattern is None or given is None or isinstance(given, bool):
            return given
        if isinstance(given, str):
            return self.text(given)
        if isinstance(given, bytes):
            kept = self.text(given.decode("utf-8", "surrogateescape"))
            return kept.encode("utf-8", "surrogateescape")
        if isinstance(given, int | float):
            kept = self.text(str(given))
            return given if kept == str(given) else kept
        if isinstance(given, dict):
            return {self.value(key): self.value(each) for key, each in given.items()}
        if isinstance(given, list | tuple):
            return [self.value(each) for each in given]
        return given


NOTHING: Final = Hidden({})


def forms_of(value: str) -> Iterator[str]:
    """A value as exceptions and libraries write it: plain, escaped, quoted, in hex, by lines."""
    data = value.encode("utf-8", "surrogatepass")
    yield value
    yield repr(value)[1:-1]
    yield ascii(value)[1:-1]
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    for quoted in (quote(data), quote(data, safe=""), quote_plus(data), quote(data, safe="!'()*")):
        yield quoted
        yield ESCAPE.sub(lambda found: found.group().lower(), quoted)
    yield data.hex()
    yield data.hex().upper()
    yield base64.b64encode(data).decode()
    yield base64.urlsafe_b64encode(data).decode()
    lines = [line.strip() for line in value.splitlines()]
    if len(lines) > 1:
        yield from (line for line in lines if len(line) >= LINE_MIN)


def cores_of(value: str) -> Iterator[str]:
    """A value inside something longer in Base64, as in `user:password`: what is always there.

    Three bytes make four letters, so it has three forms, by where it begins; letters that hold bits
    of what is before or after it are left out.
    """
    data = value.encode("utf-8", "surrogatepass")
    for before, first in ((0, 0), (1, 2), (2, 3)):
        last = (before + len(data)) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield encode(bytes(before) + data).decode()[first:last]


def references(template: Any, path: Path = ()) -> Iterator[Reference]:
    """Every secret that a `with` names, and where."""
    if is_secret(template):
        yield path, template[SECRET]
    elif isinstance(template, dict):
        for key, each in template.items():
            yield from references(each, (*path, key))
    elif isinstance(template, list | tuple):
        for index, each in enumerate(template):
            yield from references(each, (*path, index))


def resolve(
    params: Any, wanted: Iterable[Reference], provider: Secrets, tenant: Tenant
) -> tuple[Any, dict[str, str]]:
    """The parameters with the values in place, and these by name.

    Raises SecretMissing, SecretTooShort, SecretUnavailable.
    """
    values: dict[str, str] = {}
    for path, name in wanted:
        if found_at(params, path) == {SECRET: name}:
            if name not in values:
                values[name] = looked_up(provider, tenant, name)
            params = replaced(params, path, values[name])
    return params, values


def looked_up(provider: Secrets, tenant: Tenant, name: str) -> str:
    """One value. An empty one is as good as none."""
    try:
        value = provider.get(tenant, name)
    except LookupError:
        value = None
    except Exception as error:  # noqa: BLE001  # whatever a provider does
        said = f"the secret {name!r} could not be read: {type(error).__name__}"
        raise SecretUnavailable(said) from None
    if not value:
        raise SecretMissing(f"there is no secret {name!r} for tenant {tenant!r}")
    if len(value) < VALUE_MIN:
        raise SecretTooShort(f"the secret {name!r} has fewer than {VALUE_MIN} characters")
    return value


def found_at(value: Any, path: Path) -> Any:
    """What stands at a path, None if nothing does."""
    for part in path:
        if isinstance(part, str) and isinstance(value, dict):
            value = value.get(part)
        elif isinstance(part, int) and isinstance(value, list) and part < len(value):
            value = value[part]
        else:
            return None
    return value


def replaced(value: Any, path: Path, new: str) -> Any:
    """A copy with something else at a path; what it shares is not touched."""
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy
