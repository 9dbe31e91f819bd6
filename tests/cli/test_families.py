"""Items and children at the command line: run, look, act and watch, with real processes."""

import json
import os
import re
import subprocess

import pytest

from tests.cli.live_kit import killed, until

PARENT = """\
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: parent}
spec:
  timeout: 1h
  steps:
    - name: build
      run: ci.build
      forEach: "${ input.targets }"
      limit: 2
      with: {target: "${ item }"}
      onFailure: escalate
      timeout: 30s
    - {name: ship, workflow: kid, with: {x: 1}}
    - {name: each, workflow: kid, forEach: "${ input.targets }", with: {x: 2}, dependsOn: [ship]}
  output: {ship: "${ steps.ship }", each: "${ steps.each }", built: "${ steps.build }"}
"""
KID = """\
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: kid}
spec:
  timeout: 1h
  steps:
    - {name: pack, run: shop.pack, timeout: 30s}
    - name: gate
      approval: {role: Boss, expires: 1h}
      when: input.x == 1
      dependsOn: [pack]
    - {name: send, run: shop.send, dependsOn: [gate], timeout: 30s}
  output: "${ steps.send }"
"""
STUBS = """\
build: [{ok: {image: i}}]
"build[1]": [{fail: terminal, message: it broke}, {ok: {image: j}}]
ship/send: [{ok: one}]
each/send: [{ok: two}]
"each[1]/send": [{ok: three}]
"""
RUN = ("run", "parent.yaml", "--id", "p-1", "--by", "zoe", "--stubs", "family-stubs.yaml")
INPUT = ("--input", '{"targets": ["a", "b", "c"]}')
DONE = {
    "ship": "one",
    "each": ["two", "three", "two"],
    "built": [{"image": "i"}, {"image": "j"}, {"image": "i"}],
}


@pytest.fixture
def home(place):
    """A folder with a parent, its child in a file of its own, and stubs for both."""
    (place.folder / "parent.yaml").write_text(PARENT)
    (place.folder / "kid.yaml").write_text(KID)
    (place.folder / "family-stubs.yaml").write_text(STUBS)
    return place


@pytest.fixture
def halfway(home):
    """An item waits for a human, and so does a child; nobody drives the store."""
    assert home.pawl(*RUN, *INPUT, "--timeout", "600ms").exit_code == 75
    return home


def child_of(home, step="ship"):
    """The id of a step's child."""
    return next(c["id"] for c in home.shown("p-1")["children"] if c["step"] == step)


@pytest.mark.req("R92", "R215")
def test_children_come_from_the_folder_and_answers_from_their_stubs(halfway):
    """`ship/send` answers for a child's step, `each[1]/send` for that of one item's child."""
    child = child_of(halfway)
    assert halfway.pawl("review", "approve", child, "--by", "ann", "--role", "Boss").exit_code == 0
    assert halfway.pawl("resume", "p-1", "build[1]", "--by", "ann").exit_code == 0

    shown = halfway.told("wait", "p-1", "--stubs", "family-stubs.yaml")

    assert shown["output"] == DONE
    states = {child["step"]: child["state"] for child in shown["children"]}
    assert states == dict.fromkeys(["ship", "each[0]", "each[1]", "each[2]"], "completed")
    assert halfway.told("replay", "--all")["same"]
    assert halfway.told("doctor")["ok"]


@pytest.mark.req("R92")
@pytest.mark.parametrize("layout", ["one file", "folder", "published"])
def test_a_child_is_found_wherever_it_is_written(home, layout):
    """Behind its parent in one file, anywhere in a folder, or published before."""
    (home.folder / "kid.yaml").rename(home.folder / "later.txt")
    (home.folder / "alone").mkdir()
    (home.folder / "alone" / "kid.yaml").write_text(KID.replace("input.x == 1", "false"))
    (home.folder / "alone" / "parent.yaml").write_text(PARENT)
    target = {"one file": "both.yaml", "folder": "alone/", "published": "parent.yaml"}[layout]
    if layout == "one file":
        kid = (home.folder / "alone" / "kid.yaml").read_text()
        (home.folder / "both.yaml").write_text(f"{PARENT}---\n{kid}")
    elif layout == "published":
        assert home.pawl("apply", "-f", "alone/kid.yaml").exit_code == 0
    stubs = home.folder / "family-stubs.yaml"
    stubs.write_text("build: [{ok: {image: i}}]\n")

    given = ("--input", '{"targets": ["a"]}')
    done = home.pawl("run", target, "--id", "p-1", "--stubs", stubs, *given)

    assert done.exit_code == 0, done.output
    assert home.shown("p-1")["children_total"] == 2
    assert "is published yet" not in done.stderr


