"""The service iam keeps accounts, and whom they act for.

Run it with `pawl worker examples.ores.services.iam`.
"""

import hashlib
import os
from typing import Any

import psycopg
from examples.ores.services.tables import Db, Tables, found
from pawlflow.worker import Context, Terminal, Worker

ACCOUNTS = """
CREATE TABLE IF NOT EXISTS account (
  id bigserial PRIMARY KEY, login text UNIQUE NOT NULL, salt bytea NOT NULL, password bytea NOT NULL
)
"""
LINKS = """
CREATE TABLE IF NOT EXISTS account_party (
  account bigint NOT NULL, party bigint NOT NULL, role text NOT NULL, PRIMARY KEY (account, party)
)
"""
ROLES = ("owner", "trader", "viewer")
KEPT = "root"  # somebody must be able to let others in
tables = Tables("iam", ACCOUNTS, LINKS).make()
worker = Worker(service="iam", memory=tables.url)


@worker.command("iam.v1.account.save")
def save_account(login: str, password: Any, ctx: Context) -> dict[str, int]:
    """An account with this login. Its password comes as a reference, which only iam can resolve."""
    salt = os.urandom(16)
    kept = hashlib.scrypt(secret(password).encode(), salt=salt, n=2**12, r=8, p=1)
    query = "INSERT INTO account (login, salt, password) VALUES (%s, %s, %s) RETURNING id"

    def work(db: Db) -> dict[str, int]:
        try:
            made = found(db, query, login, salt, kept)
        except psycopg.errors.UniqueViolation:
            raise Terminal(f"the login {login!r} is taken") from None
        return {"account": made["id"]}

    return tables.once(ctx, f"account {login} saved", work)


@worker.command("iam.v1.account.delete")
def delete_account(account: int, ctx: Context) -> None:
    """The account with this id is gone, whether or not it was there."""

    def work(db: Db) -> None:
        query = "DELETE FROM account WHERE id = %s RETURNING login"
        gone = db.execute(query, (account,)).fetchone()
        if gone is not None and gone["login"] == KEPT:
            raise Terminal(f"the account {KEPT} cannot be deleted")

    tables.once(ctx, f"account {account} deleted", work)


@worker.command("iam.v1.account-party.save")
def link(account: int, party: int, role: str, ctx: Context) -> dict[str, int]:
    """The account acts for the party."""
    if role not in ROLES:
        raise Terminal(f"{role!r} is no role; roles are: {', '.join(ROLES)}")

    def work(db: Db) -> dict[str, int]:
        db.execute("INSERT INTO account_party VALUES (%s, %s, %s)", (account, party, role))
        return {"account": account, "party": party}

    return tables.once(ctx, f"account {account} linked to party {party}", work)


@worker.command("iam.v1.account-party.delete")
def unlink(account: int, party: int, ctx: Context) -> None:
    """The account no longer acts for the party."""

    def work(db: Db) -> None:
        query = "DELETE FROM account_party WHERE account = %s AND party = %s"
        db.execute(query, (account, party))

    tables.once(ctx, f"account {account} unlinked from party {party}", work)


def secret(reference: Any) -> str:
    """The value behind a reference: `first-password` is IAM_SECRET_FIRST_PASSWORD."""
    name = reference["$secret"] if isinstance(reference, dict) else ""
    value = os.environ.get(f"IAM_SECRET_{name.upper().replace('-', '_')}")
    if not value:
        raise Terminal(f"iam has no secret {name!r}")
    return value
