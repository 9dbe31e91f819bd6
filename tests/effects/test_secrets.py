"""Secrets: a reference everywhere, a value only in the hands of the function that needs it."""

import json
import logging
import os
import re
import subprocess
import sys

import msgspec
import pytest

from pawlflow import (
    ChainSecrets,
    Correctable,
    EnvironmentSecrets,
    MappingSecrets,
    Pawl,
    Terminal,
    WorkflowFailed,
)
from pawlflow.effects.secrets import Hidden
from tests.effects.kit import run, written

VALUE = "hunter2-Väl\"ue'\nsecond-line-of-it/+="
FLOW = """
  failurePolicy: compensate
  steps:
    - name: s
      run: use
      with: {token: {$secret: deploy-key}, deep: [{at: {$secret: db/password}}], n: "${ input.n }"}
      undo: {run: undo, with: {token: {$secret: deploy-key}}}
      maxCorrectionAttempts: 1
    - {name: t, run: fail, dependsOn: [s]}
"""
SECRETS = {"deploy-key": VALUE, "db/password": "pässword!"}


def forms(value):
    """A value as it may be written somewhere."""
    yield value.encode()
    yield repr(value)[1:-1].encode()
    yield json.dumps(value)[1:-1].encode()
    yield from (line.encode() for line in value.splitlines() if len(line) > 10)


def assert_nowhere(*texts):
    """No value of ours is in any of these bytes."""
    for text in texts:
        for value in SECRETS.values():
            for form in forms(value):
                assert form not in text


@pytest.mark.req("R44", "R230")
def test_a_function_gets_the_value_and_nobody_else(engine, tmp_path):
    """Deep in lists too, and for the undo; the journal and every view have the reference."""
    path = written(tmp_path, "secretive", FLOW)
    seen = []

    async def main():
        async with engine(secrets=SECRETS) as pawl:
            pawl.load(path)
            pawl.effect("use")(lambda token, deep, n: seen.append((token, deep, n)))
            pawl.effect("undo")(lambda token: seen.append(token))  # noqa: PLW0108

            @pawl.effect("fail")
            def fail():
                raise Terminal("no")

            started = await pawl.start("secretive", {"n": 1})
            with pytest.raises(WorkflowFailed):
                await started.result(timeout="20s")
            return started.show(), started.history()

    shown, history = run(main())
    assert seen == [(VALUE, [{"at": SECRETS["db/password"]}], 1), VALUE]
    given = shown["steps"]["s"]["ladder"][0]["input"]
    assert given["token"] == {"$secret": "deploy-key"}
    assert given["deep"] == [{"at": {"$secret": "db/password"}}]
    assert_nowhere(json.dumps([shown, history], ensure_ascii=False).encode())


def leaks():
    """Ways in which a function lets a secret out."""

    def in_result(token, deep, n):
        return {"got": f"<{token}>", token: [deep], "raw": token.encode(), "n": n}

    def in_error(token, deep, n):
        raise ValueError(f"bad {token!r} and {json.dumps(token)}: {deep}")

    def in_cause(token, deep, n):
        try:
            int(token)
        except ValueError as error:
            raise RuntimeError("outer") from error

    def in_terminal(token, deep, n):
        raise Terminal(token + deep[0]["at"])

    def in_findings(token, deep, n):
        raise Correctable([{"why": token}, deep], f"see {token}")

    def in_log(token, deep, n, ctx):
        ctx.log("x" * 1990 + token)  # cut in the middle of it
        ctx.log(f"{deep}")

    async def on_the_loop(token, deep, n, ctx):
        ctx.log(token)
        raise KeyError(token)

    def unkept(token, deep, n):
        return {1: token, token: object()}

    return [
        *(in_result, in_error, in_cause, in_terminal, in_findings, in_log),
        *(on_the_loop, unkept),
    ]


