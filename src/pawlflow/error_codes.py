"""What the codes of engine, stores, effects and callers mean: cause, and the way out."""

from typing import Final

from pawlflow.error_codes_http import HTTP_CODES
from pawlflow.error_codes_store import MOVE_CODES, STORE_CODES
from pawlflow.nats_codes import NATS_CODES

ENGINE_CODES: Final[dict[str, tuple[str, str]]] = {
    "batch.exists": (
        "An act on many instances was asked for twice under one id.",
        "Nothing: `pawl batches show ID` tells how far it is.",
    ),
    "batch.not_awaited": (
        "An answer came for an act on many instances that had it already.",
        "Nothing: it was a duplicate, and changed nothing.",
    ),
    "batch.not_open": (
        "Targets came for an act on many instances that has all of them, or was never asked for.",
        "Begin another one.",
    ),
    "batch.too_large": (
        "A filter means more instances than one act on many may have.",
        "Narrow it; what is done no longer matches, so the rest can be asked for again.",
    ),
    "batch.unconfirmed": (
        "An act on many instances must be confirmed, and nobody can be asked.",
        "Look with --dry-run, then say --yes.",
    ),
    "batch.unknown": (
        "There is no act on many instances with this id.",
        "`pawl batches ls` lists them; --tenant names whose.",
    ),
    "cell.head": (
        "The row of an instance differs from what its turns say.",
        "Restore a backup; the turns themselves are still whole.",
    ),
    "cell.lost": (
        "Turns were found that belong to no instance.",
        "Restore a backup with `pawl restore`.",
    ),
    "cell.quarantined": (
        "The instance was put aside because deciding about it broke; its input is a dead letter.",
        "Look with `pawl dlq show`, then `pawl dlq redrive` or `pawl dlq discard`.",
    ),
    "cell.raised": (
        "Pawl broke while it decided this input: a defect of Pawl. The input is kept.",
        "Report it with what `pawl dlq show` prints; after an update `pawl dlq redrive` it.",
    ),
    "cell.review": (
        "The open reviews of an instance differ from what its turns say.",
        "Restore a backup; the turns themselves are still whole.",
    ),
    "cell.snapshot": (
        "The kept state of an instance differs from what its turns say.",
        "Restore a backup; the turns themselves are still whole.",
    ),
    "concurrency.key": (
        "The expression of `concurrency.key` or `rate.key` has no value for this input.",
        "Change the input or the expression; the instance was not started.",
    ),
    "continue.nothing": (
        "A cell was told to go on with something that is done.",
        "Nothing: it changed nothing.",
    ),
    "definition.lost": (
        "An instance runs under a definition that the store does not have, or cannot run.",
        "Use a version of Pawl that runs it, or restore a backup that has it.",
    ),
    "definition.same": (
        "This definition is published already.",
        "Nothing: it changed nothing.",
    ),
    "dlq.answered": (
        "A dead letter would start a child whose parent was told that it failed.",
        "Retry the step of the parent, which starts another child, and discard the letter.",
    ),
    "dlq.resolved": (
        "A human sent a dead input once more, or threw it away; that is done once for each.",
        "Nothing: `pawl dlq show` says what became of it.",
    ),
    "dlq.unknown": (
        "There is no dead letter of this number.",
        "`pawl dlq ls --all` lists them.",
    ),
    "effect.arguments": (
        "The parameters of a step do not fit the function that carries it out.",
        "Let `with` give what the function's parameters are called.",
    ),
    "effect.correctable": (
        "The function found its result not good enough, and said why.",
        "With maxCorrectionAttempts the step gets the findings as feedback.",
    ),
    "effect.no_executor": (
        "Nothing here can carry out some effects of the workflow, so it was not started.",
        "Register functions with @pawl.effect, or name a module of steps with --worker.",
    ),
    "effect.raised": (
        "The function raised an exception; the step's retryPolicy decides what follows.",
        "Raise Transient, Correctable or Terminal to choose the class of the failure.",
    ),
    "effect.taken": (
        "Two different functions were registered for one effect or role. The second is refused: "
        "calls of instances in flight would reach the wrong one.",
        'Give one of them another name, as `@step(name="billing.notify")`, or use two engines.',
    ),
    "effect.terminal": (
        "The function said that no retry will help.",
        "Read its message; `pawl why ID` shows what followed.",
    ),
    "effect.transient": (
        "The function failed in a way that may pass; the retryPolicy decides what follows.",
        "Nothing, or a retryPolicy if there is none.",
    ),
    "effect.worker_lost": (
        'The process that carried out a step with pool="process" ended before it answered: it '
        "was killed, ran out of memory, or left by itself.",
        "Nothing: it counts as a transient failure and follows the retryPolicy. If it goes "
        "on, look for what ends it (memory, sys.exit).",
    ),
    "engine.broken": (
        "The engine met something it cannot go on from. Nothing that was acknowledged is lost.",
        "Start it again; report what the log says.",
    ),
    "engine.closed": (
        "The engine was closed while somebody waited for an instance. The instance is not "
        "affected.",
        "Open an engine on the same store, and ask again.",
    ),
    "engine.not_open": (
        "Something was asked of an engine that is not open yet, or no longer.",
        "Use `async with pawl:` (or `with` for Pawl.blocking), or call `open()` first.",
    ),
    "engine.open": (
        "An engine was opened that is open already.",
        "Close it first, or make another one.",
    ),
    "engine.overloaded": (
        "More waits than the engine takes in: what would begin something, a start or an event from "
        "outside, is turned away, and nothing else.",
        "Try again a little later, with the same id (docs/limits.md).",
    ),
    "engine.own_loop": (
        "An `async def` step called a method of Pawl.blocking, and would have waited for itself.",
        "Write the step as `def`, so that it has a thread of its own.",
    ),
    "event.name": ("That is no event's name.", "A letter, then letters, digits, . _ / or -."),
    "file.unreadable": ("A file cannot be read.", "Check its name and permissions."),
    "heartbeat.lost": (
        "The function gave no sign of life within the step's `heartbeat`.",
        "Call ctx.heartbeat() more often, or give the step more time; onTimeout decides.",
    ),
    "input.misplaced": (
        "An input came to a kind of cell that has no use for it.",
        "Nothing changed; if you wrote to the mailbox yourself, look at the address.",
    ),
    "input.not_for_cells": (
        "An operator's request came to a program instead of the engine.",
        "Nothing changed; use `pawl dlq`.",
    ),
    "instance.conflict": (
        "There is an instance with this id, of another workflow or with another input.",
        "Choose another id, or look at the instance that has it.",
    ),
    "instance.id": (
        "An id may have 1 to 128 letters, digits, and . _ : or -",
        "Choose an id of that form.",
    ),
    "instance.removed": (
        "The instance was removed: it was closed for as long as its workflow's retention says.",
        "If it was archived, `pawl journal show FILE` tells its story. The id may be used again.",
    ),
    "archive.failed": (
        "The archive of an instance could not be written, so the instance was not removed.",
        "Make room, or give the folder of PAWL_ARCHIVE or --archive to whoever runs the engine.",
    ),
    "archive.open": (
        "The instance is not closed: its archive would be half a story.",
        "Archive it once it is over.",
    ),
    "retention.kept": (
        "The instance may not be removed: its time is not over, it is put aside, or has gone on.",
        "Nothing; it is looked at again. `pawl dlq` tells of those that are put aside.",
    ),
    "retention.over": (
        "The instance was removed: it was closed for as long as its workflow's retention says.",
        "Nothing: this is the entry of the journal that says so.",
    ),
    "journal.bytes": (
        "Entries of the journal have lost their bytes, and nothing says that they were removed.",
        "Restore a backup with `pawl restore`.",
    ),
    "journal.removed": (
        "An entry says that an instance was removed, and what is left of it says otherwise.",
        "Restore a backup with `pawl restore`; if nobody changed the store, report it.",
    ),
    "journal.damaged": (
        "A turn is not what was written: its hash or a value does not fit.",
        "Run `pawl doctor` to see how much is affected; `pawl restore` brings back a backup.",
    ),
    "journal.head": (
        "A shard's journal does not end where its head says.",
        "Restore a backup with `pawl restore`.",
    ),
    "journal.orphan": (
        "An entry of the journal belongs to nothing.",
        "Restore a backup with `pawl restore`.",
    ),
    "journal.stamp": (
        "The time or place of a turn does not fit its frame.",
        "Restore a backup with `pawl restore`.",
    ),
    "journal.turn": (
        "Deciding a turn again gives something else than was written.",
        "If the store was not changed by others, report it: a defect of Pawl.",
    ),
    "input.unserialisable": (
        "A value holds something that cannot be kept: not text, numbers, lists, maps.",
        "Give plain values; a msgspec struct or a dataclass is fine too.",
    ),
    "mail.unreadable": (
        "Something in the mailbox is no input; it was taken out and refused.",
        "If you wrote to the mailbox yourself, look at what you wrote.",
    ),
    "replay.difference": (
        "Deciding the journal again gives something else than was written.",
        "If the store was not changed by others, report it: a defect of Pawl.",
    ),
    "replay.raised": (
        "Deciding a turn again raised: a defect of Pawl, or turns that it did not write.",
        "Report it with the message; `pawl doctor --deep` says whether the file is damaged.",
    ),
    "result.unserialisable": (
        "The function returned something that cannot be kept: not text, numbers, lists, maps.",
        "Return plain values; a msgspec struct or a dataclass is fine too.",
    ),
    "rate.asked": ("The instance waits for its rate already.", "Nothing."),
    "rate.not_awaited": ("The instance does not wait for its rate.", "Nothing."),
    "review.held": (
        "Somebody else has claimed this review.",
        "Leave it to them, or decide without a claim: it binds nobody.",
    ),
    "review.settled": (
        "A human has dealt with an effect that nobody waited for.",
        "Nothing: it is on the record.",
    ),
    "review.several": (
        "The instance has several open reviews.",
        "Name INSTANCE/STEP, or use --step.",
    ),
    "review.unknown": (
        "No such review is open.",
        "`pawl review ls` lists those that are.",
    ),
    "review.yours": (
        "This person has claimed the review already.",
        "Nothing: claiming twice is claiming once.",
    ),
    "schedule.bad": (
        "This machine cannot tell the times of a schedule: its cron line or its time zone is none.",
        "Mend it; `pawl check` says where. Time zones come with the system or with `tzdata`.",
    ),
    "schedule.future": (
        "A backfill is of the past; what is to come the schedule starts itself.",
        "Let it end now, or earlier.",
    ),
    "schedule.name": (
        "This cannot be the name of a schedule.",
        "Use lower-case letters, digits, hyphens and underscores, starting with a letter.",
    ),
    "schedule.not_paused": ("The schedule is not paused.", "Nothing: it goes on."),
    "schedule.nothing": (
        "The schedule has no time in this period.",
        "Choose another period; `pawl schedules show NAME` tells its times.",
    ),
    "schedule.of_workflow": (
        "The schedule is part of a workflow, and goes with its definition.",
        "Publish a higher version of the workflow without trigger.schedule.",
    ),
    "schedule.paused": ("The schedule is paused already.", "Nothing."),
    "schedule.same": ("The same schedule is published already.", "Nothing."),
    "schedule.taken": (
        "The name belongs to another schedule: a document of its own, or that of a workflow.",
        "Rename the document, or remove the other one: `pawl schedules remove NAME`.",
    ),
    "schedule.too_many": (
        "There are more schedules of one workflow, or runs in one backfill, than are accepted.",
        "Use fewer schedules with forEach inside, or divide the period.",
    ),
    "schedule.unknown": ("No such schedule.", "`pawl schedules ls` lists them."),
    "secret.in_result": (
        "The result of a step holds a secret that it was given. The effect happened; its result "
        "was not kept.",
        "Return something else: a value that other steps need is a reference there, too.",
    ),
    "secret.missing": (
        "A step names a secret that no provider has for its tenant.",
        "Set PAWL_SECRET_NAME, or put it into the file of --secrets or Pawl(secrets=...); "
        "then try the step again.",
    ),
    "secret.too_short": (
        "A secret has fewer than 4 characters, and could not be kept out of messages and logs.",
        "Use a longer one; what is no secret can stand in the workflow as it is.",
    ),
    "secret.unavailable": (
        "A provider of secrets broke. What it said is not repeated, for it may hold anything.",
        "Nothing: it counts as a transient failure and follows the retryPolicy. See whether "
        "the provider is reachable.",
    ),
    "secrets.file": (
        "A file of secrets cannot be used: it is missing, is not what it should be, or others "
        "may read it.",
        "Do what the message says; `chmod 600 FILE` lets only its owner read it.",
    ),
    "shard.elsewhere": (
        "Another process owns this part of the store now.",
        "Ask again: the request will find its owner.",
    ),
    "slot.asked": ("The instance has, or waits for, this slot already.", "Nothing."),
    "slot.not_awaited": ("The instance does not wait for a slot.", "Nothing."),
    "slot.not_held": ("The instance has no such slot.", "Nothing."),
    "step.pool": (
        "A function cannot run in the pool that is asked for.",
        'Use pool="thread" or pool="process"; for a process write the function with def at '
        "the top level of a module.",
    ),
    **HTTP_CODES,
    **NATS_CODES,
    **STORE_CODES,
    **MOVE_CODES,
    "timer.held": (
        "An attempt went down with its engine, and has its whole time again since another runs.",
        "Nothing: its timeout comes later.",
    ),
    "tenant.bad": ("That is no tenant's name.", "Use letters, digits, - and _."),
    "time.bad": (
        "This is no time.",
        "Write 2026-11-15T06:00Z, or +10m for ten minutes from now.",
    ),
    "trigger.unknown": ("The workflow is not started by this event.", "Nothing."),
    "turn.unknown": (
        "The instance has no such turn.",
        "`pawl history ID` shows how many there are.",
    ),
    "wait.unknown": ("The instance does not wait for this event.", "Nothing."),
    "where.invalid": (
        "A filter cannot be read; the message says where, and what is wrong.",
        "Write comparisons with constants: repo == 'r1' && amount >= 100 (docs/operating.md).",
    ),
    "where.unindexed": (
        "Nothing in a filter leads to instances without looking at all of them.",
        "Compare an attribute by ==, in, < or >, or add a state, a workflow or a time.",
    ),
    "where.unknown": (
        "A filter names an attribute that no instance has and no definition declares.",
        "Use one of those the message names, or declare it under `search` in the workflow.",
    ),
    "workflow.cancelled": ("The instance was cancelled.", "`pawl why ID` says by whom."),
    "workflow.failed": ("The instance failed.", "`pawl why ID` says why."),
    "workflow.kind": (
        "What was to be started, added or registered is no workflow: a step, say, or a function.",
        "Wrap a step in a @flow; give a flow, a loop, or the name of a workflow that is loaded.",
    ),
    "workflow.unknown": (
        "There is no workflow with this name.",
        "Publish it with `pawl apply -f FILE`, or name its file.",
    ),
}
