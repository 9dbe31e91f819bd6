"""The steps of order.yaml: pawl run order.yaml --worker order_steps.py --input '{...}'."""

from typing import Any

from pawlflow import Context, Terminal, step


@step(name="stock.reserve")
async def reserve(ctx: Context, sku: str) -> dict[str, Any]:
    """Set goods aside. The key is the same however often it is asked for: book it once."""
    return {"hold": f"{sku}-{ctx.key[:8]}"}


@step(name="stock.release")
async def release(hold: str) -> dict[str, Any]:
    """Give them back: the undo of reserving."""
    return {"released": hold}


@step(name="card.charge")
def charge(ctx: Context, amount: float, hold: str) -> dict[str, Any]:
    """Take money; a plain function runs in a thread. More than 100 is refused for good."""
    ctx.log(f"charging {amount} for {hold}")
    if amount > 100:
        raise Terminal(f"the card was refused: {amount} is too much")
    return {"charge": f"c-{ctx.key[:8]}"}


@step(name="card.refund")
def refund(charge: str) -> dict[str, Any]:
    """Give money back: the undo of charging."""
    return {"refunded": charge}
