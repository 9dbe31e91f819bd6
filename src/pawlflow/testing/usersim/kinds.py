"""The kinds of fault a user's workflow may meet, by name: how often, and in words.

Those that are on by default are borne by a workflow that is right. The harsh ones can only be borne
by executors that are: they are asked for by name.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from pawlflow.definition.express.errors import did_you_mean
from pawlflow.testing.sim.chance import Dice


class Kind(msgspec.Struct, frozen=True):
    """One kind: the rates a seed may draw for it, and what it does."""

    rates: tuple[float, ...]
    words: str  # for --list-faults
    told: str  # for the story, after what it struck
    harsh: bool = False


class BadFaultsError(Exception):
    """No such kind of fault."""


KINDS: Final[dict[str, Kind]] = {
    "crash.before": Kind(
        (0.02, 0.08), "the engine dies before a commit", "dies before it could commit"
    ),
    "crash.after": Kind(
        (0.02, 0.08),
        "the engine dies after a commit, before anybody hears of it",
        "dies right after a commit",
    ),
    "crash.publish": Kind(
        (0.02, 0.08), "the engine dies while it sends calls out", "dies while it sends calls out"
    ),
    "crash.reply": Kind((0.02, 0.06), "the engine dies after an answer", "dies after an answer"),
    "node.crash": Kind((0.02, 0.06), "a node dies at any moment", "dies"),
    "node.pause": Kind(
        (0.02, 0.06),
        "a node is paused, often past its lease, and wakes up as if nothing was",
        "is paused, and does not know",
    ),
    "node.steal": Kind(
        (0.02, 0.06), "a node takes shards from one that is alive", "takes shards from the others"
    ),
    "clock.jump": Kind((0.03, 0.1), "a clock jumps, up to an hour either way", "its clock jumps"),
    "clock.back": Kind(
        (0.01, 0.04), "a clock is set back in the middle of work", "its clock is set back"
    ),
    "store.applied": Kind(
        (0.03, 0.1),
        "a commit of unknown outcome that was applied",
        "the connection breaks after a commit: was it applied? (it was)",
    ),
    "store.lost": Kind(
        (0.03, 0.1),
        "a commit of unknown outcome that was lost",
        "the connection breaks before a commit: was it applied? (it was not)",
    ),
    "store.late": Kind(
        (0.02, 0.06),
        "a commit of unknown outcome that is applied later",
        "the connection breaks, and the commit is still on its way",
    ),
    "store.failed": Kind((0.02, 0.06), "a commit fails", "a commit fails"),
    "store.slow": Kind((0.05, 0.2), "the store takes seconds", "the store takes its time"),
    "store.full": Kind((0.02, 0.06), "the store has no room for a while", "no room in the store"),
    "store.lands": Kind(
        (0.3,), "a commit of an engine that is dead arrives", "the commit of a dead engine arrives"
    ),
    "bus.drop": Kind((0.05, 0.15), "a call or an answer is lost", "is lost on its way"),
    "bus.double": Kind((0.1, 0.4), "a call or an answer comes twice", "comes twice"),
    "bus.delay": Kind(
        (0.05, 0.2), "a call or an answer is late, and overtaken", "is late, and others overtake it"
    ),
    "post.failed": Kind((0.05, 0.2), "the mailbox refuses", "the mailbox does not answer"),
    "post.unknown": Kind(
        (0.05, 0.2), "mail of unknown outcome", "its mail is there, and nobody says so"
    ),
    "poke.lost": Kind((0.2, 0.6), "nobody is told that there is mail", "nobody knocks"),
    "exec.transient": Kind((0.1, 0.3), "an attempt fails: transient", "fails (transient)"),
    "exec.external": Kind((0.05, 0.15), "an attempt fails: external", "fails (external)"),
    "exec.agent": Kind((0.05, 0.15), "an attempt fails: agent", "fails (agent)"),
    "exec.validation": Kind((0.05, 0.15), "an attempt fails: validation", "fails (validation)"),
    "exec.governance": Kind((0.03, 0.1), "an attempt fails: governance", "fails (governance)"),
    "exec.terminal": Kind((0.05, 0.15), "an attempt fails: terminal", "fails (terminal)"),
    "exec.timeout": Kind(
        (0.03, 0.1),
        "an attempt reports that it ran out of time; nothing was done",
        "reports a timeout",
    ),
    "exec.slow": Kind(
        (0.2, 0.5), "an executor begins late, perhaps past the timeout", "is slow to begin"
    ),
    "exec.late": Kind(
        (0.2, 0.5),
        "an executor does it at once and answers late, perhaps past the timeout",
        "is done, and answers late",
    ),
    "exec.lost": Kind(
        (0.2, 0.5),
        "an executor does it and dies before it answers; told again, it remembers",
        "is done, and its executor dies before it answers",
    ),
    "exec.crash": Kind(
        (0.05, 0.15),
        "an executor dies before it did anything; told again, it does it",
        "is not done: its executor dies first",
    ),
    "undo.transient": Kind(
        (0.1, 0.4), "an undo fails once or twice: transient", "fails (transient)"
    ),
    "undo.fails": Kind((0.1, 0.4), "an undo fails for good", "fails (terminal)", harsh=True),
    "undo.slow": Kind(
        (0.1, 0.3),
        "an undo takes longer than its timeout, or nearly so",
        "is slow to begin",
        harsh=True,
    ),
    "exec.forgets": Kind(
        (0.3, 0.8),
        "an executor that is told twice does it twice (--idempotent STEP: it never does)",
        "was done before, and its executor does not remember",
        harsh=True,
    ),
    "exec.unsure": Kind(
        (0.05, 0.2),
        "an executor does it and reports a failure all the same",
        "is done, and reported as failed",
        harsh=True,
    ),
    "exec.deaf": Kind(
        (0.2, 0.6),
        "an executor does what it was told to stop",
        "does not hear that it is to stop",
        harsh=True,
    ),
    "client.hasty": Kind(
        (0.1, 0.3), "somebody asks again before there was an answer", "asks again at once"
    ),
    "client.twice": Kind((0.1, 0.3), "an instance is started twice", "is started twice"),
    "people.reject": Kind((0.1, 0.4), "a gate or a budget is rejected", "somebody says no"),
    "people.silent": Kind(
        (0.1, 0.4), "nobody decides, or signals, until it is too late", "nobody comes"
    ),
    "people.twice": Kind((0.1, 0.3), "somebody decides or signals twice", "somebody does it twice"),
    "people.early": Kind(
        (0.3, 0.6), "a signal comes before anybody waits for it", "the signal comes early"
    ),
    "people.stray": Kind(
        (0.1, 0.3), "a signal that does not match comes first", "a signal comes that does not match"
    ),
    "people.cancel": Kind((0.05, 0.1, 0.2), "somebody cancels the instance", "is cancelled"),
    "people.pause": Kind((0.02, 0.06), "somebody pauses it, and lets it go on later", "is paused"),
}
FAILURES: Final = (
    *("exec.transient", "exec.external", "exec.agent", "exec.validation"),
    *("exec.governance", "exec.terminal", "exec.timeout"),
)
UNDO_FAILURES: Final = {"undo.transient": "transient", "undo.fails": "terminal"}
UNDO_TRIES: Final = 2  # of one undo that fail by chance: it is to be borne by trying again
PEOPLE: Final = "people."
SHARES: Final = (0.15, 0.3, 0.5, 0.8)  # of the kinds that a seed has
FOCUS: Final = ((), (), (), ("exec",), ("exec", "undo"), ("exec", "bus", "undo", "people"))


def defaults() -> frozenset[str]:
    """What strikes when nobody says otherwise."""
    return frozenset(name for name, kind in KINDS.items() if not kind.harsh)


def chosen(wanted: Iterable[str]) -> frozenset[str]:
    """The kinds that a list names: kinds, groups, `all`, `none`; with + or - beside the default.

    Raises BadFaultsError.
    """
    words = [word.strip() for text in wanted for word in text.split(",") if word.strip()]
    found = set(defaults()) if not words or words[0][0] in "+-" else set[str]()
    for word in words:
        named = kinds_of(word.lstrip("+-"))
        found = found - named if word[0] == "-" else found | named
    return frozenset(found)


def kinds_of(word: str) -> set[str]:
    """One word: a kind, or a group of them."""
    if word in ("all", "none", "default"):
        return {"all": set(KINDS), "none": set(), "default": set(defaults())}[word]
    found = {name for name in KINDS if word in (name, name.partition(".")[0])}
    if not found:
        groups = {name.partition(".")[0] for name in KINDS}
        hint = did_you_mean(word, [*KINDS, *groups, "all", "none"])
        raise BadFaultsError(f"{word!r} is no kind of fault: {hint}; --list-faults lists them")
    return found


def drawn(dice: Dice, allowed: frozenset[str]) -> dict[str, float]:
    """Which kinds a seed has, and how often each strikes: many seeds with few find most.

    Half of the seeds leave the engine in peace: it bears its faults by itself, and they would only
    hide what steps and people do to a workflow.
    """
    share = dice.pick("swarm.share", SHARES)
    focus = dice.pick("swarm.focus", FOCUS)
    wanted = [name for name in KINDS if name in allowed]
    inner = [name for name in wanted if not focus or name.partition(".")[0] in focus]
    on = [name for name in inner or wanted if dice.roll(f"swarm.on:{name}") < share]
    return {name: dice.pick(f"swarm.rate:{name}", KINDS[name].rates) for name in on}
