"""Planted bugs in the rooms of the language: fans, children, budgets, gates, schedules, batches."""

from heapq import heappush
from typing import Any, Final

from pawlflow.engine.system import schedules
from pawlflow.kernel import (
    budget,
    children,
    counters,
    evolve_again,
    evolve_steps,
    fans,
    gates,
    guards,
    ladder,
    mend,
    receipts,
    revise,
    snapshot,
    state,
    undo,
)
from pawlflow.kernel.draft import Draft
from pawlflow.kernel.system import batch, rate, registry
from pawlflow.kernel.units import RUNNING, SKIPPED, SUCCEEDED, UNDO_PENDING, Unit
from pawlflow.model.budgets import BudgetWarned
from pawlflow.model.ids import NO_ITEM, InstanceId
from pawlflow.model.inputs import StartInstance
from pawlflow.model.reviews import ApprovalParts, StepRaised, approval_digest
from pawlflow.model.timed import ScheduleTick
from pawlflow.testing.sim.patching import Change, real


def item_skipped() -> list[Change]:
    """The cursor of a fan leaves out its second item."""
    old = fans.fill

    def fill(made: Draft, fan: Any) -> None:
        fan.cursor += fan.cursor == 1 and fan.size > 2
        old(made, fan)

    return [(fans, "fill", fill)]


def fan_without_limit() -> list[Change]:
    """One item more than the limit of a fan is open."""
    old = fans.fill

    def fill(made: Draft, fan: Any) -> None:
        old(made, fan)
        plan = made.state.plan.steps[fan.step]
        if made.state.closing is None and fan.cursor < fan.size and fan.open == plan.limit:
            fans.look_at(made, plan, fan.cursor)

    return [(fans, "fill", fill)]


def items_undone_in_file_order() -> list[Change]:
    """The item that was done first is undone first."""
    old = real(counters, "list_for_undo")

    def list_for_undo(found: Any, unit: Unit) -> None:
        old(found, unit)
        mates = [p for p in found.undo_list if p != unit.place]
        if unit.item != NO_ITEM and mates and found.unit(mates[-1]).step == unit.step:
            first = next(p for p in mates if found.unit(p).step == unit.step)
            mates.insert(mates.index(first), unit.place)
            found.undo_list[:] = mates

    return [(evolve_steps, "list_for_undo", list_for_undo)]


def shallow_undone_first() -> list[Change]:
    """With parallelUndo what was completed last is undone first, however deep it lies."""

    def list_for_undo(found: Any, unit: Unit) -> None:
        unit.undo = UNDO_PENDING
        found.undo_list.append(unit.place)

    return [(evolve_steps, "list_for_undo", list_for_undo)]


def grant_stays() -> list[Change]:
    """What a gate let happen is undone, the grant itself is not."""
    old = real(counters, "list_for_undo")

    def list_for_undo(found: Any, unit: Unit) -> None:
        if found.plan.steps[unit.step].gate is None:
            old(found, unit)

    return [(evolve_steps, "list_for_undo", list_for_undo)]


def unanswered_stays() -> list[Change]:
    """What nobody answered is not undone, though the definition asks for it."""
    old = real(evolve_steps, "list_unknown")

    def list_unknown(found: Any, unit: Unit, attempt: int) -> None:
        if attempt:
            old(found, unit, attempt)

    return [(evolve_steps, "list_unknown", list_unknown)]


def late_forgotten() -> list[Change]:
    """A late success joins what is undone only once compensation has begun."""
    old = receipts.joins_undo

    def joins(made: Draft, unit: Unit) -> bool:
        return made.state.closing is not None and old(made, unit)

    return [(receipts, "joins_undo", joins)]


def child_started_twice() -> list[Change]:
    """The registry starts two children for one attempt."""
    old = registry.start_child

    def start_child(made: Any, asked: Any) -> None:
        old(made, asked)
        found = made.state.latest(asked.name)
        if found is not None:
            again = StartInstance(found[1], asked.input, asked.by, asked.parent)
            made.send(asked.name, InstanceId(f"{asked.child}.again"), again)

    return [(registry, "start_child", start_child)]