@pytest.mark.req("R44", "R230")
@pytest.mark.parametrize("leak", leaks(), ids=lambda fn: fn.__name__)
def test_what_a_function_lets_out_is_taken_out(tmp_path, leak, caplog, capfd):
    """Of results, failures, findings, log lines, traces: every byte of the store is looked at."""
    path = written(tmp_path, "secretive", FLOW)
    logging.getLogger("pawl").propagate = True
    caplog.set_level(logging.DEBUG)

    async def main():
        async with Pawl(f"sqlite:///{tmp_path}/pawl.db", secrets=SECRETS) as pawl:
            pawl.load(path)
            pawl.effect("use")(leak)
            pawl.effect("undo")(lambda token: token)
            pawl.effect("fail")(lambda: None)
            started = await pawl.start("secretive", {"n": 1})
            said = ""
            try:
                await started.result(timeout="20s")
            except WorkflowFailed as failed:
                said = repr(failed) + str(failed)
            return started.show(), started.history(), started.why(), said

    told = run(main())
    files = [each.read_bytes() for each in tmp_path.glob("pawl.db*") if each.is_file()]
    printed = capfd.readouterr()
    assert sum(map(len, files)) > 0
    assert_nowhere(
        *files,
        caplog.text.encode(),
        printed.out.encode(),
        printed.err.encode(),
        repr(told).encode(),
        json.dumps(told, ensure_ascii=False, default=repr).encode(),
    )


@pytest.mark.req("R230")
@pytest.mark.parametrize("how", ["text", "key", "bytes", "struct"])
def test_a_result_with_a_secret_in_it_is_refused(tmp_path, how):
    """Nothing of it is kept; the failure says that the effect happened, and names the reference."""
    path = written(tmp_path, "secretive", FLOW)
    made = {
        "text": lambda token: {"sent": [f"to {token}"]},
        "key": lambda token: {token: 1},
        "bytes": lambda token: token.encode(),
        "struct": Sent,
    }[how]

    async def main():
        async with Pawl("memory:", secrets=SECRETS) as pawl:
            pawl.load(path)
            pawl.effect("use")(lambda token, deep, n: made(token))
            pawl.effect("undo")(lambda token: None)
            pawl.effect("fail")(lambda: None)
            with pytest.raises(WorkflowFailed) as failed:
                await (await pawl.start("secretive", {"n": 1})).result(timeout="20s")
            return failed.value

    failed = run(main())
    assert (failed.code, failed.failure_class) == ("secret.in_result", "terminal")
    assert "was carried out" in str(failed)
    assert "deploy-key" in str(failed)
    assert_nowhere(str(failed).encode())


class Sent(msgspec.Struct):
    """A result of a class of its own."""

    token: str


@pytest.mark.req("R44", "R230")
def test_only_what_the_definition_writes_is_resolved(tmp_path):
    """A reference that comes as data is data, wherever it is put."""
    path = written(
        tmp_path,
        "echo",
        "  steps:\n"
        "    - {name: s, run: echo, with: {a: '${ input.a }', b: {$secret: deploy-key}}}\n"
        "  output: '${ steps.s }'\n",
    )

    async def main():
        async with Pawl("memory:", secrets=SECRETS) as pawl:
            pawl.load(path)
            pawl.effect("echo")(lambda a, b: [a, b == VALUE])
            given = {"a": {"$secret": "db/password"}}
            return await (await pawl.start("echo", given)).result(timeout="20s")

    assert run(main()) == [{"$secret": "db/password"}, True]


class Broken:
    """A provider that breaks, and says too much."""

    def get(self, tenant, name):
        raise ConnectionError(f"wrong password {VALUE}")


class Raising:
    """A provider that has nothing."""

    def get(self, tenant, name):
        raise KeyError(name)


