"""Monitors: what must hold at every commit, every acknowledgement and every publication.

The numbers are those of the list of invariants in docs/simulation.md. A broken one ends the run.
"""

from collections.abc import Sequence

from pawlflow.engine.actions import Accepted
from pawlflow.engine.cells import take_in
from pawlflow.engine.fair import Offer
from pawlflow.engine.places import offer_of
from pawlflow.kernel.draft import Rejected
from pawlflow.kernel.heads import facts_of
from pawlflow.kernel.replay import read_turn
from pawlflow.kernel.snapshot import opened_state, state_bytes
from pawlflow.model.ids import CellId, Digest
from pawlflow.model.inputs import ClaimReview, Input, StartInstance, Tick
from pawlflow.model.intents import Call, Called, Intent
from pawlflow.model.journal import Disposition, Turn, frame_of, payloads_of
from pawlflow.model.operate import DiscardInput, RedriveInput
from pawlflow.model.payload import PayloadError
from pawlflow.model.records import read
from pawlflow.store.memory import Memory
from pawlflow.store.port import Address, Batch, Entry, FrameWrite, Head, Mail, Ref, ShardHead
from pawlflow.testing.sim.ledger import Ledger
from pawlflow.testing.sim.outside import Outside
from pawlflow.testing.sim.setup import Profile
from pawlflow.testing.sim.shadows import Shadow, Shadows, same
from pawlflow.testing.sim.world import Violated, World

# Refusals that acknowledge nothing: whoever asked must ask again.
UNREADABLE = "mail.unreadable"
TRANSIENT = ("shard.elsewhere", "store.", "engine.", "cell.raised")


class Committing:
    """A batch on its way into the journal, with what it claims to answer."""

    def __init__(self, batch: Batch, outcomes: Sequence[tuple[Offer, Accepted | Rejected]]) -> None:
        self.batch = batch
        self.outcomes = outcomes
        self.mail: dict[int, Mail] = {}
        self.refused: list[tuple[Offer, Rejected]] = []
        self.doubtful: list[tuple[Offer, Rejected]] = []  # of these, the ones not yet confirmed
        self.turns: list[tuple[Shadow, Turn]] = []
        self.disposed: list[Disposition] = []


