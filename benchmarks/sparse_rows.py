"""Time and memory of a fit and of predictions: rows of scipy.sparse against the same rows dense.

Each runs in a process of its own: `python benchmarks/sparse_rows.py --rows 100000 --inputs 5000`.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np


def rows(n: int, p: int, density: float) -> tuple[Any, Any]:
    """Return sparse rows in single precision, and targets that depend on fifty of their inputs."""
    from scipy.sparse import random_array

    rng = np.random.default_rng(0)
    X = random_array((n, p), density=density, format="csr", dtype=np.float32, rng=rng)
    return X, np.tanh(X[:, :50] @ rng.standard_normal(50)) + 0.01 * rng.standard_normal(n)


def measured(given: argparse.Namespace) -> dict[str, Any]:
    from streamkern import RandomFeatureRidge
    from streamkern.runtime.memory import peak_bytes

    X, y = rows(given.rows, given.inputs, given.density)
    X = X.toarray() if given.only == "dense" else X
    held = X.nbytes if given.only == "dense" else X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    model = RandomFeatureRidge(
        n_components=given.components, alpha=given.alpha, feature_map=given.map
    )
    begun, before = time.perf_counter(), peak_bytes()
    model.fit(X, y)
    fitted = time.perf_counter()
    predicted = model.predict(X)
    done = time.perf_counter()
    return {
        "fit, s": fitted - begun,
        "columns, s": model.report_["seconds"]["columns"],
        "pass, s": model.report_["seconds"]["pass"],
        "predict, s": done - fitted,
        "rows, GB": held / 1e9,
        "peak, GB": peak_bytes() / 1e9,
        "peak beyond, GB": (peak_bytes() - before) / 1e9,
        "planned, GB": model.report_["projected_worker_bytes"] / 1e9,
        "R2": 1 - np.mean((predicted - y) ** 2) / np.var(y),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--inputs", type=int, default=5_000)
    parser.add_argument("--density", type=float, default=0.005)
    parser.add_argument("--components", type=int, default=1024)
    parser.add_argument("--map", default="orthogonal")
    parser.add_argument("--alpha", type=float, default=1.0)
    parser.add_argument("--only", choices=("sparse", "dense"), help="one, as JSON")
    given = parser.parse_args()
    if given.only:
        print(json.dumps(measured(given)))
        return
    found = {}
    for kind in ("sparse", "dense"):
        command = [sys.executable, str(Path(__file__)), *sys.argv[1:], "--only", kind]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found[kind] = json.loads(done.stdout.splitlines()[-1])
    print(f"{given.rows:,} x {given.inputs:,}, density {given.density}, D = {given.components:,}")
    print(f"{'':20}{'sparse':>10}{'dense':>10}")
    for name, value in found["sparse"].items():
        print(f"{name:20}{value:10.3f}{found['dense'][name]:10.3f}")


if __name__ == "__main__":
    main()