@pytest.mark.req("R92")
def test_a_child_that_nobody_knows_is_told_before_and_fails_with_the_way_out(home):
    """A note at the start, for it may come in time; then the step fails by name."""
    (home.folder / "kid.yaml").unlink()

    done = home.pawl(*RUN[:-2], "--stubs", home.folder / "stubs.yaml", *INPUT)
    home.folder.joinpath("family-stubs.yaml").write_text("build: [{ok: {}}]\n")
    failed = home.pawl(*RUN, *INPUT)

    assert done.exit_code == 3  # stubs of another workflow
    assert failed.exit_code == 1
    assert "no workflow kid is published yet: `pawl apply -f FILE`" in failed.stderr
    assert "failed at ship: no workflow kid is published" in failed.stderr
    error = home.shown("p-1")["error"]
    assert (error["step"], error["code"]) == ("ship", "child.unknown")
    assert "child.unknown" in home.pawl("explain").stdout


@pytest.mark.req("R92")
def test_an_effect_that_only_a_child_needs_is_missed_before_the_start(home):
    """Nothing begins that could not be carried out to its end."""
    (home.folder / "some_steps.py").write_text(
        "from pawlflow import step\n\n\n@step(name='ci.build')\nasync def build(target): ...\n"
    )

    refused = home.told(
        "run", "parent.yaml", "--id", "p-1", "--worker", "some_steps.py", *INPUT, exits=3
    )["error"]

    assert refused["code"] == "effect.no_executor"
    assert "shop.pack, shop.send" in refused["message"]
    assert home.pawl("show", "p-1").exit_code == 4


def test_a_folder_with_several_beginnings_is_not_guessed_at(home):
    """Those that could be meant are named."""
    (home.folder / "other").mkdir()
    for name in ("one", "two"):
        text = KID.replace("name: kid", f"name: {name}")
        (home.folder / "other" / f"{name}.yaml").write_text(text)

    refused = home.told("run", "other/", exits=2)["error"]

    assert refused["code"] == "cli.usage"
    assert "one, two" in refused["message"]


@pytest.mark.req("R92", "R184")
def test_the_tree_has_items_and_children(halfway):
    """Counts and a bar for items, a sub-tree for a child, with its steps and how far they are."""
    child = child_of(halfway)

    tree = halfway.pawl("show", "p-1").stdout
    of_child = halfway.pawl("show", child).stdout

    assert re.search(r"⚑ build +2 of 3 \(1 escalated\)  ━+╌+", tree)
    assert "⚑ build[1]  a human must decide" in tree
    assert re.search(rf"└── ⏸ kid {child}  waiting  ━+╌+ 1/3", tree)
    assert re.search(r"⏸ gate  waiting for approval, until", tree)
    assert "pawl resume p-1 'build[1]' --by NAME" in tree
    assert f"{child}  kid v1  waiting" in of_child
    assert "child of p-1/ship" in of_child


