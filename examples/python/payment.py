"""Effects by HTTP: one service answers at once, the other says 202 and completes later."""

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue

from pawlflow import Pawl

reserved: dict[str, str] = {}  # by idempotency key: what is asked twice is done once
charges: Queue[str] = Queue()  # keys of what the bank took to do later


class Services(BaseHTTPRequestHandler):
    """A shop's stock and its bank: elsewhere they would be somebody else's."""

    def do_POST(self) -> None:
        """Carry out what is asked, or take it."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        key = self.headers["Idempotency-Key"]
        print(f"{self.path}: {asked['params']} of {asked['instance']}")
        if self.path == "/charges":
            self.answer(202, {})
            charges.put(key)
        else:
            reserved.setdefault(key, f"r-{len(reserved) + 1}")
            self.answer(200, {"reservation": reserved[key]})

    def answer(self, status: int, value: dict) -> None:
        """Answer JSON."""
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(value).encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


async def main(base: str) -> None:
    pawl = Pawl("sqlite:///payment.db", secrets={"bank-token": "tok-5f1e77"})
    pawl.load(Path(__file__).with_name("payment.yaml"))
    local = ["127.0.0.1"]  # not called by default
    pawl.http("stock.reserve", f"{base}/reservations", allow=local, timeout="5s")
    pawl.http("stock.release", f"{base}/releases", allow=local, timeout="5s")
    bearer = {"Authorization": ["Bearer ", {"$secret": "bank-token"}]}
    pawl.http("card.charge", f"{base}/charges", allow=local, headers=bearer, mode="async")
    async with pawl:
        run = await pawl.start("payment", {"sku": "tea", "amount": 5}, id="order-1")
        key = await asyncio.to_thread(charges.get)  # the bank has done it
        await pawl.complete(key, {"charge": "ch-1"}, instance="order-1")
        print(await run.result(timeout="1m"))


server = ThreadingHTTPServer(("127.0.0.1", 0), Services)
threading.Thread(target=server.serve_forever, daemon=True).start()
asyncio.run(main(f"http://127.0.0.1:{server.server_port}"))
