"""The steps of a shop: plain functions, and a bank and a carrier that remember keys."""

from typing import Any

from pawlflow import Context, Terminal, Transient, step

BROKEN = "0000"


class Bank:
    """Somebody else's service: the same key is the same payment, however often it is asked for."""

    def __init__(self) -> None:
        self.payments: dict[str, int] = {}
        self.down = False

    def pay(self, key: str, card: str, amount: int) -> str:
        """Take money from a card, once for each key."""
        if self.down:
            raise Transient("the bank does not answer")
        if card == BROKEN:
            raise Terminal("no such card")
        self.payments.setdefault(key, amount)
        return key

    def pay_back(self, payment: str) -> None:
        """Give it back; what was given back before is fine."""
        self.payments.pop(payment, None)


bank = Bank()


@step(name="card.charge")
async def charge(ctx: Context, card: str, amount: int) -> dict[str, Any]:
    """Charge a card."""
    return {"payment": bank.pay(ctx.key, card, amount), "amount": amount}


@step(name="card.refund")
async def refund(payment: str) -> None:
    """Undo a charge."""
    bank.pay_back(payment)


@step(name="parcel.ship")
def ship(ctx: Context, letter: str) -> dict[str, str]:
    """Hand a parcel to the carrier; the key is its number."""
    return {"parcel": f"P-{ctx.key[:8]}", "letter": letter}
