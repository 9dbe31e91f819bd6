"""Flows and the YAML that says the same: each pair gives one definition."""

from typing import Any

from pawlflow import (
    Retry,
    agent,
    approval,
    child,
    each,
    effect,
    emit,
    expr,
    flow,
    secret,
    sleep,
    step,
    success,
    text,
    wait_for,
)


@step(
    retry=Retry(max=3, backoff="exponential", initial="1s", cap="60s"),
    timeout="30s",
    undo="delete_party",
)
async def save_party(party: dict[str, Any]) -> dict[str, Any]:
    return {"id": party["id"]}


@step
async def delete_party(party: dict[str, Any], result: dict[str, Any]) -> None: ...


@step
async def save_account(party_id: str, login: str) -> dict[str, Any]:
    return {"id": f"{party_id}/{login}"}


@step
def link(party_id: str, account_id: str) -> None: ...


@flow(timeout="30m")
def provision_parties(request: Any) -> Any:
    party = save_party(request.party)
    account = save_account(party.id, request.login)
    ok = approval("release", role="ReleaseManager", after=[account])
    link(party.id, account.id, after=[ok], when=request.link != False)  # noqa: E712
    return {"party": party.id, "account": account.id}


PROVISION = """
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: provision_parties}
spec:
  timeout: 30m
  steps:
    - name: save_party
      run: save_party
      with: {party: "${ input.party }"}
      timeout: 30s
      retryPolicy: {maxRetries: 3, backoff: exponential, initialDelay: 1s, maxDelay: 60s}
      undo: {run: delete_party}
    - name: save_account
      run: save_account
      with: {party_id: "${ steps.save_party.id }", login: "${ input.login }"}
      dependsOn: [save_party]
    - {name: release, approval: {role: ReleaseManager}, dependsOn: [save_account]}
    - name: link
      run: link
      with: {party_id: "${ steps.save_party.id }", account_id: "${ steps.save_account.id }"}
      when: input.link != false
      dependsOn: [save_party, save_account, release]
  output: {party: "${ steps.save_party.id }", account: "${ steps.save_account.id }"}
"""


@step(name="git.checkout", timeout="5m", mutates=False)
async def checkout(repo: str) -> dict[str, Any]: ...


@step(name="ci.build", on_failure="abort")
async def build(target: str, tree: str) -> dict[str, Any]: ...


@step(
    name="deploy.promote",
    undo={"run": "deploy.rollback", "with": {"release": expr("result.release")}},
    on_timeout="escalate",
    cost={"usd": 0.10, "tokens": 4000},
    policy={"action": "release:promote", "resource": {"env": "prod"}},
)
async def promote(image: str, token: Any) -> dict[str, Any]: ...


@flow(
    name="release-service",
    version=3,
    description="Build, review and promote a service",
    input={"type": "object", "required": ["repo"]},
    timeout="4h",
    failure_policy="compensate",
    max_parallel=20,
    concurrency={"key": "input.repo", "limit": 1},
    trigger={"event": "repo.tagged", "condition": "event.tag != ''", "schedule": "0 6 * * 1"},
    effects=["git.checkout", "ci.build", "deploy.promote", "deploy.rollback"],
    budget={"usd": {"soft": 4, "hard": 5}, "tokens": {"hard": 200000}},
)
def release_service(request: Any) -> Any:
    tree = checkout(request.repo)
    images = each(request.targets, lambda target: build(target, tree.tree), limit=8)
    notes = agent(
        "technical-writer",
        "Write release notes",
        name="write-notes",
        skill="release-notes",
        check={"type": "object", "required": ["title", "body"]},
        max_corrections=3,
        on_failure="skip",
        after=[tree],
    )
    gate = approval(
        "gate",
        role="ReleaseManager",
        quorum=1,
        not_by="requester",
        expires="24h",
        on_reject="cancel",
        on_expire="escalate",
        guards=[promote],
        show={"notes": notes},
        after=[images],
    )
    done = promote(
        images[0].image,
        secret("deploy-key"),
        after=[gate],
        when=request.promote != False,  # noqa: E712
    )
    soak = sleep("10m", name="soak", after=[done])
    health = wait_for(
        "health.reported",
        match=lambda event: event.release == done.release,
        timeout="1h",
        name="health",
        after=soak,
    )
    told = child("notify-teams", {"text": notes.body}, name="announce", after=[health])
    emit("release.done", {"release": done.release}, name="tell", after=[success(told)])
    return {"release": done.release, "said": text("{} is out", done.release)}


