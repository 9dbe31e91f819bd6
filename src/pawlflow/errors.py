"""Every public error by its code: what it means, and the way out.

`pawl explain CODE` prints from this table, and docs/errors.md lists it. A code never changes its
meaning; retired codes stay, marked as such.
"""

from typing import Final, NamedTuple

from pawlflow.cli_codes import CLI_CODES
from pawlflow.definition.codes import CODES as DEFINITION_CODES
from pawlflow.error_codes import ENGINE_CODES
from pawlflow.flows.codes import FLOW_CODES
from pawlflow.machine_codes import MACHINE_CODES
from pawlflow.policy_codes import POLICY_CODES


class Explanation(NamedTuple):
    """What a code means."""

    cause: str
    way_out: str


KERNEL_CODES: Final[dict[str, Explanation]] = {
    "approval.by_requester": Explanation(
        "The gate says notBy: requester, and the person deciding started the instance.",
        "Let somebody else decide.",
    ),
    "approval.duplicate": Explanation(
        "This person has already approved; a quorum counts people, not clicks.",
        "Let another person with the role approve.",
    ),
    "approval.expired": Explanation(
        "Nobody decided before the gate's `expires` had passed.",
        "Resume the step to ask again with a fresh expiry, or cancel the instance.",
    ),
    "approval.not_open": Explanation(
        "The step is not a gate that is open now: not reached yet, decided, or expired.",
        "Look at the step's state; an expired gate must be resumed before it can be decided.",
    ),
    "approval.rejected": Explanation(
        "A human rejected the gate; `onReject` decided what followed.",
        "Start a new instance once the objection is settled.",
    ),
    "approval.changes": Explanation(
        "A human asked for changes at a gate; their comment is the feedback.",
        "Do what it says; it does not count against maxCorrectionAttempts.",
    ),
    "approval.revising": Explanation(
        "What the gate would send back is being done again already, for another gate.",
        "Decide once that is done; `pawl why ID` says what it waits for.",
    ),
    "approval.wrong_role": Explanation(
        "The gate asks for a role, and another one was given, or none.",
        "Let somebody decide who has the role that the message names.",
    ),
    "attempt.abandoned": Explanation(
        "The executor ended without a result, for example because its process was stopped.",
        "Nothing: it counts as a transient failure and follows the retryPolicy.",
    ),
    "budget.exceeded": Explanation(
        "The step would have passed a hard limit of the budget, and a human did not raise it.",
        "Start a new instance with a larger budget, or let the step cost less.",
    ),
    "budget.limits": Explanation(
        "New limits that cannot be: amounts by unit of account, of units that have a hard limit.",
        """Give JSON such as --limits '{"usd": 10}', or none: then the step gets what it needs.""",
    ),
    "budget.too_low": Explanation(
        "The new limit is below what the step needs, or below the present one.",
        "Give at least what the message says, or reject the review.",
    ),
    "check.failed": Explanation(
        "The step's result does not fit its `check` schema.",
        "Read the findings. With maxCorrectionAttempts the step gets them as feedback.",
    ),
    "child.cancelled": Explanation(
        "The child workflow that a step waited for was cancelled, by a person or with its parent.",
        "Look at the child (`pawl why ID`); a retry of the step starts another one.",
    ),
    "child.too_deep": Explanation(
        "A child workflow has more than 64 generations of parents above it.",
        "A workflow that starts itself needs a `when` that ends it; go over lists with `forEach`.",
    ),
    "child.unknown": Explanation(
        "A step starts a child workflow whose name nobody has published for this tenant.",
        "Publish it (`pawl apply -f FILE`, or `pawl.load` in Python), then start or retry.",
    ),
    "codec.not_canonical": Explanation(
        "Bytes that should be canonical CBOR are not.",
        "They were not written by Pawl, or were changed since: restore them from a backup.",
    ),
    "codec.range": Explanation(
        "A number outside 64 bits, or one that is not finite.",
        "Send it as text.",
    ),
    "codec.record": Explanation(
        "Bytes are canonical, but are not the record they should be.",
        "They may come from a newer version: use that version, or restore from a backup.",
    ),
    "codec.text": Explanation(
        "Text holds half of a surrogate pair, which has no UTF-8.",
        "Repair the text where it is made.",
    ),
    "codec.too_deep": Explanation(
        "A value is nested too deeply.",
        "Flatten it, or store it elsewhere and pass a reference.",
    ),
    "codec.too_large": Explanation(
        "A document is larger than is read.",
        "Store it elsewhere and pass a reference.",
    ),
    "codec.type": Explanation(
        "A value is of a kind that has no canonical form.",
        "Use null, booleans, numbers, text, bytes, lists and maps with text keys.",
    ),
    "definition.unknown": Explanation(
        "The instance was to start under a definition this cell does not have.",
        "Publish the definition first.",
    ),
    "effect.failed": Explanation(
        "An executor reported that the work failed.",
        "Its message says why; the class decides whether it is tried again.",
    ),
    "effect.orphaned": Explanation(
        "An effect succeeded after its instance had closed, so nobody waits for it or undoes it.",
        "Undo it by hand or let it stand, then say so: `pawl review settle ID`.",
    ),
    "entropy.short": Explanation(
        "A start came without enough randomness for its keys.",
        "A fault in the host: report it.",
    ),
    "expression.not_bool": Explanation(
        "A condition (`when`, `match`) gave something else than true, false or null.",
        "Compare explicitly, for example `input.flag == true`.",
    ),
    "expression.not_list": Explanation(
        "The `forEach` of a step gave something else than a list.",
        "Give it a list: an expression such as `input.targets`, or a result that is one.",
    ),
    "escalation.wrong_role": Explanation(
        "The escalation is for another rung of the ladder.",
        "Act in the role it asks for now, or in one above it.",
    ),
    "event.not_awaited": Explanation(
        "No open wait of this instance matches the event.",
        "Nothing: broadcast events are not kept. Use a signal if it must wait.",
    ),
    "input.invalid": Explanation(
        "The input does not fit the workflow's `input` schema.",
        "Mend the input; the message names each place.",
    ),
    "instance.closed": Explanation(
        "The instance is closed; closed instances never change.",
        "Start a new instance.",
    ),
    "instance.exists": Explanation(
        "An instance with this id exists already.",
        "Use another id, or look at the one that exists.",
    ),
    "instance.not_paused": Explanation("The instance is not paused.", "Nothing to do."),
    "instance.paused": Explanation("The instance is paused already.", "Unpause it to go on."),
    "instance.stopping": Explanation(
        "The outcome is decided: the instance is stopping or being compensated.",
        "Wait for it to close; compensation cannot be cancelled.",
    ),
    "instance.unknown": Explanation(
        "There is no such instance.",
        "Check the id and the tenant.",
    ),
    "journal.chain": Explanation(
        "A frame is chained to another frame than the one before it.",
        "The file was changed or put together wrongly: restore it from a backup.",
    ),
    "journal.definition": Explanation(
        "An instance was started under a definition that is not in the file, or is not readable.",
        "Export again with its definitions; a newer version may be needed to read them.",
    ),
    "journal.entry": Explanation(
        "A payload or disposition in the file is not what its address or form says.",
        "The file was changed: restore it from a backup.",
    ),
    "journal.gap": Explanation(
        "A sequence number is missing.",
        "Frames were lost or reordered: restore the file from a backup.",
    ),
    "journal.hash": Explanation(
        "A frame's content does not give the hash it carries.",
        "The file was changed: restore it from a backup.",
    ),
    "journal.elsewhere": Explanation(
        "The archive is of another store, or of a store that has lost what it was made of.",
        "Hold it against the store it came from; by itself it is as good as it says.",
    ),
    "journal.proof": Explanation(
        "An entry of an archive is not proven to be in its frame.",
        "The file was changed: archive the instance again, or restore the file from a backup.",
    ),
    "journal.truncated": Explanation(
        "The file ends inside a document.",
        "It was not written to its end: export it again.",
    ),
    "journal.turn": Explanation(
        "The hashes hold, but the bytes under them are no turn this version knows.",
        "The file may come from a newer version: use that one.",
    ),
    "journal.unreadable": Explanation(
        "Bytes are no journal document.",
        "The file is of another kind, of a newer version, or was changed.",
    ),
    "event.invalid": Explanation(
        "The event does not fit the machine's event type.",
        "Mend it; the message names the place.",
    ),
    "key.invalid": Explanation(
        "The cell's key does not fit the machine's key type, or is not in its one spelling.",
        "Send the canonical form.",
    ),
    "payload.corrupt": Explanation(
        "Bytes do not match the address they are stored under.",
        "Restore them from a backup; the journal names the address.",
    ),
    "payload.erased": Explanation(
        "The bytes of a value were erased; only its address remains.",
        "Nothing: chain and proofs still verify, but this value cannot be shown.",
    ),
    "payload.scheme": Explanation(
        "An address has a form this version does not know.",
        "Use the version that wrote it.",
    ),
    "payload.too_large": Explanation(
        "One value is larger than may be journalled.",
        "Store it elsewhere and pass a reference.",
    ),
    "receipt.not_awaited": Explanation(
        "The receipt is for an attempt that no longer counts: settled, replaced, or never made.",
        "Nothing: duplicates, and failures that nobody waits for, change nothing.",
    ),
    "receipt.unknown": Explanation(
        "No attempt of this instance has this step key.",
        "Check which instance and step the executor was called for.",
    ),
    "role.missing": Explanation(
        "Reassigning a step needs the role it goes to.",
        "Name the role.",
    ),
    "scenario.unreached": Explanation(
        "A script entry expects an answer, but the instance closes before its time.",
        "Take `refused` away, or let the entry happen earlier.",
    ),
    "search.failed": Explanation(
        "A search attribute has no value, or one that nothing can be found by; nothing started.",
        "Mend the expression under `search` or the input: text up to 512 bytes, a 64-bit number, "
        "true, false or null.",
    ),
    "signal.too_many": Explanation(
        "The instance already keeps as many signals as it may.",
        "Find out why no wait takes them.",
    ),
    "step.not_escalated": Explanation(
        "Only an escalated step can be resumed, retried or reassigned.",
        "Look at the step's state.",
    ),
    "step.no_input": Explanation(
        "The step was never attempted because its `with` has no value, and it still has none.",
        "Retry it with an edited input, or cancel the instance.",
    ),
    "step.takes_no_input": Explanation(
        "Gates, waits and sleeps have no input that could be edited.",
        "Resume the step without one.",
    ),
    "step.timeout": Explanation(
        "An attempt took longer than the step's `timeout`.",
        "`onTimeout` decided what followed; raise the timeout if the work needs it.",
    ),
    "timer.not_due": Explanation(
        "A timer fired, but nothing was due.",
        "Nothing: firing twice is harmless.",
    ),
    "checkpoint.kept": Explanation(
        "A loop brought a checkpoint whose name is kept already, by another attempt of it.",
        "Nothing: the one that was kept counts, and the loop went on with it.",
    ),
    "checkpoint.too_many": Explanation(
        "A loop has more checkpoints than one loop may have.",
        "Keep a whole round under one name, or let a child workflow do a part of the rounds.",
    ),
    "loop.closed": Explanation(
        "A checkpoint came for a loop whose instance is closed.",
        "Nothing: it was an attempt that nobody waited for any more.",
    ),
    "loop.function": Explanation(
        "What `@loop` stands over is not an `async def` whose first parameter is `ctx`.",
        "Write `async def work(ctx, ...)`; a function without checkpoints is a `@step`.",
    ),
    "undo.timeout": Explanation(
        "An undo took longer than its timeout.",
        "Check by hand whether the effect is undone.",
    ),
    "wait.timeout": Explanation(
        "The event did not come before the wait's timeout.",
        "`onTimeout` and `onFailure` decided what followed.",
    ),
    "workflow.timeout": Explanation(
        "The instance ran longer than the workflow's `timeout`, human waiting included.",
        "failurePolicy decided what followed; start again, with a longer timeout if needed.",
    ),
}


def explanations() -> dict[str, Explanation]:
    """Every code there is."""
    return {
        **{code: Explanation(*words) for code, words in DEFINITION_CODES.items()},
        **KERNEL_CODES,
        **{code: Explanation(*words) for code, words in ENGINE_CODES.items()},
        **{code: Explanation(*words) for code, words in CLI_CODES.items()},
        **{code: Explanation(*words) for code, words in MACHINE_CODES.items()},
        **{code: Explanation(*words) for code, words in FLOW_CODES.items()},
        **{code: Explanation(*words) for code, words in POLICY_CODES.items()},
    }


def cause_of(code: str) -> str:
    """What a code means, to stand inside a sentence; the code itself if nobody knows it."""
    words = explanations().get(code)
    return f"{words.cause[0].lower()}{words.cause[1:].rstrip('.')}" if words else code