@pytest.mark.req("R127", "R215")
def test_an_item_is_acted_on_by_its_name(halfway):
    """Reviews of items are listed as `ID/build[1]`; every verb takes that name."""
    [row] = [r for r in halfway.told("review", "ls") if r["instance"] == "p-1"]
    review = halfway.told("review", "show", "p-1/build[1]")

    assert (row["id"], row["step"], row["kind"]) == ("p-1/build[1]", "build[1]", "escalation")
    assert review["hints"][0] == "pawl resume p-1 'build[1]' --by NAME"
    assert review["error"]["message"] == "it broke"
    texts = [fact["text"] for fact in review["because"] if "build[" in fact["text"]]
    assert texts[0] == "build[1] was ready"
    assert "build[1] failed" in texts[1]
    assert "next  pawl resume p-1 'build[1]'" in halfway.pawl("review", "show", row["id"]).stdout
    assert halfway.told("review", "claim", row["id"], "--by", "ann")["accepted"]
    assert halfway.shown("p-1")["waiting"][0]["claimed_by"] == "ann"
    wrong = halfway.told("resume", "p-1", "build[9]", "--by", "ann", exits=4)["error"]
    assert wrong["code"] == "step.unknown"
    settled = halfway.told("retry", "p-1", "build[0]", "--by", "ann", exits=5)["error"]
    assert settled["code"] == "step.not_escalated"
    edited = ("retry", "p-1", "build[1]", "--with", '{"target": "z"}', "--by", "ann")
    assert halfway.told(*edited)["act"] == "retry build[1]"
    assert halfway.shown("p-1")["steps"]["build[1]"]["state"] == "running"
    assert "build[1] by ann" in halfway.pawl("history", "p-1").stdout


@pytest.mark.req("R92", "R209")
def test_why_and_trace_go_from_parent_to_child(halfway):
    """What holds the child up is what is to be done; turns name each other."""
    child = child_of(halfway)

    why = halfway.told("why", "p-1")
    of_child = halfway.pawl("why", child).stdout
    turns = halfway.pawl("trace", "p-1").stdout
    first = halfway.pawl("trace", child).stdout.splitlines()[0]

    assert "2 of 3 items of build are done, held up by build[1]" in why["now"]
    assert f"kid {child} is waiting: gate waits for approval by Boss" in why["now"]
    assert any(f"review approve {child}/gate --by NAME --role Boss" in h for h in why["hints"])
    assert "ship of parent p-1 started kid v1 as its child, for zoe" in of_child
    assert f"> ship#1 kid child {child}" in turns
    assert re.search(r"start by zoe  <- parent p-1 turn 1$", first)


@pytest.mark.req("R92", "R183")
def test_children_are_listed_as_instances(halfway):
    """They have rows of their own, and are found by their parent."""
    child = child_of(halfway)

    ids = [row["id"] for row in halfway.told("ls")]
    mine = halfway.told("ls", "--where", 'parent == "p-1"')

    assert sorted(ids) == sorted([child, "p-1"])
    assert [row["id"] for row in mine] == [child]


@pytest.mark.req("R92", "R184")
def test_a_second_terminal_watches_a_family_to_its_end(home):
    """Plain lines where it is piped: of items, of children under their step, and of the end."""
    with home.owner(*RUN, *INPUT) as owner:
        until(lambda: home.waits_at("p-1", "build[1]") and home.waits_at("p-1", "ship"), "a wait")
        child = child_of(home)
        until(lambda: home.waits_at(child, "gate"), "the child's gate")
        with home.owner("watch", "p-1") as watching:
            assert "parent v1 started by zoe" in watching.stdout.readline()
            acts = [
                ("resume", "p-1", "build[1]", "--by", "ann"),
                ("review", "approve", child, "--by", "ann", "--role", "Boss"),
            ]
            for act in acts:
                assert home.terminal(*act).returncode == 0
            lines = watching.stdout.read()
            assert watching.wait(40) == 0
        assert owner.wait(40) == 0

    told = [line[13:].strip() for line in lines.splitlines()]
    assert any(re.match(r"build\[1\] +escalated \(terminal effect.failed\)", line) for line in told)
    assert any(re.match(rf"ship +child {child}: completed", line) for line in told)
    assert any(re.match(r'ship/send +succeeded "?one', line) for line in told)
    assert any(re.match(r"each +succeeded 3 of 3$", line) for line in told)
    assert told[-1].endswith("completed")


def on_a_terminal(home, *words):
    """What a person sees who types a command: all that it draws, to its end."""
    master, slave = os.openpty()
    env = os.environ | {"TERM": "xterm", "COLUMNS": "100", "LINES": "50"}
    with subprocess.Popen(
        home.command(*words), cwd=home.folder, stdout=slave, stderr=slave, env=env
    ) as process:
        os.close(slave)
        seen = b""
        while part := read_part(master):
            seen += part
        os.close(master)
        assert process.wait(40) == 0
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode())


