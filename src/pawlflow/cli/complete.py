"""What may come next at a terminal: asked for by the scripts of `pawl completion`, at every tab.

Light to import, quick, and silent: whatever is wrong, there is nothing to offer. Which verbs and
options there are comes from the script, which was made from the verbs themselves.
"""

import json
import os
import shlex
import sys
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

TABLE: Final = "_PAWL_TABLE"
FILES: Final = ":files"  # let the shell complete a path
FOUND_MAX: Final = 200
Table = dict[str, dict[str, Any]]


class Found(NamedTuple):
    """A word that may come next, and what it means."""

    word: str
    about: str = ""


class Place(NamedTuple):
    """Where the cursor stands: below which verb, in whose value, behind how many words."""

    path: str
    given: tuple[str, ...]
    option: str  # whose value is being written
    begin: str
    kept: str  # what of the word stays before it: `--db=`
    bare: bool  # behind `--`, where nothing is an option


def main(words: Sequence[str]) -> None:
    """`pawl __complete SHELL WORDS...`: a line for each word that may come next."""
    try:
        shell, typed = words[0], list(words[1:])
        if shell == "bash":
            typed = words_of(typed[0])
        table: Table = json.loads(os.environ[TABLE])
        found = complete(table, typed)
        sys.stdout.write("".join(f"{line}\n" for line in spelled(shell, found, typed[-1])))
    except BaseException:  # noqa: BLE001  # a tab must never print a trace, whatever it is
        return


def words_of(line: str) -> list[str]:
    """The words of a line up to the cursor, without the command; the last may be empty."""
    splitter = shlex.shlex(line, posix=True, punctuation_chars="")
    splitter.whitespace_split = True
    splitter.commenters = ""
    words: list[str] = []
    try:
        words += splitter
    except ValueError:  # a quote that is still open
        words.append(splitter.token)
    return [*words[1:], ""] if line[-1:].isspace() else words[1:] or [""]


def complete(table: Table, words: Sequence[str]) -> list[Found]:
    """The words that may stand in the place of the last one."""
    place = place_of(table, words)
    here = table.get(place.path, {})
    options = options_at(table, place.path)
    if place.option:
        return values(options.get(place.option, ["", ""])[1], place, words)
    if place.begin.startswith("-") and not place.bare:
        return matching({name: about for name, (about, _) in options.items()}, place.begin)
    if "verbs" in here:
        return [] if place.given else matching(here["verbs"], place.begin)
    kinds = here.get("arguments", [])
    if not kinds:
        return []
    many = here.get("many", False)
    at = len(place.given)
    return values(kinds[min(at, len(kinds) - 1)], place, words) if many or at < len(kinds) else []


def options_at(table: Table, path: str) -> dict[str, list[Any]]:
    """The options of a verb: its own, and those that stand everywhere."""
    own: dict[str, list[Any]] = table.get(path, {}).get("options", {})
    return own | {n: o for n, o in table[""]["options"].items() if n not in own}


def place_of(table: Table, words: Sequence[str]) -> Place:
    """Read what was typed before the last word."""
    path, option, bare = "", "", False
    given: list[str] = []
    for word in words[:-1]:
        here = table.get(path, {})
        if option:
            option = ""
        elif word == "--":
            bare = True
        elif word.startswith("-") and not bare:
            name = word.partition("=")[0]
            takes = options_at(table, path).get(name, ["", None])[1]
            option = name if takes is not None and "=" not in word else ""
        elif word in here.get("verbs", {}):
            path = f"{path} {word}".strip()
        else:
            given.append(word)
    last = words[-1]
    name, sign, value = last.partition("=")
    if not option and sign and name.startswith("--") and not bare:
        return Place(path, tuple(given), name, value, name + sign, bare)
    return Place(path, tuple(given), option, last, "", bare)


def values(wanted: Any, place: Place, words: Sequence[str]) -> list[Found]:
    """The values of an option or argument: a list, a path, or names that the store knows."""
    if isinstance(wanted, list):
        found = matching(dict.fromkeys(wanted, ""), place.begin)
    elif wanted == "file":
        found = [Found(FILES)]
    elif wanted == "code":
        from pawlflow.errors import explanations

        known = {code: words.cause for code, words in explanations().items()}
        found = matching(known, place.begin)
    elif wanted:
        found = [Found(name) for name in known_names(wanted, place, words)]
        if wanted == "workflow" and not place.option:
            found.append(Found(FILES))
    else:
        found = []
    return [Found(place.kept + each.word, each.about) for each in found] if place.kept else found


def matching(known: dict[str, str], begin: str) -> list[Found]:
    """Those that begin so."""
    return [Found(name, about) for name, about in known.items() if name.startswith(begin)]


def known_names(kind: str, place: Place, words: Sequence[str]) -> list[str]:
    """Names that the store knows, whichever it is."""
    from pathlib import Path

    from pawlflow.store.glance import names_in

    url, tenant = typed(words, "db"), typed(words, "tenant")
    if not url.startswith("sqlite:///"):
        return []
    path = Path(url.removeprefix("sqlite:///")).expanduser()
    of = place.given[0].partition("/")[0] if place.given else ""
    return names_in(path, kind, tenant, place.begin, of)[:FOUND_MAX]


def typed(words: Sequence[str], name: str) -> str:
    """A setting: as typed, else from the environment, else from pawl.toml, or its default."""
    from pawlflow.cli.settings import KEYS, SettingsError, load

    said = ""
    for before, word in zip(["", *words[:-1]], words, strict=True):
        said = word if before == f"--{name}" else said
        said = word.partition("=")[2] if word.startswith(f"--{name}=") else said
    said = said or os.environ.get(KEYS[name].environment, "")
    if said:
        return said
    try:
        return str(load().values.get(name, KEYS[name].default))
    except SettingsError:
        return str(KEYS[name].default)


def spelled(shell: str, found: Sequence[Found], last: str) -> list[str]:
    """The answer as a shell reads it."""
    unique = list(dict.fromkeys(found))
    if shell == "fish":
        return [f"{each.word}\t{each.about}" if each.about else each.word for each in unique]
    if shell == "zsh":
        return [zsh_line(each) for each in unique]
    breaks = [sign for sign in "=:" if sign in os.environ.get("COMP_WORDBREAKS", "=:")]
    cut = max((last.rfind(sign) for sign in breaks), default=-1) + 1
    return [FILES if each.word.endswith(FILES) else bash_word(each.word[cut:]) for each in unique]


def zsh_line(found: Found) -> str:
    """`word:about`; a colon in the word is escaped."""
    if found.word.endswith(FILES):
        return FILES
    word = found.word.replace("\\", "\\\\").replace(":", "\\:")
    return f"{word}:{found.about}" if found.about else word


def bash_word(word: str) -> str:
    """A word as it can be typed."""
    return "".join(f"\\{sign}" if sign in " []()$&;<>|*?'\"\\`!" else sign for sign in word)
