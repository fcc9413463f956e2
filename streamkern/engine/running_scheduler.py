"""A scheduler that runs already: its address, in a file or by itself, and a client of it."""

import asyncio
import json
import re
import socket
import threading
import time
from concurrent.futures import Future
from pathlib import Path

from distributed import Client, Security, rpc

from streamkern.engine.plain_yaml import text_of
from streamkern.errors import ClusterError, ParameterError, first_line
from streamkern.errors.urls import shown

# Seconds within which something must listen at an address.
_CONNECTING = 3.0
_ADDRESS = re.compile(r"(?:(tcp|tls|ws|wss)://)?(\[[^]]+\]|[^:/\s@]+):(\d{1,5})")


def read_scheduler_file(path: Path) -> str:
    """Return the address in a file that `dask scheduler --scheduler-file` wrote."""
    try:
        return str(json.loads(text_of(path))["address"])
    except FileNotFoundError as error:
        raise ParameterError(
            f"{path} does not exist; start the scheduler with --scheduler-file first."
        ) from error
    except (OSError, RecursionError, ValueError, TypeError, KeyError) as error:
        raise ParameterError(
            f"{path} must be the JSON that `dask scheduler --scheduler-file` writes, with an "
            f"address, but is not; name another file."
        ) from error


def checked_address(address: str) -> tuple[str, int, bool]:
    """Return the host and port in a scheduler's address, and whether it is encrypted."""
    match = _ADDRESS.fullmatch(address)
    if not match or not 0 < int(match[3]) < 1 << 16:
        raise ParameterError(
            f"a scheduler address looks like tcp://host:8786, but {shown(address)!r} was given; "
            f"correct it."
        )
    return match[2].strip("[]"), int(match[3]), match[1] in ("tls", "wss")


def client_at(address: str, deadline: float, timeout: float) -> Client:
    """Return a client of the scheduler at an address, or raise ClusterError."""
    host, port, encrypted = checked_address(address)
    if encrypted and not Security().get_connection_args("client")["ssl_context"]:
        raise ClusterError(
            f"{address} needs TLS certificates, but none is configured; set distributed.comm.tls "
            f"in the Dask configuration."
        )
    waited = 0.0
    try:
        socket.getaddrinfo(host, port)
        waited = min(timeout, _CONNECTING)
        _check_listener(host, port, waited)
        waited = timeout
        kind = _kind_at(address, seconds_left(deadline))
        client = Client(address, timeout=seconds_left(deadline)) if kind == "Scheduler" else None
    except socket.gaierror as error:
        raise ClusterError(
            f"the host of {address} is unknown ({error.strerror}); check the address."
        ) from error
    except Exception as error:
        why = "" if isinstance(error, OSError) else f" ({first_line(error)})"
        raise ClusterError(
            f"no Dask scheduler answers at {address} within {waited:g} s{why}; check that it runs "
            f"and can be reached from here."
        ) from error
    if client is None:
        raise ClusterError(f"{address} is a Dask {kind}; give the address of its scheduler.")
    return client


def _check_listener(host: str, port: int, seconds: float) -> None:
    """Raise OSError where nothing listens; Dask's client would try for all of its time."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection((host, port), max(deadline - time.monotonic(), 0.1)).close()
        except OSError:
            if time.monotonic() > deadline - 0.1:
                raise
            time.sleep(0.1)  # it may just be starting
        else:
            return


def _kind_at(address: str, seconds: float) -> str:
    """Return what serves at an address; a client would wait without end for a silent one."""

    async def identity() -> str:
        arguments = Security().get_connection_args("client")
        async with asyncio.timeout(seconds), rpc(address, connection_args=arguments) as server:
            return str((await server.identity())["type"])

    answer: Future[str] = Future()

    def ask() -> None:
        try:
            answer.set_result(asyncio.run(identity()))
        except BaseException as error:  # noqa: BLE001  it is raised where it is waited for
            answer.set_exception(error)

    # In a thread, since this one may have a loop, and nobody waits for the thread's end.
    threading.Thread(target=ask, name="ask", daemon=True).start()
    return answer.result()


def seconds_left(deadline: float) -> float:
    return max(deadline - time.monotonic(), 0.5)