def read_part(master):
    """Some of what is drawn; nothing once nobody draws any more."""
    try:
        return os.read(master, 65_536)
    except OSError:  # as Linux says that the other end is closed
        return b""


@pytest.mark.req("R92", "R184")
def test_on_a_terminal_a_family_is_a_live_tree(halfway):
    """Drawn again as it moves, and the last picture stays: bars, items, the child's steps."""
    child = child_of(halfway)
    with halfway.owner("wait", "p-1", "--stubs", "family-stubs.yaml"):
        acts = [
            ("resume", "p-1", "build[1]", "--by", "ann"),
            ("review", "approve", child, "--by", "ann", "--role", "Boss"),
        ]
        for act in acts:
            assert halfway.terminal(*act).returncode == 0
        picture = on_a_terminal(halfway, "watch", "p-1")

    last = picture[picture.rindex("p-1  parent v1") :].splitlines()
    assert last[0].startswith("p-1  parent v1  completed")
    assert last[1].startswith("━" * 40)
    assert any(re.search(r"✓ build +3 of 3  ━{16}", line) for line in last)
    assert any(f"✓ kid {child}  completed  ━━━━━━━━ 3/3" in line for line in last)
    assert any(re.search(r"✓ each\[2\]", line) for line in last)


BIG = """\
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: big}
spec:
  timeout: 1h
  steps:
    - name: build
      run: ci.build
      forEach: "${ input.targets }"
      limit: 20
      with: {target: "${ item }"}
      timeout: 1h
    - {name: each, workflow: kin, forEach: "${ input.kids }", with: {x: "${ item }"}}
  output: {built: "${ steps.build }", each: "${ steps.each }"}
---
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: kin}
spec:
  timeout: 1h
  steps:
    - {name: send, run: shop.send, with: {n: "${ input.x }"}, timeout: 1h}
  output: "${ steps.send }"
"""
BIG_STEPS = """\
import asyncio
from pathlib import Path

from pawlflow import step


async def go_on(n):
    if n >= 5 and not Path("go").exists():
        await asyncio.Event().wait()  # until the process is killed


@step(name="ci.build")
async def build(target):
    await go_on(target / 20)
    return {"image": target}


@step(name="shop.send")
async def send(n):
    await go_on(n)
    return n
"""


@pytest.mark.req("R84", "R92")
@pytest.mark.timeout(120)
def test_a_killed_family_goes_on(home):
    """Three hundred items and ten children; the owner is killed, another sees them through."""
    (home.folder / "big.yaml").write_text(BIG)
    (home.folder / "big_steps.py").write_text(BIG_STEPS)
    given = f'{{"targets": {list(range(300))}, "kids": {list(range(10))}}}'
    run = ("run", "big.yaml", "--id", "b-1", "--worker", "big_steps.py", "--input", given)

    def half():
        done = home.pawl("show", "b-1", "--json")
        steps = json.loads(done.stdout)["steps"] if done.exit_code == 0 else {}
        return [steps[name]["items"]["done"] for name in ("build", "each") if name in steps]

    with home.owner(*run) as owner:
        until(lambda: half() == [100, 5], "half of it")
        killed(owner)
    (home.folder / "go").touch()
    rest = home.terminal("wait", "b-1", "--worker", "big_steps.py")

    assert rest.returncode == 0, rest.stderr
    shown = home.shown("b-1")
    assert shown["steps"]["build"]["items"]["done"] == 300
    assert shown["output"]["built"] == [{"image": n} for n in range(300)]
    assert shown["output"]["each"] == list(range(10))
    assert [c["state"] for c in shown["children"]] == ["completed"] * 10
    assert home.told("replay", "--all")["same"]
    # Of many items the lines are few, and say how far it is.
    lines = [line for line in rest.stderr.splitlines() if " build" in line]
    assert len(lines) < 40
    assert re.search(r"build +succeeded 300 of 300$", "\n".join(lines), re.MULTILINE)
