"""Steps that ask policies, and answers as Cedar might give them."""

from pawlflow.kernel.draft import Rejected
from pawlflow.kernel.step import Stepped
from pawlflow.model.inputs import Receipt
from tests.kernel.support import Live, payload

PAY = "{name: pay, run: bank.pay, policy: {action: pay, resource: {to: bob}}"
HASH = b"h" * 32


def governed(*steps: str, spec: str = "") -> Live:
    """An instance that has started."""
    live = Live(f"{spec}\nsteps: [{', '.join(steps)}]", rules=3)
    live.start({"n": 1})
    return live


def answer(decision="allow", hash=HASH, code="policy.denied", **more):
    """What Cedar might have said."""
    return {"decision": decision, "code": code, "reason": "as it is", "hash": hash, **more}


def judge(live: Live, value, attempt: int | None = None, outcome="ok") -> Stepped | Rejected:
    """The newest question is answered."""
    call = asked(live)[-1]
    result = None if value is None else payload(value)
    return live.submit(Receipt(call.key, attempt or call.attempt, outcome, result))


def asked(live: Live):
    """Every question so far."""
    return [call for call in live.calls if call.direction == "ask"]


def done(live: Live):
    """Every attempt so far."""
    return [call.attempt for call in live.calls if call.direction == "do"]
