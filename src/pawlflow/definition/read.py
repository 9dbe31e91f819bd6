"""YAML text to a tree of nodes that know where they stand.

Built on the events of libyaml's parser. Whatever is hostile or merely surprising is refused on the
event, before a node exists for it: aliases and anchors, tags, merge keys, duplicate keys, keys that
are not text, deep nesting, oversized files. Scalars are read by YAML 1.2 (core schema), so `no` is
a text and `012` is twelve. Aliases stay off for good: 306 bytes of them unfold to 25 MB.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
import yaml

from pawlflow.definition.characters import UNPRINTABLE, ReadError, read_source
from pawlflow.definition.finding import Place
from pawlflow.definition.report import Report
from pawlflow.definition.scalars import ScalarError, resolve
from pawlflow.definition.source import Source

DEPTH_MAX = 32  # a workflow needs about eight; readers may recurse below this without a thought
NODES_MAX = 1_000_000  # 50,000 steps of twenty values; bounds memory for files of tiny values
SCALAR_MAX = 1 << 20  # characters of one text; longer ones belong into a payload, not a definition
BYTES_MAX = 8 << 20
STEPS_MAX = 50_000
DOCUMENTS_MAX = 1_000  # each is checked on its own, which costs more than its bytes

NO_KEYS: dict[str, int] = {}  # of everything but mappings


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much a reader takes. The API passes smaller ones than the command line."""

    bytes_max: int = BYTES_MAX
    steps_max: int = STEPS_MAX
    nodes_max: int = NODES_MAX
    depth_max: int = DEPTH_MAX
    scalar_max: int = SCALAR_MAX
    documents_max: int = DOCUMENTS_MAX


FILE_LIMITS = Limits()
API_LIMITS = Limits(bytes_max=1 << 20, steps_max=2_000, nodes_max=100_000, documents_max=100)


# Nodes make no cycles. A large file has hundreds of thousands, which the collector need not walk.
class Node(msgspec.Struct, frozen=True, eq=False, gc=False):
    """A value and where it was written; of a mapping, `keys` holds the index of each key."""

    value: Any  # a scalar, a list of nodes, or a dict of nodes
    source: Source
    start: int
    end: int
    keys: dict[str, int]

    @property
    def place(self) -> Place:
        """Where the value begins."""
        return self.source.place(self.start)

    def place_of(self, key: str) -> Place:
        """Where a key of this mapping is written."""
        return self.source.place(self.keys[key])

    def place_at(self, offset: int) -> Place:
        """Where a character of this text is written."""
        return self.source.place_inside(self.start, self.end, self.value, offset)

    def at(self, path: tuple[str | int, ...]) -> "Node":
        """The node that a path of keys and indexes leads to."""
        node = self
        for part in path:
            node = node.value[part]
        return node


def plain(node: Node) -> Any:
    """The value without its places: dicts, lists and scalars."""
    value = node.value
    if isinstance(value, dict):
        return {key: plain(child) for key, child in value.items()}
    if isinstance(value, list):
        return [plain(child) for child in value]
    return value


def read_yaml(
    text: str | bytes, file: str, report: Report, *, limits: Limits = FILE_LIMITS
) -> list[Node]:
    """The documents of a file; what is wrong with it goes into the report.

    Nothing comes back if something had to be left out: it would only seem to be missing.
    """
    try:
        source = read_source(text, file, bytes_max=limits.bytes_max)
        composer = Composer(source, report, limits)
        for event in parse(source):
            composer.take(event)
    except ReadError as error:
        report.error(error.place, error.code, error.message, error.hint)
        return []
    return composer.documents if composer.whole else []


