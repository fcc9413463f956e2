"""Servers of files on loopback, each in a process of its own."""

import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from conftest import wait_until
from s3fs import S3FileSystem

KEY, SECRET = "a-key-for-tests", "a-secret-for-tests"

# Serves a folder, by ranges, to those who know the password if there is one.
WEB = """
import sys
from aiohttp import BasicAuth, web

folder, port, *password = sys.argv[1:]

@web.middleware
async def guarded(request, handler):
    given = request.headers.get("Authorization")
    if password and given != BasicAuth("someone", password[0]).encode():
        raise web.HTTPUnauthorized
    return await handler(request)

app = web.Application(middlewares=[guarded])
app.router.add_static("/", folder, show_index=True)
web.run_app(app, host="127.0.0.1", port=int(port), print=None)
"""


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def listens(port):
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def running(*command, port):
    process = subprocess.Popen(
        [sys.executable, *map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_until(lambda: listens(port), f"listening at {port}")
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def s3_server():
    port = free_port()
    with running("-m", "moto.server", "-H", "127.0.0.1", "-p", port, port=port):
        yield f"127.0.0.1:{port}"


@contextmanager
def web_server(folder, *password):
    port = free_port()
    with running("-c", WEB, folder, port, *password, port=port):
        yield f"127.0.0.1:{port}"


@contextmanager
def web_server_without_ranges(folder):
    port = free_port()
    where = ("--bind", "127.0.0.1", "--directory", folder)
    with running("-m", "http.server", port, *where, port=port):
        yield f"127.0.0.1:{port}"


@contextmanager
def late_proxy(server, *options):
    port = free_port()
    with running(
        Path(__file__).with_name("late_proxy.py"), server, "--port", port, *options, port=port
    ) as process:
        yield f"127.0.0.1:{port}", process


class Bucket:
    """A bucket on an S3 server.

    Parameters
    ----------
    server : str
        Its address.
    """

    def __init__(self, server):
        self.server = server
        self.options = self.options_at(server)
        self.store = S3FileSystem(**self.options)
        self.store.mkdir("rows")

    @staticmethod
    def options_at(server):
        """Storage options for the same bucket at another address."""
        return {"key": KEY, "secret": SECRET, "endpoint_url": f"http://{server}"}

    def put(self, path, name=None):
        """Put a file into the bucket, and return its URL."""
        where = f"rows/{name or path.name}"
        self.store.put_file(str(path), where)
        return f"s3://{where}"