class Monitors:
    """All that is watched."""

    def __init__(self, world: World, memory: Memory, ledger: Ledger, profile: Profile) -> None:
        self.world = world
        self.memory = memory
        self.ledger = ledger
        self.profile = profile
        self.shadows = Shadows(memory, self.bad)
        self.payloads: dict[bytes, bytes] = {}
        self.epochs: dict[int, int] = {}
        self.writers: dict[tuple[int, int], str] = {}
        self.intents: dict[Digest, CellId] = {}
        self.taken: dict[int, None] = {}
        self.acked: dict[tuple[str, int], Accepted | Rejected] = {}
        self.started: dict[Address, None] = {}
        self.keys: dict[tuple[CellId, str, str, int], bytes] = {}
        self.under_way: dict[Address, list[tuple[CellId, Input]]] = {}  # sends that are in the mail
        self.turns = 0
        self.outside = Outside(ledger, profile, self.bad)

    def bad(self, monitor: str, cell: CellId | None, why: str) -> None:
        """A promise was broken."""
        where = "-" if cell is None else f"{cell.tenant}/{cell.key}"
        raise Violated(monitor, self.world.now, where, why)

    # Owning

    def claimed(self, core: str, heads: Sequence[ShardHead]) -> None:
        """10: epochs rise with every claim, and each has one writer."""
        for head in heads:
            if head.epoch <= self.epochs.get(head.shard, 0):
                self.bad(
                    "10", None, f"{core} claims shard {head.shard} in epoch {head.epoch} again"
                )
            self.epochs[head.shard] = head.epoch
            self.writers[head.shard, head.epoch] = core

    # Committing

    def before(
        self, batch: Batch, outcomes: Sequence[tuple[Offer, Accepted | Rejected]]
    ) -> Committing:
        """What the state before a batch says about what the batch refuses."""
        made = Committing(batch, outcomes)
        self.shadows.now = self.world.now
        for taken in batch.taken:
            mail = self.memory.mailbox.get(taken.id)
            if mail is not None:
                made.mail[taken.id] = mail
                if taken.code and taken.code != UNREADABLE:
                    refused = Rejected(taken.code, taken.detail)
                    made.doubtful.append((offer_of(mail), refused))
        for offer, outcome in outcomes:
            if isinstance(outcome, Rejected):
                made.doubtful.append((offer, outcome))
        made.refused = list(made.doubtful)
        return made

    def committed(self, core: str, made: Committing) -> None:
        """A batch is durable now."""
        batch = made.batch
        self.settle_doubts(made, None)
        for fence in batch.fences:
            if fence.epoch != self.epochs.get(fence.shard, 0):
                self.bad("10", None, f"{core} writes shard {fence.shard} of epoch {fence.epoch}")
        for digest, _ in batch.definitions:
            self.shadows.published.setdefault(digest, self.world.now)
        heads = {head.ref: head for head in batch.heads}
        for written in batch.frames:
            self.check_frame(core, written)
            for entry in written.entries:
                self.check_entry(made, entry, heads)
        self.check_heads(made, heads)
        self.outside.check_reviews(self.memory, [shadow for shadow, _ in made.turns])
        self.check_snapshots(batch)
        self.check_sends(made)
        self.check_taken(made)
        self.check_outcomes(core, made)
        self.turns += len(made.turns)

    def check_frame(self, core: str, written: FrameWrite) -> None:
        """10: chained, contiguous, by the one writer of its epoch."""
        frame, shard = written.frame, written.frame.shard
        again = frame_of(shard, frame.prev, frame.first, [entry.hash for entry in written.entries])
        frames = self.memory.frames[shard]
        before = frames[-2].frame if len(frames) > 1 else None
        if again != frame:
            self.bad("10", None, f"a frame of shard {shard} is not the hash of its turns")
        if before is not None and (before.hash, before.last + 1) != (frame.prev, frame.first):
            self.bad("10", None, f"a frame of shard {shard} does not follow on the last")
        if self.writers.get((shard, written.epoch)) != core:
            self.bad("10", None, f"{core} writes shard {shard} in the epoch of another")

    def check_entry(self, made: Committing, entry: Entry, heads: dict[Ref, Head]) -> None:
        """9 and 11: a turn is what the kernel decides again, and all it says is of its tenant."""
        head = heads.get(entry.ref) or self.memory.cells.get(entry.ref)
        if head is None:  # a dead letter of a cell that never came to be
            letter: Disposition = read(Disposition, entry.data, {})
            take_in(self.payloads, entry.beside, letter.cell.tenant)
            made.disposed.append(read(Disposition, entry.data, self.payloads))
            self.outside.check_letter(letter)
            return
        tenant = head.cell.tenant
        try:
            take_in(self.payloads, entry.beside, tenant)
        except PayloadError as error:
            self.bad("11", head.cell, f"a payload of another tenant, or none: {error}")
        if entry.number == 0:
            disposed: Disposition = read(Disposition, entry.data, self.payloads)
            if disposed.cell.tenant != tenant:
                self.bad("11", head.cell, f"a disposition of {disposed.cell.tenant}")
            idle = type(disposed.input) is Tick and disposed.kind == "rejected"
            if idle:
                self.bad("8", head.cell, f"a tick that did nothing: {disposed.code}")
            made.disposed.append(disposed)
            return
        self.check_turn(made, entry, head)

    def check_turn(self, made: Committing, entry: Entry, head: Head) -> None:
        """The same of a turn: what it says is held against all that is known."""
        shadow = self.shadows.of(head)
        turn = read_turn(entry.data, self.payloads)
        self.check_payloads(head.cell, turn)
        wrong = shadow.advance(turn, entry.data)
        if wrong is not None:
            self.bad("8" if "nothing" in wrong else "9", head.cell, wrong)
        if shadow.cell.head != entry.hash:
            self.bad("10", head.cell, f"turn {turn.number} has another hash than it should")
        made.turns.append((shadow, turn))
        for record in turn.intents:
            if isinstance(record, Called):
                self.intents[record.id] = head.cell
        self.outside.read(shadow, turn, self.shadows.addresses)
        self.settle_doubts(made, shadow)

    def check_payloads(self, cell: CellId, turn: Turn) -> None:
        """11: the bytes of every value lie beside the turn, under the tenant's own address."""
        for payload in payloads_of(turn):
            if payload.data is None:
                self.bad("11", cell, f"turn {turn.number} mentions a value that is not here")

    def check_heads(self, made: Committing, heads: dict[Ref, Head]) -> None:
        """9: what can be asked of a cell follows from its turns."""
        for head in heads.values():
            shadow = self.shadows.of(head)
            shadow.quarantined = head.quarantined
            state = shadow.cell.state
            if (head.turn, head.hash) != (state.turn, shadow.cell.head):
                self.bad("9", head.cell, f"its row is of turn {head.turn}, it is at {state.turn}")
            facts = facts_of(state)
            found = (facts.state, facts.due_at, facts.calls, facts.closed_at)
            if found != (head.state, head.due_at, head.calls, head.closed_at):
                self.bad("9", head.cell, f"its row says {head}, the journal {facts}")

    def check_snapshots(self, batch: Batch) -> None:
        """9: a snapshot is the state after its turn."""
        for kept in batch.snapshots:
            shadow = self.shadows.refs[kept.ref]
            state = shadow.cell.state
            told = opened_state(shadow.id, kept.hash, kept.data, kept.beside)
            if kept.turn != state.turn or told != state_bytes(state):
                self.bad("9", shadow.id, f"a snapshot of turn {kept.turn} is no such state")

    def check_sends(self, made: Committing) -> None:
        """2: what a turn sends is durable with it: mail, or stepped in the same batch, in order."""
        self.forget_taken(made)
        posted = [offer_of(mail) for mail in made.batch.mail]
        for shadow, turn in made.turns:
            for send in turn.sends:
                cell = CellId(shadow.id.tenant, send.workflow, send.key)  # type: ignore[arg-type]
                line = self.under_way.setdefault(address_of(cell), [])
                found = [o for o in posted if o.cell.key == send.key and same(o.input, send.input)]
                what = type(send.input).__name__
                if found:
                    posted.remove(found[0])
                    line.append((shadow.id, send.input))
                elif not self.answered(made, cell, send.input):
                    self.bad("2", cell, f"{what} was sent, and is nowhere")
                elif any(sender == shadow.id for sender, _ in line):
                    self.bad("2", cell, f"{what} overtakes an older send of {shadow.id.key}")

    def forget_taken(self, made: Committing) -> None:
        """Sends that arrived are no longer under way."""
        for taken in made.batch.taken:
            mail = made.mail.get(taken.id)
            if mail is None or taken.code == UNREADABLE:
                continue
            line, arrived = self.under_way.get(address_of(mail.cell), []), offer_of(mail).input
            for i, (_, incoming) in enumerate(line):
                if same(incoming, arrived):
                    del line[i]
                    break

    def answered(self, made: Committing, cell: CellId, incoming: Input) -> bool:
        """Did this batch step, dispose of, or rightly ignore an input?"""
        stepped = any(
            shadow.id.key == cell.key
            and shadow.id.tenant == cell.tenant
            and same(t.input, incoming)
            for shadow, t in made.turns
        )
        disposed = any(
            d.cell.key == cell.key and d.cell.tenant == cell.tenant and same(d.input, incoming)
            for d in made.disposed
        )
        return stepped or disposed or self.shadows.refuses(cell, incoming)

    # Acknowledging

    def settle_doubts(self, made: Committing, shadow: Shadow | None) -> None:
        """Take off the list what the state as it is now refuses as well."""
        left: list[tuple[Offer, Rejected]] = []
        for offer, outcome in made.doubtful:
            address = address_of(offer.cell)
            here = shadow is None or address_of(shadow.id) == address
            spoilt = here and not self.shadows.refuses(offer.cell, offer.input)
            if not here or spoilt:
                left.append((offer, outcome))
            if spoilt:
                self.restore(address)
        made.doubtful = left

    def restore(self, address: Address) -> None:
        """A shadow that took what it should have refused is told again from the journal."""
        shadow = self.shadows.addresses.get(address)
        if shadow is None:
            return
        fresh = Shadow(shadow.id, shadow.ref, shadow.plan, shadow.lists, self.bad)
        for entry in self.memory.turns[shadow.ref][: len(shadow.inputs)]:
            turn = read_turn(entry.data, self.payloads)
            fresh.advance(turn, entry.data)
        shadow.cell = fresh.cell

    def check_taken(self, made: Committing) -> None:
        """2: mail is consumed once, and what it asked for is done or refused, durably."""
        for taken in made.batch.taken:
            mail = made.mail.get(taken.id)
            if mail is None or taken.id in self.taken or taken.id in self.memory.mailbox:
                self.bad("2", None, f"mail {taken.id} is consumed twice, or still there")
            self.taken[taken.id] = None
            if mail is None or taken.code:
                continue
            incoming = offer_of(mail).input
            if self.is_claim_again(mail.cell, incoming):
                continue
            if not self.answered(made, mail.cell, incoming):
                self.bad("2", mail.cell, f"{type(incoming).__name__} was taken, and is nowhere")

    def is_claim_again(self, cell: CellId, incoming: Input) -> bool:
        """Has this person claimed this before? Then nothing is written, and that is an answer."""
        shadow = self.shadows.addresses.get(address_of(cell))
        if shadow is None or not isinstance(incoming, ClaimReview):
            return False
        return any(same(each, incoming) for each in shadow.inputs)

    def check_put_aside(self, made: Committing, offer: Offer) -> None:
        """2: what broke its cell, or came to a broken one, is kept for a human to look at."""
        key, incoming = offer.cell.key, offer.input
        if type(incoming) is Tick:
            return  # its deadline is looked at again when the cell goes on
        if not any(d.cell.key == key and same(d.input, incoming) for d in made.disposed):
            self.bad("2", offer.cell, f"{type(incoming).__name__} broke its cell and is lost")

    def check_outcomes(self, core: str, made: Committing) -> None:
        """2: every answer that may now be given is true of the durable state."""
        for offer, refused in made.doubtful:
            known = any(same(each.input, offer.input) for each in made.disposed)
            if not known and not transient(refused):
                what = type(offer.input).__name__
                self.bad("2", offer.cell, f"{what} is refused ({refused.code}) on stale state")
        for offer, refused in made.refused:
            broken = refused.code == "cell.raised" and offer.token is None
            if broken or refused.code == "cell.quarantined":
                self.check_put_aside(made, offer)
        for offer, outcome in made.outcomes:
            if isinstance(outcome, Accepted):
                self.check_accepted(offer, outcome)
            if offer.token is not None:
                self.acked[core, offer.token] = outcome

    def check_accepted(self, offer: Offer, outcome: Accepted) -> None:
        """2 and 5: what was accepted is in the journal, at the turn that was named."""
        if isinstance(offer.input, RedriveInput | DiscardInput):
            return
        address = address_of(offer.cell)
        shadow = self.shadows.addresses.get(address)
        if shadow is None:
            self.bad("5", offer.cell, f"{type(offer.input).__name__} was accepted by no cell")
            return
        if isinstance(offer.input, ClaimReview) and outcome.existing:
            return  # claiming twice is claiming once
        if isinstance(offer.input, StartInstance):
            self.started[address] = None
            if not same(shadow.inputs[0], offer.input):
                self.bad("5", offer.cell, "an accepted start has another input")
            return
        if not (
            0 < outcome.turn <= len(shadow.inputs)
            and same(shadow.inputs[outcome.turn - 1], offer.input)
        ):
            self.bad("2", offer.cell, f"turn {outcome.turn} is not the input that was accepted")

    def replied(self, core: str, token: int, outcome: Accepted | Rejected) -> None:
        """2: nobody is told anything before it is durable."""
        if isinstance(outcome, Rejected) and transient(outcome):
            return
        if self.acked.pop((core, token), None) is None:
            self.bad("2", None, f"{core} answers before the commit: {outcome}")

    # Publishing

    def published(self, intent: Intent) -> None:
        """1 and 3: an intent is in the journal before anybody hears of it, under a stable key."""
        call = intent if isinstance(intent, Call) else intent.call
        cell = self.intents.get(call.id)
        if cell is None:
            self.bad("1", call.cell, f"attempt {call.attempt} of {call.step} is not in the journal")
        if cell != call.cell:
            self.bad("11", call.cell, f"a call of {cell}")
        shadow = self.shadows.addresses.get(address_of(call.cell))
        audit = None if shadow is None else shadow.audit
        if audit is not None:
            known = audit.keys.get(call.key)
            place = (audit.plan.index[call.step], call.item, call.direction, call.round)
            if known != place:
                self.bad("3", call.cell, f"the key of {call.step} is not the key of its round")

    def happened(self, call: Call) -> None:
        """3: an effect happens at most once per step key."""
        if self.ledger.count(call.key) > 1 and self.profile.dedupe:
            self.bad("3", call.cell, f"{call.step} was done twice under one key")


def address_of(cell: CellId) -> Address:
    """What a cell is found by."""
    return cell.tenant, cell.key


def transient(refused: Rejected) -> bool:
    """Is this refusal no answer at all?"""
    return refused.code.startswith(TRANSIENT)
