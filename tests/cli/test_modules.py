"""Flows at the command line: `pawl run MODULE:FLOW`, `pawl check MODULE.py`."""

import json

import pytest

FLOWS = """\
from pawlflow import child, each, flow, step


@step(timeout="5s", undo="refund")
async def charge(amount: int) -> dict:
    return {"charged": amount}


@step(timeout="5s")
async def refund(amount: int, result: dict) -> None: ...


@step(timeout="5s", mutates=False)
def ship(item: str) -> str:
    return f"shipped {item}"


@flow(timeout="1h")
def parcel(request):
    return ship(request.item)


@flow(name="an-order", timeout="1h")
def order(request):
    paid = charge(request.amount)
    sent = each(request.items, lambda item: ship(item, after=[paid]))
    last = child(parcel, {"item": "card"}, after=sent)
    return {"paid": paid.charged, "sent": sent, "last": last}


@flow(build=True, timeout="1h")
def built(request):
    for item in request["items"]:
        ship(item, name=f"ship-{item}")
"""
WRONG = FLOWS.replace("    sent = each(", "    if paid.charged: pass\n    sent = each(")


@pytest.fixture
def shop(place):
    """A folder with a module of flows."""
    (place.folder / "shop.py").write_text(FLOWS)
    return place


@pytest.mark.parametrize("named", ["shop.py:order", "shop.py:an-order", "shop:order"])
def test_a_flow_of_a_module_is_run_with_its_functions_and_children(shop, named):
    """By the name of its function or of its workflow, from a file or a module; without --worker."""
    given = json.dumps({"amount": 3, "items": ["a", "b"]})

    done = shop.pawl("run", named, "--input", given, "--id", "o-1")

    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == {
        "paid": 3,
        "sent": ["shipped a", "shipped b"],
        "last": "shipped card",
    }
    assert shop.told("show", "o-1")["workflow"] == "an-order"


def test_a_flow_that_is_built_gets_the_input_of_its_start(shop):
    """The plan is made of it, and kept."""
    shop.pawl("run", "shop.py:built", "--input", '{"items": ["x", "y"]}', "--id", "b-1")

    assert list(shop.told("show", "b-1")["steps"]) == ["ship-x", "ship-y"]


def test_a_flow_is_started_and_waited_for_in_two_halves(shop):
    """What was started by one command is carried out by another."""
    shop.pawl("start", "shop.py:parcel", "--input", '{"item": "z"}', "--id", "p-1")

    done = shop.pawl("wait", "p-1", "--worker", "shop.py")

    assert json.loads(done.stdout) == "shipped z"


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        ("shop.py", 2, "several flows: parcel, an-order, built"),
        ("shop.py:ordr", 4, "did you mean 'an-order'?"),
        ("shop:nothing", 4, "no flow 'nothing' in shop; it has: parcel, an-order, built"),
        ("nowhere:flow", 2, "no module 'nowhere'"),
        ("nowhere.py", 2, "no such file"),
    ],
)
def test_a_flow_that_is_not_there(shop, given, code, said):
    """The names that are, and the one that was meant."""
    assert said in shop.told("run", given, exits=code)["error"]["message"]


def test_flows_are_checked_like_files(shop):
    """At the lines of their code, with the same codes; `built` is seen when it starts."""
    good = shop.pawl("check", "shop.py")
    assert good.exit_code == 0
    assert good.stdout == "1 file: 2 workflows, 0 scenarios, 0 errors, 0 warnings\n"

    (shop.folder / "wrong.py").write_text(WRONG)
    (found,) = shop.told("check", "wrong.py", exits=3)
    assert (found["line"], found["column"], found["code"]) == (26, 5, "flow.ref_misuse")
    assert "when=" in found["message"]
    assert shop.told("check", "wrong.py:parcel") == []
    refused = shop.told("run", "wrong.py:order", exits=3)["error"]
    assert refused["code"] == "flow.ref_misuse"
