"""Forms of a secret: however a library writes it, it is taken out."""

import base64
import json
from urllib.parse import quote, quote_plus, urlencode

import pytest

from pawlflow.effects.secrets import Hidden

VALUES = ["tok/5f+1e 77=", "hunter2-Välue", "a1b2", "0123456789abcdef", "p&ss:w@rd?#%41"]
FORMS = [
    ("plain", lambda v: v),
    ("repr", lambda v: repr([v])),
    ("json", lambda v: json.dumps({"a": v})),
    ("quote", quote),
    ("quote, all of it", lambda v: quote(v, safe="")),
    (
        "quote, small letters",
        lambda v: "".join(f"%{b:02x}" if chr(b) not in SAFE else chr(b) for b in v.encode()),
    ),
    ("quote_plus", quote_plus),
    ("a form", lambda v: urlencode({"user": "ann", "password": v, "next": "/"})),
    ("hex", lambda v: v.encode().hex()),
    ("HEX", lambda v: v.encode().hex().upper()),
    ("base64", lambda v: base64.b64encode(v.encode()).decode()),
    ("urlsafe", lambda v: base64.urlsafe_b64encode(v.encode()).decode().rstrip("=")),
]
SAFE = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-~"


@pytest.mark.req("R44", "R230")
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize(("name", "form"), FORMS)
def test_every_form_is_taken_out(value, name, form):
    """And nothing else is."""
    said = f"<before> {form(value)} <after>"
    told = Hidden({"key": value}).text(said)
    assert "[secret key]" in told, name
    assert form(value) not in told
    assert (told[:9], told[-8:]) == ("<before> ", " <after>")


@pytest.mark.req("R44", "R230")
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("before", ["", "u", "us", "user:", "ann@example.org:"])
@pytest.mark.parametrize("after", ["", "x", "xy", ":more of it"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_inside_something_longer_in_base64_it_is_taken_out(value, before, after, encode):
    """As in `Authorization: Basic`, wherever it begins: no letter with a bit of it is left."""
    code = encode(f"{before}{value}{after}".encode()).decode()
    hidden = Hidden({"key": value})
    told = hidden.text(f"Authorization: Basic {code}")
    assert "[secret key]" in told
    begin, end = len(before.encode()) * 8, len(f"{before}{value}".encode()) * 8
    clean_before, clean_after = code[: begin // 6], code[-(-end // 6) :]
    left, _, right = told.removeprefix("Authorization: Basic ").partition("[secret key]")
    assert left in (clean_before, clean_before[:-1])
    assert right.rstrip("=") in (clean_after.rstrip("="), clean_after[1:].rstrip("="))
    assert hidden.held_by({"header": code}) == {"key"}


def test_other_base64_stays():
    """Only what holds the value is touched."""
    said = base64.b64encode(b"user:another one altogether").decode()
    assert Hidden({"key": "tok-5f1e77"}).text(said) == said
