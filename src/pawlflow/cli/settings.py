"""`pawl.toml`: settings of a project. Flags go before the environment, that before the file.

Found in the current folder, or above it as far as the repository or the home folder reaches. A file
above that may be anybody's, and it can name a module to import, so it is not looked for.
"""

import os
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

NAME: Final = "pawl.toml"
WHERE: Final = "PAWL_SETTINGS"  # names the file; empty: there is none
FILE_BYTES_MAX: Final = 1 << 20
BYTES_MAX: Final = 64 << 20  # of a definition; of what is written there 16 MiB can be kept
STEPS_MAX: Final = 1_000_000
WAITING_MAX: Final = 1_000_000
TEXT_MAX: Final = 128
SHOWN_MAX: Final = 60  # characters of a value that is refused
LOG_WORDS: Final = ("debug", "info", "warning", "error", "json")
ROLE: Final = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,62}")
STORES: Final = ("sqlite:///", "memory:", "postgresql://", "postgres://")


class Key(NamedTuple):
    """One setting: what it may be, and where else it can be said."""

    expected: str
    accepts: Callable[[Any], bool]
    environment: str
    schema: dict[str, Any]
    default: Any = None


def text(value: Any) -> bool:
    """A word or name, in one line."""
    return isinstance(value, str) and 0 < len(value) <= TEXT_MAX and value.isprintable()


def log_words(value: Any) -> bool:
    """A level, `json`, or both: `debug,json`."""
    words = value.split(",") if isinstance(value, str) else [""]
    levels = [word for word in words if word != "json"]
    return len(levels) <= 1 and len(set(words)) == len(words) and set(words) <= set(LOG_WORDS)


def number_to(most: int) -> Callable[[Any], bool]:
    """A whole number from 1."""
    return lambda value: type(value) is int and 1 <= value <= most


def named(description: str, **more: Any) -> dict[str, Any]:
    """The schema of a text."""
    return {"type": "string", "description": description, "minLength": 1, **more}


KEYS: Final = {
    "db": Key(
        'a store such as "sqlite:///.pawl/pawl.db"; a relative path is relative to this file',
        lambda value: isinstance(value, str) and value.startswith(STORES),
        "PAWL_DB",
        named("Where instances live; a relative path is relative to this file."),
        "sqlite:///.pawl/pawl.db",
    ),
    "url": Key(
        'the address of a server, such as "https://pawl.example.org"',
        lambda value: isinstance(value, str) and value.startswith(("http://", "https://")),
        "PAWL_URL",
        named("A server to talk to instead.", format="uri"),
    ),
    "tenant": Key(
        f"a text of 1 to {TEXT_MAX} printable characters",
        text,
        "PAWL_TENANT",
        named("Whose instances.", maxLength=TEXT_MAX),
        "default",
    ),
    "by": Key(
        f"a name of 1 to {TEXT_MAX} printable characters",
        text,
        "PAWL_BY",
        named("Who acts; by default the user of the terminal.", maxLength=TEXT_MAX),
    ),
    "role": Key(
        "a role: a letter, then letters, digits, . _ or -",
        lambda value: isinstance(value, str) and ROLE.fullmatch(value) is not None,
        "PAWL_ROLE",
        named("In which role reviews are decided.", pattern=f"^{ROLE.pattern}$"),
    ),
    "worker": Key(
        'a module, or the path of a .py file relative to this one, such as "steps.py"',
        lambda value: isinstance(value, str) and bool(value),
        "PAWL_WORKER",
        named("The module of @step functions, or a .py file relative to this one."),
    ),
    "log": Key(
        "debug, info, warning or error; or json, by itself or after a comma",
        log_words,
        "PAWL_LOG",
        named("What is logged on standard error.", examples=["info", "debug,json"]),
    ),
    "json": Key(
        "true or false",
        lambda value: isinstance(value, bool),
        "PAWL_JSON",
        {"type": "boolean", "description": "Print JSON."},
        default=False,
    ),
    "limits.bytes": Key(
        f"a number of bytes from 1 to {BYTES_MAX:,}",
        number_to(BYTES_MAX),
        "",
        {"type": "integer", "minimum": 1, "maximum": BYTES_MAX, "description": "Of one file."},
        8 << 20,
    ),
    "limits.steps": Key(
        f"a number of steps from 1 to {STEPS_MAX:,}",
        number_to(STEPS_MAX),
        "",
        {"type": "integer", "minimum": 1, "maximum": STEPS_MAX, "description": "Of one workflow."},
        50_000,
    ),
    "limits.waiting": Key(
        f"a number of starts from 1 to {WAITING_MAX:,}",
        number_to(WAITING_MAX),
        "",
        {
            "type": "integer",
            "minimum": 1,
            "maximum": WAITING_MAX,
            "description": "Starts of a tenant that wait for the store's owner.",
        },
        10_000,
    ),
}


