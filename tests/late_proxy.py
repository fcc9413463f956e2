"""A web server that answers late, or badly: python late_proxy.py 127.0.0.1:9000 --port 9001.

Passes requests on to another server, each so many seconds late; some, by chance, it answers itself
with 503, and of some answers it drops the connection half way.  It ends on Ctrl-C or SIGTERM.
"""

import argparse
import os
import random
import re
import socket
import threading
import time
from contextlib import suppress
from typing import NamedTuple

_PIECE = 1 << 20
_ERROR = b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Trouble(NamedTuple):
    seconds: float  # how late each request is
    errors: float  # the share of requests that are refused
    drops: float  # and of those whose answer breaks off
    chance: random.Random


class Connection(threading.Thread):
    """One client; the log gets a line for every request: its method, path, range and status."""

    def __init__(self, client, server, trouble, log):
        super().__init__(daemon=True)
        self.client = client
        self.server = server
        self.trouble = trouble
        self.log = log

    def run(self):
        """Pass requests on until the client closes."""
        with suppress(OSError), self.client:
            self.client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while self._pass_on():
                pass

    def _pass_on(self):
        request, body = _head(self.client)
        if not request:
            return False
        time.sleep(self.trouble.seconds)
        chance = self.trouble.chance.random()
        if chance < self.trouble.errors:
            self._note(request, b"503")
            self.client.sendall(_ERROR)
            return False
        with socket.create_connection(self.server) as server:
            server.sendall(_with_connection(request, b"close") + body)
            _copy(self.client, server, _length(request, 0) - len(body))
            answer, body = _head(server)
            self._note(request, answer.split(b" ", 2)[1])
            # Without a length the answer ends where the server closes.
            has_end = re.search(rb"\n(content-length|transfer-encoding):", answer, re.IGNORECASE)
            length = 0 if request.startswith(b"HEAD") else _length(answer, 1 << 62)
            breaks_off = length > 1 and chance > 1 - self.trouble.drops
            if breaks_off:
                length //= 2
            way = b"keep-alive" if has_end and not breaks_off else b"close"
            self.client.sendall(_with_connection(answer, way) + body[:length])
            _copy(server, self.client, length - len(body))
        return way == b"keep-alive"

    def _note(self, request, status):
        method, path, _ = request.split(b" ", 2)
        asked = re.search(rb"\nrange: *bytes=(\S+)", request, re.IGNORECASE)
        words = method, path, asked[1] if asked else b"-", status
        os.write(self.log, b" ".join(words) + b"\n")


def _with_connection(head, way):
    """Return a head that says what becomes of the connection."""
    rest = re.sub(rb"\r\nconnection:[^\r]*", b"", head, flags=re.IGNORECASE)
    return rest[:-2] + b"Connection: " + way + b"\r\n\r\n"


def _head(sender):
    """Return a head, and what came of the body along with it; nothing where no more comes."""
    found = b""
    while b"\r\n\r\n" not in found:
        more = sender.recv(_PIECE)
        if not more:
            return b"", b""
        found += more
    head, mark, body = found.partition(b"\r\n\r\n")
    return head + mark, body


def _length(head, otherwise):
    """Return the length of a body, or what to take where the head does not say."""
    found = re.search(rb"\ncontent-length: *(\d+)", head, re.IGNORECASE)
    return int(found[1]) if found else otherwise


def _copy(sender, receiver, length):
    piece = memoryview(bytearray(min(_PIECE, max(length, 0))))
    while length > 0 and (got := sender.recv_into(piece, min(len(piece), length))):
        receiver.sendall(piece[:got])
        length -= got


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("server", help="host:port to pass requests on to")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=0.03, help="how late every answer is")
    parser.add_argument("--errors", type=float, default=0.0, help="share of answers that are 503")
    parser.add_argument("--drops", type=float, default=0.0, help="share of answers that break off")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log", default=os.devnull, help="file for a line a request")
    given = parser.parse_args()
    host, _, port = given.server.rpartition(":")
    chance = random.Random(given.seed)  # noqa: S311  not for secrets
    trouble = Trouble(given.seconds, given.errors, given.drops, chance)
    log = os.open(given.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with socket.create_server(("127.0.0.1", given.port), backlog=128) as listening:
        while True:
            client, _ = listening.accept()
            Connection(client, (host, int(port)), trouble, log).start()


if __name__ == "__main__":
    main()