def child_of_another_attempt() -> list[Change]:
    """A child that failed fails whatever attempt its parent makes now."""
    old = receipts.receive_failure

    def receive(made: Draft, unit: Any, key: Any, incoming: Any) -> bool:
        plan = made.state.plan.steps[unit.step]
        if plan.kind != "workflow" or not unit.is_attempted():
            return old(made, unit, key, incoming)
        mend.fail_attempt(made, unit, receipts.failure_in(made, incoming))
        return True

    return [(receipts, "receive_failure", receive)]


def child_not_told() -> list[Change]:
    """A child is not told that its parent stops."""

    def stop_attempt(made: Draft, unit: Any, reason: Any) -> None:
        if unit.status == RUNNING:
            made.stop(unit, "do", reason)

    return [(children, "stop_attempt", stop_attempt)]


def child_left_behind() -> list[Change]:
    """A parent that stops does not wait for its children."""
    old = undo.wind_down

    def wind_down(made: Draft) -> None:
        waits = made.state.waits
        kept = waits.pop("child", 0)
        old(made)
        waits["child"] = kept

    return [(undo, "wind_down", wind_down)]


def child_gives_its_input() -> list[Change]:
    """A child gives its parent something else than its output."""
    old = children.report

    def report(made: Draft, parent: Any) -> None:
        output = made.state.output
        made.state.output = made.state.input
        old(made, parent)
        made.state.output = output

    return [(children, "report", report)]


def reservation_kept() -> list[Change]:
    """What an attempt set aside is not given back when it fails."""
    old = real(counters, "reserve")

    def reserve(found: Any, unit: Unit, sign: int) -> None:
        if sign > 0 or unit.status == SUCCEEDED:
            old(found, unit, sign)

    return [(counters, "reserve", reserve)]


def limit_raised_for_ever() -> list[Change]:
    """A limit that was raised once is none any more."""
    old = budget.limit_of

    def limit_of(found: Any, name: str) -> int | None:
        return state.MICROS_MAX if name in found.limits else old(found, name)

    return [(budget, "limit_of", limit_of)]


def review_left_open() -> list[Change]:
    """People are still asked about a budget that is enough by now."""

    def unheld(_: Any, unit: Unit) -> None:
        unit.held = False

    return [(room, "unheld", unheld) for room in (counters, evolve_steps, evolve_again)]


def usage_ignored() -> list[Change]:
    """What an executor says that it cost is not counted when it failed."""
    return [(budget, "spend", lambda *_: None)]


def warned_again() -> list[Change]:
    """Everybody is warned with each attempt."""

    def warn(made: Draft) -> None:
        for name, (soft, _) in made.state.plan.budget.items():
            if soft is not None and budget.taken(made.state, name) > soft:
                made.emit(BudgetWarned(name, budget.taken(made.state, name)))

    return [(budget, "warn", warn)]


def approval_for_anything() -> list[Change]:
    """An approval holds whatever the step is called with."""
    return [(guards, "agrees", lambda _, gate, __: gate.status in (SUCCEEDED, SKIPPED))]


def approval_of_all_rounds() -> list[Change]:
    """An approval of one round holds for those after it."""

    def digest_of(found: Any, unit: Unit, params: Any) -> bytes:
        plan = found.plan.steps[unit.step]
        place = (plan.name, unit.item, 1)
        return approval_digest(ApprovalParts(plan.target, params, *place, found.plan.definition))

    return [(guards, "digest_of", digest_of)]


def vote_counted_twice() -> list[Change]:
    """Who approves twice is two people."""
    return [(gates, "has_voted", lambda *_: False)]


def between_not_again() -> list[Change]:
    """Only the gate runs again, not what it sent back."""
    return [(revise, "led_to", lambda _, gate, __: [gate])]


def rung_left_out() -> list[Change]:
    """The next rung but one is asked."""

    def raise_up(made: Draft, unit: Unit) -> None:
        made.emit(StepRaised(unit.step, unit.item, unit.level + 2))

    return [(ladder, "raise_up", raise_up)]


