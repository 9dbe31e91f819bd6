"""Progress: how far a run of a loop is, under which names, and what is kept of it."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor as Threads
from contextvars import ContextVar
from difflib import get_close_matches
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final, Protocol, get_type_hints
from uuid import UUID

from pawlflow.effects.context import Terminal
from pawlflow.effects.refs import Ref
from pawlflow.effects.secrets import NOTHING, Hidden
from pawlflow.effects.steps import Step
from pawlflow.effects.typed import Convert, ConvertError, converter_of, plain_of
from pawlflow.model.codec import CodecError, decode_trusted
from pawlflow.model.intents import Call
from pawlflow.model.payload import Payload, PayloadError

FUNCTIONS_MAX: Final = 1_024  # whose annotations are remembered
NAME_MAX: Final = 500  # characters of a checkpoint's name, scopes included
REPORTED_MAX: Final = 20  # names that a report spells out
COMPARED_MAX: Final = 1_000  # new names that they are compared with
SCOPE: Final[ContextVar[str]] = ContextVar("pawl_scope", default="")


class Keeper(Protocol):
    """Who makes checkpoints durable."""

    async def kept(self, call: Call) -> dict[str, Payload]:
        """What was kept for a call, by any attempt of it."""
        ...

    async def keep(self, call: Call, name: str, result: Payload) -> Payload:
        """Keep a result; gives what is kept under the name: the first that came. Durable then."""
        ...


class Host(Protocol):
    """What a loop needs of whoever carries it out."""

    @property
    def keeper(self) -> Keeper | None:
        """Who makes checkpoints durable; nobody, where loops cannot be run."""
        ...

    @property
    def pool(self) -> Threads:
        """Threads for plain functions."""
        ...


class Memory:
    """A keeper for trying a loop out: what it kept is there as long as it is."""

    def __init__(self, kept: Mapping[str, Payload]) -> None:
        self.found = dict(kept)

    async def kept(self, _: Call) -> dict[str, Payload]:
        """All of it."""
        return dict(self.found)

    async def keep(self, _: Call, name: str, result: Payload) -> Payload:
        """The first that came."""
        return self.found.setdefault(name, result)


class Progress:
    """How far one run of a loop is; its contexts share it."""

    def __init__(self, keeper: Keeper, pool: Threads | None) -> None:
        self.keeper = keeper
        self.pool = pool
        self.kept: dict[str, Payload] = {}  # before this run
        self.asked: dict[str, None] = {}  # in this run
        self.last = ""  # the name that was asked for last
        self.cancelled = False
        self.told = False  # that it is no longer wanted

    def begin(self, kept: dict[str, Payload]) -> None:
        """A run of the loop begins, with what others have kept."""
        self.kept = kept
        self.asked.clear()

    def claim(self, name: str) -> None:
        """Ask for a name, once in a run."""
        if name in self.asked:
            raise Terminal(
                f"checkpoint {name!r} is asked for twice in one run, and a name stands for one "
                "result: give each round a scope of its own, `with ctx.scope(f'round-{n}'): ...`"
            )
        self.asked[name] = None
        self.last = name

    def unasked(self) -> list[str]:
        """What was kept before this run and never asked for in it.

        What lies inside a checkpoint that was found whole need not be asked for.
        """
        whole = self.asked.keys() & self.kept.keys()
        return [n for n in self.kept if n not in self.asked and not whole & set(above(n))]

    def new(self) -> list[str]:
        """What was asked for in this run, and is kept since."""
        return [name for name in self.asked if name not in self.kept]

    def so_far(self) -> str:
        """What a run that failed leaves to the next one, which cannot see any more what was new."""
        left, new = self.unasked(), self.new()
        if not left or not new:
            return ""
        return f"new in this run: {names_of(new)}; kept and not asked for so far: {names_of(left)}"

    def report(self) -> list[str]:
        """One line for each of these, with the name that it probably has now."""
        left, new = self.unasked(), self.new()
        names = new_names(left[:REPORTED_MAX], new[:COMPARED_MAX])
        lines = [f"{each!r} was kept and never asked for{names.get(each, '')}" for each in left]
        more = len(lines) - REPORTED_MAX
        return lines if more <= 0 else [*lines[:REPORTED_MAX], f"and {more:,} more"]


def names_of(names: list[str]) -> str:
    """Some names in one line."""
    more = f" and {len(names) - REPORTED_MAX:,} more" if len(names) > REPORTED_MAX else ""
    return ", ".join(map(repr, names[:REPORTED_MAX])) + more


def full_name(name: object) -> str:
    """A name with the scopes around it. Raises Terminal if it cannot be one."""
    if not isinstance(name, str) or not name.strip("/") or not name.isprintable():
        raise Terminal(f"{name!r} is no name of a checkpoint: a text in one line, as 'search'")
    scope = SCOPE.get()
    whole = f"{scope}/{name}" if scope else name
    if len(whole) > NAME_MAX:
        raise Terminal(f"the name {whole[:40]!r}… has more than {NAME_MAX} characters")
    return whole


def above(name: str) -> Iterator[str]:
    """The names that a name lies inside of."""
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name


def new_names(left: list[str], new: list[str]) -> dict[str, str]:
    """For names that were left, in words, the name that each probably has now."""
    found: dict[str, str] = {}
    rest = list(new)
    for old in left:
        scope, _, own = old.rpartition("/")
        beside = {
            each.rpartition("/")[2]: each for each in rest if each.rpartition("/")[0] == scope
        }
        near = [beside[each] for each in get_close_matches(own, beside, 1)]
        near = near or get_close_matches(
            old, [each for each in rest if each not in beside.values()], 1
        )
        near = near or (rest[:1] if len(left) == len(new) == 1 else [])
        if near:
            rest.remove(near[0])
            found[old] = f"; new is {near[0]!r}"
    return found


def key_inside(call: Call, name: str) -> str:
    """The key of a checkpoint: as the key of its call, so a UUID of version 8."""
    raw = bytearray(sha256(b"pawl.checkpoint.1" + bytes(call.key) + name.encode()).digest()[:16])
    raw[6], raw[8] = raw[6] & 0x0F | 0x80, raw[8] & 0x3F | 0x80
    return str(UUID(bytes=bytes(raw)))


def payload_of(name: str, value: object, call: Call, hidden: Hidden = NOTHING) -> Payload:
    """A result as it is kept, without secrets. Raises Terminal if it cannot be."""
    tenant = call.cell.tenant
    if isinstance(value, Ref):
        raise Terminal(f"checkpoint {name!r} gave what a flow will have, and not a value")
    try:
        try:
            return Payload.of(hidden.value(value), tenant)
        except (CodecError, RecursionError):
            return Payload.of(hidden.value(plain_of(value)), tenant)
    except (TypeError, NotImplementedError, CodecError, PayloadError, RecursionError) as error:
        raise Terminal(f"the result of checkpoint {name!r} cannot be kept: {error}") from error


def value_of(name: str, found: Payload) -> Any:
    """The value that is kept: read from its bytes each time, so that nobody shares it."""
    if found.data is None:
        raise Terminal(f"the result of checkpoint {name!r} was erased")
    return decode_trusted(found.data)


def typed(name: str, value: Any, fn: Callable[..., Any]) -> Any:
    """The value as the function says that it gives it: a dataclass, say. Raises Terminal."""
    convert = returned_by(fn.fn if isinstance(fn, Step) else fn)
    try:
        return value if convert is None else convert(value)
    except ConvertError as error:
        raise Terminal(
            f"what is kept as {name!r} is not what its function gives: {error}"
        ) from None


@lru_cache(FUNCTIONS_MAX)
def returned_by(fn: Callable[..., Any]) -> Convert | None:
    """How what is kept becomes what a function gives; None if it is the same."""
    try:
        hint = get_type_hints(fn, include_extras=True).get("return")
    except Exception:  # noqa: BLE001  # annotations are users' code; what cannot be read is plain
        return None
    return None if hint is None else converter_of(hint)
