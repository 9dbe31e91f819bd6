"""What the tests of the PostgreSQL store share: a line that can be cut at the worst moment."""

import socket
import threading
from collections.abc import Callable

from tests.servers import Postgres, free_port

BYTES = 65_536


class Line:
    """A TCP proxy before a server. `watch` sees what a client sends, and says what becomes of it.

    "pass": it goes on. "lose": the line is cut, and the server never sees it. "deafen": the server
    gets it, and its answer is lost with the line. "delay": the line is cut, and the server gets it
    when `release` is called.
    """

    def __init__(self, server: Postgres) -> None:
        self.server = server
        self.port = free_port()
        self.watch: Callable[[bytes], str] = lambda _: "pass"
        self.held: list[tuple[socket.socket, bytes]] = []
        self.cuts = 0
        self.open: set[socket.socket] = set()
        self.listening = socket.create_server(("127.0.0.1", self.port))
        self.threads: list[threading.Thread] = []
        self.start(self.accept)

    def url(self, url: str) -> str:
        """The same store, through this line."""
        return url.replace(f":{self.server.port}/", f":{self.port}/")

    def once(self, word: bytes, fate: str) -> None:
        """Let this happen to the next thing that a client sends with this word in it."""

        def watch(data: bytes) -> str:
            if word not in data:
                return "pass"
            self.watch = lambda _: "pass"
            self.cuts += 1
            return fate

        self.watch = watch

    def start(self, work: Callable[..., None], *given: object) -> None:
        """Work on a thread."""
        thread = threading.Thread(target=work, args=given, daemon=True)
        self.threads.append(thread)
        thread.start()

    def accept(self) -> None:
        """Take calls until the line is closed."""
        while True:
            try:
                near, _ = self.listening.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.server.port))
            except OSError:
                near.close()
                continue
            self.open |= {near, far}
            deaf = threading.Event()
            self.start(self.forth, near, far, deaf)
            self.start(self.back, near, far, deaf)

    def forth(self, near: socket.socket, far: socket.socket, deaf: threading.Event) -> None:
        """From the client to the server."""
        while data := received(near):
            fate = self.watch(data)
            if fate == "deafen":
                deaf.set()
            if fate in ("pass", "deafen"):
                send(far, data)
                continue
            if fate == "delay":
                self.held.append((far, data))
                near.shutdown(socket.SHUT_RDWR)
                return
            break
        shut(near, far)

    def back(self, near: socket.socket, far: socket.socket, deaf: threading.Event) -> None:
        """From the server to the client."""
        while data := received(far):
            if deaf.is_set():
                break
            send(near, data)
        shut(near, far)

    def release(self) -> None:
        """What was held back reaches the server now."""
        for far, data in self.held:
            send(far, data)
        self.held = []

    def close(self) -> None:
        """Take no more calls, and cut those there are."""
        shut(self.listening, *self.open)
        self.listening.close()
        for thread in self.threads:
            thread.join(10)
        for each in self.open:
            each.close()


def received(end: socket.socket) -> bytes:
    """What comes next; nothing if the line is cut."""
    try:
        return end.recv(BYTES)
    except OSError:
        return b""


def send(end: socket.socket, data: bytes) -> None:
    """Pass something on, if there is still somebody."""
    try:
        end.sendall(data)
    except OSError:
        return


def shut(*ends: socket.socket) -> None:
    """Cut a line at all its ends."""
    for end in ends:
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            continue