RELEASE = """
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: release-service, version: 3}
spec:
  description: Build, review and promote a service
  input: {type: object, required: [repo]}
  timeout: 4h
  failurePolicy: compensate
  maxParallel: 20
  concurrency: {key: input.repo, limit: 1}
  trigger: {event: repo.tagged, condition: "event.tag != ''", schedule: "0 6 * * 1"}
  effects: [git.checkout, ci.build, deploy.promote, deploy.rollback]
  budget: {usd: {soft: 4, hard: 5}, tokens: {hard: 200000}}
  steps:
    - name: checkout
      run: git.checkout
      with: {repo: "${ input.repo }"}
      timeout: 5m
      mutates: false
    - name: build
      run: ci.build
      dependsOn: [checkout]
      forEach: "${ input.targets }"
      limit: 8
      with: {target: "${ item }", tree: "${ steps.checkout.tree }"}
      onFailure: abort
    - name: write-notes
      agent: technical-writer
      action: Write release notes
      skill: release-notes
      dependsOn: [checkout]
      check: {type: object, required: [title, body]}
      maxCorrectionAttempts: 3
      onFailure: skip
    - name: gate
      approval: {role: ReleaseManager, quorum: 1, notBy: requester, expires: 24h, onReject: cancel,
                 onExpire: escalate, guards: [promote]}
      show: {notes: "${ steps['write-notes'] }"}
      dependsOn: [build, write-notes]
    - name: promote
      run: deploy.promote
      policy: {action: "release:promote", resource: {env: prod}}
      when: input.promote != false
      dependsOn: [build, gate]
      with: {image: "${ steps.build[0].image }", token: {$secret: deploy-key}}
      undo: {run: deploy.rollback, with: {release: "${ result.release }"}}
      onTimeout: escalate
      cost: {usd: 0.10, tokens: 4000}
    - {name: soak, sleep: 10m, dependsOn: [promote]}
    - name: health
      wait: {event: health.reported, match: event.release == steps.promote.release, timeout: 1h}
      dependsOn: [promote, soak]
    - name: announce
      workflow: notify-teams
      with: {text: "${ steps['write-notes'].body }"}
      dependsOn: [write-notes, health]
    - name: tell
      emit: release.done
      with: {release: "${ steps.promote.release }"}
      dependsOn: [promote, {step: announce, require: success}]
  output: {release: "${ steps.promote.release }", said: "${ steps.promote.release } is out"}
"""


@step
def greet(name: str, when: str = "now") -> str:
    return f"{when}: {name}"


@flow(search={"who": "input.who"}, retention={"completed": "30d"}, parallel_undo=True, priority=2)
def politeness(who: Any, times: Any = 2, note: Any = "a ${b} 'c'") -> Any:
    """Parameters beside each other are members of the input."""
    first = greet(who)
    again = greet.options(name="greet-again", timeout=5)(name=text("{}, {{again}}", first))
    greet.options(name="rarely", when=(times > 3) & ~(first == "x"))("no ${one}", "${ later }")
    return [again, note, (times + 1) * 2]


POLITE = """
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: politeness}
spec:
  input: {type: object, required: [who]}
  search: {who: input.who}
  retention: {completed: 30d}
  parallelUndo: true
  priority: 2
  steps:
    - {name: greet, run: greet, with: {name: "${ input.who }"}}
    - name: greet-again
      run: greet
      timeout: 5s
      with: {name: "${ steps.greet }, {again}"}
      dependsOn: [greet]
    - name: rarely
      run: greet
      with: {name: "no $${one}", when: "$${ later }"}
      when: "(has(input.times) ? input.times : 2) > 3 && !(steps.greet == 'x')"
      dependsOn: [greet]
  output:
    - "${ steps['greet-again'] }"
    - "${ has(input.note) ? input.note : 'a ${b} \\\\'c\\\\'' }"
    - "${ ((has(input.times) ? input.times : 2) + 1) * 2 }"
"""


@flow(failure_policy="compensate")
def elsewhere(request: Any) -> Any:
    """Effects by name: services carry them out, and nothing here stands for them."""
    party = effect(
        "refdata.v1.party.save",
        {"name": request.name, "token": secret("key")},
        undo={"run": "refdata.v1.party.delete", "with": {"id": expr("result.id")}},
        name="party",
        timeout="1m",
        retry=2,
    )
    effect("bell.ring", after=[party], when=request.loud == True)  # noqa: E712
    return party.id


ELSEWHERE = """
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: elsewhere}
spec:
  failurePolicy: compensate
  steps:
    - name: party
      run: refdata.v1.party.save
      with: {name: "${ input.name }", token: {$secret: key}}
      timeout: 1m
      retryPolicy: {maxRetries: 2, backoff: exponential, initialDelay: 1s, maxDelay: 60s}
      undo: {run: refdata.v1.party.delete, with: {id: "${ result.id }"}}
    - {name: bell-ring, run: bell.ring, when: input.loud == true, dependsOn: [party]}
  output: "${ steps.party.id }"
"""

PAIRS = {
    "provision": (provision_parties, PROVISION),
    "release": (release_service, RELEASE),
    "polite": (politeness, POLITE),
    "elsewhere": (elsewhere, ELSEWHERE),
}
