"""A service written with nats-py and docs/nats.md alone: nothing of Pawl is imported here."""

import asyncio
import json

import nats as driver

COMPLETED = "workflow.v1.events.step-completed"
WORKFLOW = """
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: provision}
spec:
  failurePolicy: compensate
  steps:
    - name: party
      run: refdata.v1.party.save
      with: {name: "${ input.name }"}
      undo: {run: refdata.v1.party.delete, with: {id: "${ result.id }"}}
    - name: account
      run: iam.v1.account.save
      dependsOn: [party]
      with: {party: "${ steps.party.id }"}
  output: {account: "${ steps.account.id }"}
"""
SUBJECTS = ("refdata.v1.party.save", "refdata.v1.party.delete", "iam.v1.account.save")


def done(msg, result=None, **more):
    """The completion of a command, by its headers."""
    said = {
        "workflow_instance_id": msg.headers["X-Workflow-Instance-Id"],
        "step_id": msg.headers["X-Workflow-Step-Id"],
        "success": True,
        "result_json": json.dumps(result),
        "error_message": "",
    }
    return {**said, **more}


class Service:
    """Hears commands by plain subscriptions, and notes them in order."""

    def __init__(self, url):
        self.url = url
        self.heard = asyncio.Queue()

    async def __aenter__(self):
        self.nc = await driver.connect(self.url)
        self.js = self.nc.jetstream()
        for stream in await self.js.streams_info():
            await self.js.delete_stream(stream.config.name)
        for subject in SUBJECTS:
            await self.nc.subscribe(subject, cb=self.heard.put)
        await self.nc.flush()
        return self

    async def __aexit__(self, *_):
        await self.nc.close()

    async def next(self, subject=None):
        """The next command."""
        msg = await asyncio.wait_for(self.heard.get(), 20)
        assert subject is None or msg.subject == subject
        return msg

    async def say(self, said, headers=None):
        """Publish a completion, as plainly as can be."""
        await self.nc.publish(COMPLETED, json.dumps(said).encode(), headers=headers)

    async def ask(self, subject, said, headers=None):
        """Request and reply."""
        data = json.dumps(said).encode()
        return json.loads((await self.nc.request(subject, data, timeout=30, headers=headers)).data)

    async def dead(self, count=1):
        """So many dead letters, with their codes."""
        sub = await self.js.subscribe(
            "workflow.v1.dead-letters.step-completed", ordered_consumer=True
        )
        return [await sub.next_msg(timeout=30) for _ in range(count)]
