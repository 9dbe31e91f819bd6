"""What DBOS does in several processes: .venv-bench/bin/python bench/peers/dbos_processes.py.

Each is an executor of its own on one database, with its part of the workflows in flight; otherwise
as dbos_steps.py, whose flow and forms they are. Prints one line of JSON.
"""

import gc
import json
import sys
from argparse import Namespace
from time import process_time
from typing import Any

import dbos_steps as alone
import together
from dbos import DBOS


def main(arguments: list[str]) -> int:
    """Measure, or be one of the processes that are measured."""
    if arguments[0] == "executor":
        return work(Namespace(**json.loads(arguments[1])))
    at = arguments.index("--processes")
    count = int(arguments[at + 1])
    options = alone.parse(arguments[:at] + arguments[at + 2 :])
    with alone.place(options) as url:
        alone.launch(url, options)  # makes the tables
        DBOS.destroy()
        measured = measure(options, url, count)
    print(json.dumps({**alone.circumstances(options), "processes": count, **measured}), flush=True)
    return 0


def measure(options: Namespace, url: str, count: int) -> dict[str, Any]:
    """Let them come, say when, and count from then until the last is done."""
    flying = max(1, options.in_flight // count)
    share = {"in_flight": flying, "workflows": options.workflows // count, "url": url}
    words = json.dumps({**vars(options), **share})
    command = [sys.executable, __file__, "executor", words]
    seconds, said = together.measured(command, count)
    spent = sum(map(float, said))
    workflows = count * share["workflows"]
    alone.check(url, workflows + count * max(alone.WARM_UP, flying))
    return {
        "in_flight": options.in_flight,
        "workflows": workflows,
        "seconds": round(seconds, 3),
        "steps_per_s": round(workflows * alone.STEPS / seconds, 1),
        "cpu_ms_per_workflow": round(spent / workflows * 1e3, 3),
    }


def work(options: Namespace) -> int:
    """One executor."""
    alone.launch(options.url, options)
    try:
        warm_up = max(alone.WARM_UP, options.in_flight)
        alone.run_all(options.form, range(warm_up), options.in_flight, options.url)
        gc.collect()
        gc.freeze()
        together.told(together.READY)
        spent = process_time()
        alone.run_all(options.form, range(options.workflows), options.in_flight, options.url)
        together.told(f"{process_time() - spent}\n")
    finally:
        DBOS.destroy(workflow_completion_timeout_sec=10)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
