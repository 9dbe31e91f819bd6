"""Starting by mail: publish what is new, commit the start, and be gone."""

from typing import Any

import msgspec

from pawlflow import requests
from pawlflow.app import open_store, request, shed
from pawlflow.cli.editions import note_changed
from pawlflow.cli.modules import in_module, is_module
from pawlflow.cli.output import waiting_limit
from pawlflow.cli.session import Session, reading, refusal_told, refuse, told
from pawlflow.cli.workflows import Chosen, by_name, in_file, is_file, note_unknown_children
from pawlflow.definition.shape import Policy, Schedule, Workflow
from pawlflow.engine.admission import admit_start
from pawlflow.engine.clock import SystemClock, time_ordered_id
from pawlflow.kernel.draft import Rejected
from pawlflow.model.ids import CellId, InstanceId, TimeMs
from pawlflow.model.inputs import Input
from pawlflow.shedding import letter
from pawlflow.store.port import Store, StoreError
from pawlflow.trouble import Refused


class Order(msgspec.Struct, frozen=True):
    """A start as it was asked for."""

    chosen: Chosen
    key: InstanceId
    input: Any
    by: str
    at: TimeMs | None = None  # not before


def order_of(here: Session, given: str, key: str | None, value: Any, by: str) -> Order:
    """Find the workflow, and give the instance an id if it has none."""
    with told(here):
        if is_module(given):
            chosen = in_module(here, given, value)
        elif is_file(given):
            chosen = in_file(here, given)
            note_changed(here, chosen.unpublished)
        else:
            with reading(here) as store:
                chosen = by_name(here, store, given)
        clock = SystemClock()
        fresh = time_ordered_id(clock.now(), clock.entropy())
        named = InstanceId(fresh if key is None else key)
        requests.instance_cell(here.tenant, named)
        note_unknown_children(here, chosen)
    return Order(chosen, named, value, by)


def start_by_mail(here: Session, order: Order) -> bool:
    """Commit a start; durable when this returns. True if it had happened already.

    Raises Refused: whoever follows an instance ends only once its screen is gone.
    """
    start = admitted(here, order)
    cell, most = CellId(here.tenant, order.chosen.plan.workflow, order.key), waiting_limit()
    store = open_store(here.url)
    try:
        refused = shed(store, letter(cell, start, b""), most)
        if refused is not None:  # before anything is asked of an owner who is far behind
            raise Refused(refused.code, refusal_told(f"the start of {order.key}", refused))
        publish_all(here, store, order)
        address = (here.tenant, order.key)
        existing = address in store.load([address])
        outcome = request(store, cell, start, waiting_max=most)
    finally:
        store.close()
    if isinstance(outcome, Rejected):
        raise Refused(outcome.code, refusal_told(f"the start of {order.key}", outcome))
    return existing


def publish_all(here: Session, store: Store, order: Order) -> None:
    """Make known what is new in the file. Raises Refused if an owner does not answer."""
    try:
        for policy in order.chosen.policies:  # before anything that they govern
            publish(here, store, policy, order.by)
        for workflow in order.chosen.unpublished:
            publish(here, store, workflow, order.by)
        for schedule in order.chosen.schedules:
            publish(here, store, schedule, order.by)
    except StoreError as late:
        if late.code != "store.busy":
            raise
        message = f"the owner has not answered yet: {order.key} was not started; try again"
        raise Refused(late.code, message) from late


def admitted(here: Session, order: Order) -> Input:
    """The start, if its input fits the workflow."""
    start = admit_start(order.chosen.plan, order.input, tenant=here.tenant, by=order.by)
    if isinstance(start, Rejected):
        refuse(here, f"the start of {order.key}", start)
    return msgspec.structs.replace(start, start_at=order.at)


def publish(here: Session, store: Store, made: Workflow | Schedule | Policy, by: str) -> bool:
    """Make a definition known under its name; False if it was known already."""
    tenant, cell = here.tenant, requests.registry_cell(here.tenant)
    asked: Input
    if isinstance(made, Workflow):
        asked, same = requests.publish(made, tenant, by), "definition.same"
        what = f"{made.name} version {made.version}"
    elif isinstance(made, Schedule):
        asked, same = requests.publish_schedule(made, tenant, by), "schedule.same"
        what = f"schedule {made.name}"
    else:
        cell = requests.policies_cell(tenant)
        asked, same = requests.publish_policy(made, tenant, by), "policy.same"
        what = f"policy {made.name} version {made.version}"
    outcome = request(store, cell, asked)
    if isinstance(outcome, Rejected) and outcome.code != same:
        refuse(here, what, outcome)
    return not isinstance(outcome, Rejected)