@pytest.mark.req("R44", "R230")
@pytest.mark.parametrize(
    "provider, failure",
    [
        ({}, ("terminal", "secret.missing", 1)),
        ({"deploy-key": "", "db/password": "long enough"}, ("terminal", "secret.missing", 1)),
        (Raising(), ("terminal", "secret.missing", 1)),
        (dict.fromkeys(SECRETS, "abc"), ("terminal", "secret.too_short", 1)),
        (Broken(), ("transient", "secret.unavailable", 1)),
    ],
)
def test_a_secret_that_is_not_there_fails_the_attempt_by_its_name(tmp_path, provider, failure):
    """The function is not called; the message has the reference, and no word of the provider."""
    path = written(tmp_path, "secretive", FLOW)
    called = []

    async def main():
        async with Pawl("memory:", secrets=provider) as pawl:
            pawl.load(path)
            pawl.effect("use")(lambda token, deep, n: called.append(1))
            pawl.effect("undo")(lambda token: None)
            pawl.effect("fail")(lambda: None)
            with pytest.raises(WorkflowFailed) as failed:
                await (await pawl.start("secretive", {"n": 1})).result(timeout="20s")
            return failed.value

    failed = run(main())
    assert (failed.failure_class, failed.code, failed.attempts) == failure
    assert re.search("deploy-key|db/password", str(failed))
    assert called == []
    assert_nowhere(str(failed).encode())


def test_nothing_prints_its_values():
    """A debugger or a log that shows a provider shows no secret."""
    for each in (MappingSecrets(SECRETS), EnvironmentSecrets(SECRETS), ChainSecrets()):
        assert_nowhere(repr(each).encode())


def test_hiding_leaves_everything_else_as_it_is():
    """Numbers and short words included, unless they are a secret."""
    hidden = Hidden({"pin": "1234"})
    value = {"a": [1, 2.5, None, True, b"x", "y"], "b": {"c": 12345, "d": 1234, "e": "pin 1234!"}}
    assert hidden.value(value) == {
        "a": [1, 2.5, None, True, b"x", "y"],
        "b": {"c": "[secret pin]5", "d": "[secret pin]", "e": "pin [secret pin]!"},
    }


def private(path, text):
    path.write_text(text)
    path.chmod(0o600)
    return path


STEPS = """
from pawlflow import step

@step(name="use", pool="process")
def use(token, ctx):
    ctx.log(f"with {token}")
    return token == "top-" + "secret-1"
"""
CLI_FLOW = """\
  timeout: 1m
  steps:
    - {name: s, timeout: 30s, run: use, with: {token: {$secret: k}}}
  output: "${ steps.s }"
"""


@pytest.mark.parametrize("how", ["environment", "file"])
def test_the_command_line_takes_them_from_the_environment_or_a_file(tmp_path, how):
    """And into another process; nothing that is printed or kept has the value."""
    written(tmp_path, "secretive", CLI_FLOW)
    (tmp_path / "steps.py").write_text(STEPS)
    private(tmp_path / "secrets.toml", 'k = "top-secret-1"\n')
    environment = {**os.environ, "PAWL_LOG": "debug"}
    words = ["--secrets", "secrets.toml"]
    if how == "environment":
        environment["PAWL_SECRET_K"], words = "top-secret-1", []
    done = subprocess.run(
        [
            *(sys.executable, "-c", "from pawlflow.cli.main import entry; entry()"),
            *("--db", "sqlite:///pawl.db", "run", "secretive.yaml", "--id", "r-1"),
            *("--worker", "steps.py", *words),
        ],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) is True
    files = [each.read_bytes() for each in tmp_path.glob("pawl.db*") if each.is_file()]
    for text in (done.stdout, done.stderr, *files):
        assert b"top-secret-1" not in text


def test_the_command_line_refuses_a_file_that_others_may_read(tmp_path):
    """Before anything starts."""
    written(tmp_path, "secretive", CLI_FLOW)
    (tmp_path / "steps.py").write_text(STEPS)
    (tmp_path / "secrets.toml").write_text('k = "v"\n')
    (tmp_path / "secrets.toml").chmod(0o644)
    words = ["run", "secretive.yaml", "--worker", "steps.py", "--secrets", "secrets.toml"]
    done = subprocess.run(
        [sys.executable, "-c", "from pawlflow.cli.main import entry; entry()", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 2
    assert "chmod 600" in done.stderr
    assert not (tmp_path / ".pawl").exists()
