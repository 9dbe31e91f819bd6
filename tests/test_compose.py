"""compose.yaml and its Dockerfile: read as Docker reads them, and run without Docker."""

import json
import os
import re
import signal
import subprocess
import threading
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from pawlflow.cli.main import VERBS, main
from tests.cli.live_kit import PAWL, until
from tests.servers import Postgres, free_port

ROOT = Path(__file__).resolve().parent.parent
NODES = ("node-1", "node-2")
FLOW = """\
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: nap}
spec:
  timeout: 1h
  steps: [{name: doze, sleep: 1ms}]
  output: {rested: true}
"""


@pytest.fixture(scope="module")
def compose():
    return yaml.safe_load((ROOT / "compose.yaml").read_text())


@pytest.fixture(scope="module")
def services(compose):
    return compose["services"]


# Read


def test_two_nodes_a_database_and_a_bus(compose, services):
    """Versions that are supported, JetStream on a volume, two nodes that are the same."""
    assert set(services) == {"postgres", "nats", *NODES}
    assert int(re.fullmatch(r"postgres:(\d+)", services["postgres"]["image"])[1]) >= 15
    version = re.match(r"nats:(\d+)\.(\d+)", services["nats"]["image"])
    assert (int(version[1]), int(version[2])) >= (2, 10)
    assert "-js" in services["nats"]["command"]
    assert services["node-1"] == services["node-2"]
    kept = {
        each.split(":")[0] for name in ("postgres", "nats") for each in services[name]["volumes"]
    }
    assert kept == set(compose["volumes"])
    folder = services["nats"]["command"][services["nats"]["command"].index("-sd") + 1]
    assert services["nats"]["volumes"] == [f"nats:{folder}"]


def test_nothing_is_published_beyond_this_machine(services):
    """Every port is bound to loopback; the nodes have none."""
    ports = [port for each in services.values() for port in each.get("ports", ())]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)
    assert not any("ports" in services[node] for node in NODES)


def test_everything_has_a_health_check_and_is_waited_for(services):
    """Nodes begin once both servers are healthy."""
    assert all(each["healthcheck"]["test"][0] == "CMD" for each in services.values())
    for node in NODES:
        waits = services[node]["depends_on"]
        assert waits == {key: {"condition": "service_healthy"} for key in ("postgres", "nats")}
    password = services["postgres"]["environment"]["POSTGRES_PASSWORD"]
    assert password in services["node-1"]["environment"]["PAWL_DB"]


def test_the_node_is_built_from_this_project_and_runs_without_rights():
    """All that the build copies is let through, the extras exist, and the user is not root."""
    text = (ROOT / "Dockerfile").read_text()
    let = (ROOT / ".dockerignore").read_text().split()
    copied = [
        name for line in re.findall(r"^COPY (?!--)(.+)$", text, re.M) for name in line.split()
    ]
    for name in copied:
        if not name.startswith("."):
            assert (ROOT / name).exists(), name
            assert f"!{name}" in let
    extras = re.search(r"\[([a-z,]+)\]\"", text)[1].split(",")
    known = (ROOT / "pyproject.toml").read_text()
    assert all(re.search(rf"^{extra} = \[", known, re.M) for extra in extras)
    assert re.findall(r"^FROM (\S+)", text, re.M) == ["python:3.11-slim"] * 2
    steps = re.findall(r"^(USER|ENTRYPOINT|CMD) (.+)$", text, re.M)
    assert steps == [("USER", "pawl"), ("ENTRYPOINT", '["pawl"]'), ("CMD", '["serve"]')]


# Run


@contextmanager
def running(words, env=None):
    """A process of a service, ended as Docker ends it; its words on standard error are kept."""
    process = subprocess.Popen(
        words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    said = []
    reader = threading.Thread(target=lambda: said.extend(iter(process.stderr.readline, "")))
    reader.start()
    process.said = said
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(40)
        reader.join()
        process.stdout.close()
        process.stderr.close()


@pytest.fixture(scope="module")
def bus(services, nats, tmp_path_factory):
    """NATS by the command of its service; only its ports and its folder are others."""
    folder, port, look = tmp_path_factory.mktemp("nats"), free_port(), free_port()
    given = [word.replace("/data", str(folder)) for word in services["nats"]["command"]]
    given[given.index("8222")] = str(look)
    with running([nats.program, "-a", "127.0.0.1", "-p", str(port), *given]) as process:
        until(lambda: any("Server is ready" in line for line in process.said), "NATS")
        yield port, look


def test_the_command_of_nats_has_jetstream(services, bus):
    """Its health check says so, and so does the doctor."""
    port, look = bus
    url = services["nats"]["healthcheck"]["test"][-1].replace(":8222/", f":{look}/")
    with urllib.request.urlopen(url, timeout=30) as answer:
        assert answer.status == 200
    env = {"PAWL_DB": "sqlite:///nothing-is-there.db", "PAWL_NATS": f"nats://127.0.0.1:{port}"}
    found = CliRunner().invoke(main, ["doctor", "--json"], env=env)
    checks = {each["name"]: each["status"] for each in json.loads(found.stdout)["checks"]}
    assert (found.exit_code, checks["jetstream"]) == (0, "ok")


def test_the_health_check_of_the_database_holds(services, postgres):
    """Only the port is another."""
    program, *words = services["postgres"]["healthcheck"]["test"][1:]
    place = ["-h", "127.0.0.1", "-p", str(postgres.port)]
    done = subprocess.run(
        [postgres.bin / program, *words, *place], capture_output=True, check=False
    )
    assert done.returncode == 0, done


@pytest.fixture(scope="module")
def database():
    """A server that flushes, as that of a container does: the doctor asks for it."""
    made = Postgres()
    made.execute("ALTER SYSTEM SET fsync = on", database="postgres")
    made.restart()
    yield made
    made.remove()


@pytest.mark.skipif("serve" not in VERBS, reason="`pawl serve` is not in this version yet")
@pytest.mark.req("R222")
def test_two_nodes_run_by_the_command_of_their_service(services, bus, database, tmp_path):
    """They share the work, are healthy by their own check, and hand over when they are stopped."""
    node = services["node-1"]
    places = {
        "@postgres:5432/": f"@127.0.0.1:{database.port}/",
        "//nats:4222": f"//127.0.0.1:{bus[0]}",
    }
    env = dict(os.environ)
    for name, value in node["environment"].items():
        plain = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value)
        for inside, here in places.items():
            plain = plain.replace(inside, here)
        env[name] = plain
    (tmp_path / "nap.yaml").write_text(FLOW)

    def pawl(*words):
        return CliRunner().invoke(main, words, env=env)

    command = [*PAWL, *node["command"]]
    with running(command, env) as first, running(command, env) as second:
        for each in (first, second):
            until(lambda each=each: any("ready" in line for line in each.said), "a node")
        check = pawl(*node["healthcheck"]["test"][2:])
        assert check.exit_code == 0, check.stdout
        assert pawl("apply", "-f", str(tmp_path / "nap.yaml")).exit_code == 0
        for number in range(8):
            assert pawl("start", "nap", "--id", f"n-{number}").exit_code == 0
        for number in range(8):
            waited = pawl("wait", f"n-{number}", "--timeout", "30s", "--json")
            assert waited.exit_code == 0, waited.output
    assert (first.returncode, second.returncode) == (0, 0), first.said + second.said
    assert pawl("replay", "--all").exit_code == 0
