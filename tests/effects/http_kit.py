"""A real server on this machine that answers as it is told, and remembers what it was asked."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from pawlflow import Pawl, WorkflowFailed
from pawlflow.testing import assert_replays
from tests.effects.kit import run, written

LOCAL = ["127.0.0.1/32"]
ONE = """
  steps:
    - name: charge
      run: payment.charge
      with: {amount: "${ input.amount }"}
      MORE
  output: "${ steps.charge }"
"""
RETRY = "retryPolicy: {maxRetries: 3, backoff: constant, initialDelay: 1ms}"


def one_step(folder, more=""):
    """A workflow of one step, in a file."""
    return written(folder, "one", ONE.replace("MORE", more))


def outcome_of(path, url, pawl=None, **options):
    """What became of an order of 5, and what `show` says of it; the result, or what failed."""

    async def main(pawl):
        pawl.load(path)
        pawl.http("payment.charge", url, **{"allow": LOCAL, **options})
        async with pawl:
            started = await pawl.start("one", {"amount": 5}, id="order-1")
            try:
                result = await started.result(timeout="20s")
            except WorkflowFailed as failed:
                result = failed
            assert_replays(started)
            return result, started.show()["steps"]["charge"]

    return run(main(pawl or Pawl("memory:")))


class Server:
    """Answers of a path come in order, the last one again and again."""

    def __init__(self, context=None):
        self.answers = {}
        self.asked = []  # (path, headers, body), in order
        self.come = threading.Condition()
        self.held = threading.Event()  # until it is set, `hold` answers nothing
        self.web = ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.web.daemon_threads = True
        if context is not None:
            self.web.socket = context.wrap_socket(self.web.socket, server_side=True)
        self.port = self.web.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.web.serve_forever, args=(0.01,))
        self.thread.start()

    def tell(self, path, *answers):
        """What to answer: (status, value) or (status, value, headers)."""
        self.answers[path] = list(answers)

    def wait_for(self, count):
        """Until so many requests have come."""
        with self.come:
            assert self.come.wait_for(lambda: len(self.asked) >= count, timeout=20)

    def keys(self, path):
        """The Idempotency-Keys that came to a path, in order."""
        return [headers["idempotency-key"] for at, headers, _ in self.asked if at == path]

    def close(self):
        self.held.set()
        self.web.shutdown()
        self.thread.join()
        self.web.server_close()

    def handler(self):
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def answer(self):
                size = int(self.headers.get("content-length", 0))
                body = json.loads(self.rfile.read(size))
                headers = {name.lower(): value for name, value in self.headers.items()}
                headers[":method"] = self.command
                with server.come:
                    server.asked.append((self.path, headers, body))
                    server.come.notify_all()
                    told = server.answers.get(self.path, [(200, {})])
                    status, value, *more = told.pop(0) if len(told) > 1 else told[0]
                if status == "hold":
                    server.held.wait(20)
                    status = value
                    value = {}
                if status == "hang up":
                    self.close_connection = True
                    return
                data = value if isinstance(value, bytes) else json.dumps(value).encode()
                self.send_response(status)
                for name, each in {
                    "Content-Length": str(len(data)),
                    **(more[0] if more else {}),
                }.items():
                    self.send_header(name, each)
                self.end_headers()
                self.wfile.write(data)

            do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815

            def log_message(self, *_):
                """Tests are quiet."""

        return Handler