def parse(source: Source) -> Iterator[Any]:
    """The parser's events, with its complaints turned into ours."""
    try:
        yield from yaml.parse(source.text, Loader=yaml.CSafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        index = mark.index if mark else 0
        where = f" ({error.context})" if error.context else ""
        raise ReadError(
            source.place(index),
            "yaml.syntax",
            f"not YAML: {error.problem}{where}",
            syntax_hint(error.problem or ""),
        ) from None


def syntax_hint(problem: str) -> str:
    """The likely way out of a syntax error."""
    if "mapping values" in problem:
        return "put a text that holds ': ' into quotes, and check the indentation"
    if "cannot start any token" in problem:
        return "indent with spaces, and put a text that starts with @, ` or % into quotes"
    if "escape" in problem:
        return "write the character itself, or use single quotes, where a backslash is a backslash"
    return "check the indentation, the brackets and the quotes around this place"


class Open:
    """A mapping or a list whose end has not been seen yet."""

    __slots__ = ("items", "key", "keys", "start")

    def __init__(self, start: int, keys: dict[str, int] | None) -> None:
        self.start = start
        self.keys = keys  # None: a list
        self.items: Any = [] if keys is None else {}
        self.key: Node | None = None  # the key whose value comes next


class Composer:
    """Builds nodes from events, with a stack of its own instead of recursion."""

    def __init__(self, source: Source, report: Report, limits: Limits) -> None:
        self.source = source
        self.report = report
        self.limits = limits
        self.documents: list[Node] = []
        self.stack: list[Open] = []
        self.nodes_left = limits.nodes_max
        self.whole = True  # has everything so far found its place?
        self.actions = {
            yaml.ScalarEvent: self.scalar,
            yaml.MappingStartEvent: self.mapping_start,
            yaml.SequenceStartEvent: self.sequence_start,
            yaml.MappingEndEvent: self.end,
            yaml.SequenceEndEvent: self.end,
            yaml.AliasEvent: self.alias,
        }

    def take(self, event: Any) -> None:
        """One event; those about streams and documents say nothing we need."""
        action = self.actions.get(type(event))
        if action:
            action(event)

    def scalar(self, event: Any) -> None:
        """A text, number, flag or null."""
        self.count(event)
        self.refuse_extras(event)
        value = event.value
        if len(value) > self.limits.scalar_max:
            raise self.error(
                event,
                "yaml.scalar_too_long",
                f"a text of {len(value):,} characters; at most {self.limits.scalar_max:,} are read",
                "pass large texts as input, not in the definition",
            )
        if event.implicit[0]:
            value = self.resolve(event)
        elif found := UNPRINTABLE.search(value):
            self.note(
                event,
                "yaml.control",
                f"an escape gives the control character U+{ord(found[0]):04X}",
                "leave it out; only tab, line feed and carriage return may be escaped",
            )
        self.add(Node(value, self.source, event.start_mark.index, event.end_mark.index, NO_KEYS))

    def resolve(self, event: Any) -> Any:
        """What a plain scalar means."""
        try:
            return resolve(event.value)
        except ScalarError as error:
            self.note(event, error.code, error.message, error.hint)
            return None

    def mapping_start(self, event: Any) -> None:
        """Keys and values follow."""
        self.open(event, {})

    def sequence_start(self, event: Any) -> None:
        """Items follow."""
        self.open(event, None)

    def open(self, event: Any, keys: dict[str, int] | None) -> None:
        """Go one level down."""
        self.count(event)
        self.refuse_extras(event)
        if len(self.stack) >= self.limits.depth_max:
            raise self.error(
                event,
                "yaml.depth",
                f"nested deeper than {self.limits.depth_max} levels",
                "flatten the data, or pass it as input",
            )
        self.stack.append(Open(event.start_mark.index, keys))

    def end(self, event: Any) -> None:
        """Come one level up, with a finished node."""
        done = self.stack.pop()
        keys = done.keys or NO_KEYS
        self.add(Node(done.items, self.source, done.start, event.end_mark.index, keys))

    def alias(self, event: Any) -> None:
        """Refuse it, and put nothing in its place."""
        self.count(event)
        self.note(
            event,
            "yaml.alias",
            f"alias *{event.anchor}: aliases are not read",
            "write the value out at each place",
        )
        self.whole = False
        self.add(Node(None, self.source, event.start_mark.index, event.end_mark.index, NO_KEYS))

    def add(self, node: Node) -> None:
        """Put a finished node where it belongs: a document, an item, a key or a value."""
        if not self.stack:
            self.add_document(node)
            return
        parent = self.stack[-1]
        if parent.keys is None:
            parent.items.append(node)
        elif parent.key is None:
            parent.key = node
        else:
            self.add_entry(parent, parent.key, node)
            parent.key = None

    def add_document(self, node: Node) -> None:
        """Keep a document, if there are not too many."""
        if len(self.documents) >= self.limits.documents_max:
            raise ReadError(
                node.place,
                "yaml.too_many_documents",
                f"more than {self.limits.documents_max:,} documents in one file",
                "split the file",
            )
        self.documents.append(node)

    def add_entry(self, parent: Open, key: Node, node: Node) -> None:
        """Put a value under its key, if the key is one."""
        name, keys = key.value, parent.keys
        assert keys is not None
        if not isinstance(name, str):
            self.whole = False
            self.note_key(key)
        elif name == "<<" and self.source.text.startswith("<<", key.start):
            self.whole = False
            self.report.error(
                key.place,
                "yaml.merge",
                "merge key <<: merging is not done",
                "write the fields out at each place",
            )
        elif name in keys:
            first = self.source.place(keys[name])
            self.report.error(
                key.place,
                "yaml.duplicate_key",
                f"key {name!r} is given twice; the first is in line {first.line}",
                "remove one of the two",
            )
        else:
            parent.items[name] = node
            keys[name] = key.start

    def note_key(self, key: Node) -> None:
        """Report a key that is not a text."""
        if key.start == key.end:
            shown, hint = "an empty key", "write a name before the colon"
        elif isinstance(key.value, dict | list):
            shown, hint = "a list or mapping as key", "use a text as key"
        else:
            written = self.source.text[key.start : key.end]
            shown, hint = f"the key {written} is not a text", f'write "{written}"'
        self.report.error(key.place, "yaml.key", f"{shown}; keys are texts", hint)

    def count(self, event: Any) -> None:
        """Refuse a file of too many values."""
        self.nodes_left -= 1
        if self.nodes_left < 0:
            raise self.error(
                event,
                "yaml.too_many_nodes",
                f"more than {self.limits.nodes_max:,} values in one file",
                "split the file",
            )

    def refuse_extras(self, event: Any) -> None:
        """Refuse anchors and tags."""
        if event.anchor is not None:
            self.note(
                event,
                "yaml.alias",
                f"anchor &{event.anchor}: anchors and aliases are not read",
                "write the value out at each place",
            )
        if event.tag is not None:
            self.note(
                event,
                "yaml.tag",
                f"tag {event.tag}: tags are not read",
                "remove the tag; put a value that must be a text into quotes",
            )

    def note(self, event: Any, code: str, message: str, hint: str) -> None:
        """Report and read on: the rest of the file may hold more to say."""
        self.report.error(self.source.place(event.start_mark.index), code, message, hint)

    def error(self, event: Any, code: str, message: str, hint: str) -> ReadError:
        """The error that ends the reading, at an event."""
        return ReadError(self.source.place(event.start_mark.index), code, message, hint)
