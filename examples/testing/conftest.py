"""What every test of the shop begins with."""

from pathlib import Path

import pytest
import shop_steps

from pawlflow.testing import Lab

HERE = Path(__file__).parent


@pytest.fixture
def bank(monkeypatch: pytest.MonkeyPatch) -> shop_steps.Bank:
    """A new bank for each test, and for each crash of it."""
    made = shop_steps.Bank()
    monkeypatch.setattr(shop_steps, "bank", made)
    return made


@pytest.fixture
def shop(pawl: Lab, bank: shop_steps.Bank) -> Lab:
    """The shop in a lab: real functions for its effects, a script for its agent."""
    pawl.load(HERE / "shop.yaml")
    pawl.register(shop_steps)
    pawl.script("letter-writer", {"text": "Thank you!"})
    return pawl