class Trouble(NamedTuple):
    """What is wrong with the file, where, and the way out."""

    line: int
    column: int
    code: str
    message: str
    hint: str


class SettingsError(Exception):
    """The file cannot be used."""

    def __init__(self, path: Path, source: str, troubles: list[Trouble]) -> None:
        super().__init__(troubles[0].message)
        self.path, self.source, self.troubles = path, source, troubles


class Settings(NamedTuple):
    """What the file says, by key, and on which line. Paths are as they are meant from here."""

    path: Path | None
    values: dict[str, Any]
    lines: dict[str, int]

    def limit(self, name: str) -> int:
        """How large a definition may be, its `bytes` or its `steps`; or how many starts wait."""
        found: int = self.values.get(f"limits.{name}", KEYS[f"limits.{name}"].default)
        return found


NOTHING: Final = Settings(None, {}, {})


def find(start: Path) -> Path | None:
    """The nearest `pawl.toml` that is ours to read, or the one that the environment names."""
    said = os.environ.get(WHERE)
    if said is not None:
        return Path(said).expanduser().absolute() if said else None
    return next((each for folder in folders(start) if (each := folder / NAME).is_file()), None)


def folders(start: Path) -> Iterator[Path]:
    """Where to look: here, and above as far as the repository reaches, or else the home folder."""
    line = [start, *start.parents]
    roots = [folder for folder in line if (folder / ".git").exists() or folder == home()][:1]
    reach = line.index(roots[0]) + 1 if roots else 1
    for folder in line[:reach]:
        if folder == start or is_ours(folder):
            yield folder


def home() -> Path | None:
    """The home folder, if there is one."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def is_ours(folder: Path) -> bool:
    """Does a folder above belong to this user? Somebody else's could name a module to import."""
    try:
        return folder.stat().st_uid in (os.getuid(), 0)
    except OSError:
        return False


def load() -> Settings:
    """The settings that hold in the current folder. Raises SettingsError."""
    try:
        start = Path.cwd()
    except OSError:  # it was removed, and has no parents
        return NOTHING
    path = find(start)
    if path is None:
        return NOTHING
    source = read(path)
    try:
        table = tomllib.loads(source)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(path, source, [misread(error, source)]) from error
    values = dict(flattened(table))
    troubles = sorted(trouble_in(source, name, value) for name, value in values.items())
    found = [each for each in troubles if each.code]
    if found:
        raise SettingsError(path, source, found)
    near = {name: from_here(name, value, path, start) for name, value in values.items()}
    return Settings(path, near, {name: place_of(source, name)[0] for name in values})


def read(path: Path) -> str:
    """The text of the file."""
    try:
        with path.open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        message = f"cannot read it: {error.strerror}"
        hint = f"check its permissions, or name another with {WHERE}"
        trouble = Trouble(1, 1, "settings.unreadable", message, hint)
        raise SettingsError(path, "", [trouble]) from error
    if len(data) > FILE_BYTES_MAX:
        message = f"it has more than {FILE_BYTES_MAX:,} bytes"
        trouble = Trouble(1, 1, "settings.unreadable", message, "settings are a few lines")
        raise SettingsError(path, "", [trouble])
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        trouble = Trouble(line, 1, "settings.toml", "this is no UTF-8 text", "save it as UTF-8")
        raise SettingsError(path, "", [trouble]) from error