def priority_ignored() -> list[Change]:
    """Whoever was ready first begins first, however urgent the others are."""

    def stand(found: Any, unit: Unit) -> None:
        line = found.openings
        if found.plan.steps[unit.step].attempted:
            line = found.held if unit.held else found.attempts
        heappush(line, (0, unit.order, unit.place))

    return [(room, "stand", stand) for room in (counters, evolve_steps, snapshot)]


def schedule_fires_twice() -> list[Change]:
    """After several missed times the schedule goes on behind the first of them."""
    old = schedules.tick

    def tick(cron: Any, due: Any, now: Any) -> ScheduleTick:
        made = old(cron, due, now)
        again = made.due[1] if len(made.due) > 1 else made.next
        return ScheduleTick(made.due, again)

    return [(schedules, "tick", tick)]


def missed_run_lost() -> list[Change]:
    """Of several missed times only the last is caught up, whatever the schedule says."""
    old = schedules.tick

    def tick(cron: Any, due: Any, now: Any) -> ScheduleTick:
        made = old(cron, due, now)
        return ScheduleTick(made.due[-1:], made.next)

    return [(schedules, "tick", tick)]


def rate_one_more() -> list[Change]:
    """One start more than the limit fits into a window."""
    old: Any = real(rate.Rate, "room")
    return [(rate.Rate, "room", property(lambda self: old.fget(self) + 1))]


def batch_repeats() -> list[Change]:
    """The next portion of a batch begins with the last one of the portion before."""
    old = batch.go_on

    def go_on(made: Any) -> None:
        found = made.state
        again = found.complete and 0 < found.sent < len(found.line) and found.closed is None
        if again and found.request is not None:
            workflow, key = found.line[found.sent - 1]
            made.send(workflow, key, batch.act_of(found.request, found.id))
        old(made)

    return [(batch, "go_on", go_on), (batch, "PORTION", 2)]


def left_and_forgotten() -> list[Change]:
    """Nobody waits for an attempt that timed out, nor for a child."""
    return [(Draft, "leave", lambda *_: None)]


LANGUAGE_BUGS: Final = (
    ("item-skipped", "an item is left out", item_skipped),
    ("fan-without-limit", "more items than allowed at a time", fan_without_limit),
    ("items-undone-forward", "items are undone in file order", items_undone_in_file_order),
    ("shallow-undone-first", "parallelUndo forgets what depends on what", shallow_undone_first),
    ("grant-stays", "a gate with an undo is not undone", grant_stays),
    ("unanswered-stays", "undoOnFailure forgets waits and gates", unanswered_stays),
    ("late-forgotten", "a late success before compensation stays done", late_forgotten),
    ("left-and-forgotten", "nobody waits for what timed out", left_and_forgotten),
    ("child-started-twice", "two children for one attempt", child_started_twice),
    ("child-of-another", "the answer of another attempt is taken", child_of_another_attempt),
    ("child-not-told", "a cancel does not reach the children", child_not_told),
    ("child-left-behind", "a parent closes before its children", child_left_behind),
    ("child-gives-its-input", "a parent takes what no child gave", child_gives_its_input),
    ("reservation-kept", "a failed attempt keeps its reservation", reservation_kept),
    ("limit-raised-for-ever", "a limit that was raised is gone", limit_raised_for_ever),
    ("review-left-open", "a review stays that nobody needs", review_left_open),
    ("usage-ignored", "what failures cost is not counted", usage_ignored),
    ("warned-again", "a soft limit is told again and again", warned_again),
    ("approval-for-anything", "parameters change after the approval", approval_for_anything),
    ("approval-of-all-rounds", "an approval is used in later rounds", approval_of_all_rounds),
    ("vote-counted-twice", "one person is a quorum", vote_counted_twice),
    ("between-not-again", "what was sent back does not run again", between_not_again),
    ("rung-left-out", "a rung of the ladder is not asked", rung_left_out),
    ("priority-ignored", "the urgent waits for the rest", priority_ignored),
    ("schedule-fires-twice", "a time of a schedule starts twice", schedule_fires_twice),
    ("missed-run-lost", "a missed run is not caught up", missed_run_lost),
    ("rate-one-more", "a window holds one start too many", rate_one_more),
    ("batch-repeats", "a batch acts on an instance twice", batch_repeats),
)
