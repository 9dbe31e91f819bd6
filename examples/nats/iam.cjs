// The service iam, in another language: `npm install nats`, then `node iam.cjs nats://127.0.0.1:4222`.
// It keeps the contract: what was done is kept by step id, told again when asked again, never done twice;
// and an engine that does not answer means later.
const fs = require("node:fs");
const { connect, JSONCodec, headers } = require("nats");

const COMPLETED = "workflow.v1.events.step-completed";
const LOOK_UP = "workflow.v1.steps.get-result";
const BOOK = process.env.IAM_BOOK || "iam.jsonl";
const json = JSONCodec();

const done = new Map(); // completions by step id
if (fs.existsSync(BOOK)) {
  for (const line of fs.readFileSync(BOOK, "utf8").split("\n").filter(Boolean)) {
    const told = JSON.parse(line);
    done.set(told.step_id, told);
  }
}

function saveAccount(stepId, { party, login }) {
  if (!login) throw new Error("an account has a login");
  return { account: `${login}-${stepId.slice(0, 8)}`, party };
}

async function isOpen(nc, stepId, instanceId, tenant) {
  const asked = { step_id: stepId, workflow_instance_id: instanceId, tenant_id: tenant };
  const answer = json.decode((await nc.request(LOOK_UP, json.encode(asked), { timeout: 2000 })).data);
  return answer.state === "open";
}

async function take(nc, js, command) {
  const said = (name) => command.headers.get(name);
  const [stepId, instanceId, tenant] = ["X-Workflow-Step-Id", "X-Workflow-Instance-Id", "X-Tenant-Id"].map(said);
  if (!done.has(stepId)) {
    if (!(await isOpen(nc, stepId, instanceId, tenant))) return; // nobody wants it any more
    const told = { workflow_instance_id: instanceId, step_id: stepId, attempt: Number(said("X-Workflow-Attempt")) };
    try {
      const result = saveAccount(stepId, json.decode(command.data));
      Object.assign(told, { success: true, result_json: JSON.stringify(result), error_message: "" });
    } catch (error) {
      Object.assign(told, { success: false, failure_class: "terminal", error_message: error.message });
    }
    fs.appendFileSync(BOOK, JSON.stringify(told) + "\n"); // before anybody is told
    done.set(stepId, told);
  }
  const about = headers();
  about.set("X-Tenant-Id", tenant);
  await js.publish(COMPLETED, json.encode(done.get(stepId)), { headers: about });
}

(async () => {
  const nc = await connect({ servers: process.argv[2] || "nats://127.0.0.1:4222" });
  const js = nc.jetstream();
  const commands = nc.subscribe("iam.v1.account.save", { queue: "iam" });
  await nc.flush();
  console.log("iam is ready");
  for await (const command of commands) {
    take(nc, js, command).catch((error) => console.error(`later: ${error.message}`)); // it is sent again
  }
})();