def misread(error: tomllib.TOMLDecodeError, source: str) -> Trouble:
    """Where the text stops to be TOML."""
    said = str(error)
    place = re.search(r" \(at line (\d+), column (\d+)\)$", said)
    lines = source.split("\n")
    line, column = (int(place[1]), int(place[2])) if place else (len(lines), len(lines[-1]) + 1)
    words = said.partition(" (at ")[0]
    hint = 'a setting is written NAME = VALUE, a text in quotes: tenant = "acme"'
    return Trouble(line, column, "settings.toml", f"this is no TOML: {words}", hint)


def flattened(table: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Settings by name; those of `[limits]` as `limits.NAME`."""
    for name, value in table.items():
        if name == "limits" and isinstance(value, dict):
            yield from ((f"limits.{inner}", each) for inner, each in value.items())
        else:
            yield name, value


def trouble_in(source: str, name: str, value: Any) -> Trouble:
    """What is wrong with a setting; a trouble without a code is none."""
    line, column, behind = place_of(source, name)
    if name not in KEYS:
        known = [key for key in KEYS if ("." in key) == ("." in name)]
        listed = ", ".join(key.removeprefix("limits.") for key in known)
        where = " under [limits]" if "." in name else ""
        near = closest(name, known)
        hint = f"did you mean {near!r}?" if near else f"settings{where} are: {listed}"
        shown = name.removeprefix("limits.")
        message = f"there is no setting {shown!r}{where}"
        return Trouble(line, column, "settings.unknown", message, hint)
    if not KEYS[name].accepts(value):
        message = f"{name} cannot be {shown_of(value)}"
        return Trouble(line, behind, "settings.value", message, f"give {KEYS[name].expected}")
    return Trouble(line, column, "", "", "")


def closest(name: str, known: list[str]) -> str:
    """The setting that was meant, if it can be told; nothing otherwise."""
    from difflib import get_close_matches  # only on this path

    plain = [key.removeprefix("limits.") for key in known]
    near = get_close_matches(name.removeprefix("limits.").lower(), plain, n=1)
    elsewhere = [key for key in KEYS if key.removeprefix("limits.") == name]
    return next(iter(near or elsewhere), "")


def shown_of(value: Any) -> str:
    """A value in a message, in the words of TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return "a table" if isinstance(value, dict) else "a list"
    return (repr(value) if isinstance(value, str) else str(value))[:SHOWN_MAX]


def place_of(source: str, name: str) -> tuple[int, int, int]:
    """Line, column of the key, and column of the value. TOML's reader keeps no places."""
    table, _, key = name.rpartition(".") if name.startswith("limits.") else ("", "", name)
    inside = ""
    for number, line in enumerate(source.split("\n"), 1):
        header = re.match(r"\s*\[+\s*([^\]]*?)\s*\]", line)
        if header:
            inside = header[1].strip("\"'")
            if table == "" and inside == key:
                return number, header.start(1) + 1, header.start(1) + 1
        elif inside in ("", table):
            before = "" if inside == table else rf"{table}\s*(?:\.\s*|=\s*\{{(?:.*,)?\s*)"
            spelled = rf"\s*{before}(?P<key>[\"']?{re.escape(key)}[\"']?)\s*[.=]\s*"
            if found := re.match(spelled, line):
                return number, found.start("key") + 1, found.end() + 1
    return 1, 1, 1


def from_here(name: str, value: Any, path: Path, start: Path) -> Any:
    """A path in the file is relative to it, wherever it is used from."""
    folder = path.absolute().parent
    if folder == start.absolute() or not isinstance(value, str):
        return value
    if name == "db" and value.startswith("sqlite:///"):
        return f"sqlite:///{folder / Path(value.removeprefix('sqlite:///')).expanduser()}"
    if name == "worker" and (value.endswith(".py") or "/" in value):
        return str(folder / Path(value).expanduser())
    return value


def settings_schema() -> dict[str, Any]:
    """The JSON Schema of `pawl.toml`, for editors."""
    plain = {name: key.schema for name, key in KEYS.items() if "." not in name}
    inner = {name.partition(".")[2]: key.schema for name, key in KEYS.items() if "." in name}
    limits = {
        "type": "object",
        "description": "How large a definition may be.",
        "additionalProperties": False,
        "properties": inner,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Settings of Pawl (pawl.toml)",
        "type": "object",
        "additionalProperties": False,
        "properties": plain | {"limits": limits},
    }
