"""The record of what commands and Python calls give: write it, or compare with it.

    python tests/golden/record.py --check [--only NAME]
    python tests/golden/record.py --write [--only NAME]

The bits of an array depend on the processor and the libraries, so hashes are compared where both
are those of the record, and elsewhere norms and projections, as far as a case says.
"""

import argparse
import contextlib
import hashlib
import importlib.util
import json
import platform
import re
import shlex
import shutil
import sys
import tempfile
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import scipy.linalg  # noqa: F401  loads the BLAS library that the machine is named by
import threadpoolctl

# The tree that this file is in, not one that is installed.
sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]

from commandline import invoke  # noqa: E402
from golden import cases  # noqa: E402

from streamkern.registry import EXTENSIONS, installed  # noqa: E402

RECORD = Path(__file__).with_name("record.json")
LIBRARIES = ("numpy", "scipy", "scikit-learn", "dask", "h5py", "pandas")
# What differs between two runs; the frontier of a search is in the order of measured times.
PASSING = re.compile(r"second|bytes|modified|threads|workers|frontier")
# Lists of lines by their names.
LISTS: dict[str, list[str]] = {}
HASH = re.compile(r"(.*?)\b[0-9a-f]{16}\b(.*)")


def machine() -> dict[str, Any]:
    """Return what bits depend on: the processor, and the libraries that compute."""
    facts: dict[str, str] = {}
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            facts.setdefault(*map(str.strip, line.partition(":")[::2]))
    named = [platform.machine(), *(facts.get(key, "") for key in ("model name", "model"))]
    names = ("internal_api", "version", "architecture", "num_threads")
    pools = threadpoolctl.threadpool_info()
    blas = {" ".join(str(p.get(name)) for name in names) for p in pools if "blas" in str(p)}
    libraries = {name: version(name) for name in LIBRARIES}
    return {"processor": " ".join(named), "blas": sorted(blas), "libraries": libraries}


def hashed(data: bytes) -> str:
    """Return enough of a hash to tell arrays apart."""
    return hashlib.sha256(data).hexdigest()[:16]


def summary(values: Any) -> str:
    """Return type, shape, hash, norm and a projection of an array; of text no more than a hash."""
    array = np.asarray(values)
    if kind(array) == "text":
        text = [each.decode() if isinstance(each, bytes) else str(each) for each in array.flat]
        return f"text {array.shape} {hashed(json.dumps(text).encode())}"
    finite = np.nan_to_num(array.astype(float).ravel(), posinf=0, neginf=0)
    along = finite @ np.random.default_rng(0).standard_normal(finite.size)
    bits = hashed(np.ascontiguousarray(array).tobytes())
    return f"{array.dtype} {array.shape} {bits} {np.linalg.norm(finite):.6g} {along:.6g}"


def listed(lines: Any) -> str:
    """Return the name of a list of lines, which many cases have in common."""
    found = sorted(set(lines))
    name = f"list {hashed(json.dumps(found).encode())}"
    LISTS[name] = found
    return name


def masked(text: str) -> str:
    """Return a sentence without what differs between folders and machines."""
    text = re.sub(r"(?<![\w.])/[\w./-]+", "PATH", text.replace(str(Path.cwd()), "."))
    return re.sub(r"\d+([.,]\d+)*(e[+-]?\d+)?( [kMGT]B)?", "#", text)


def plain(value: Any) -> Any:
    """Return what a function gave as JSON, with summaries of its arrays."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list) and isinstance(value[0], str):
        return listed(value)
    number_like = np.ndarray, np.generic, int, float, list
    return summary(value) if isinstance(value, number_like) else masked(str(value))


def leaves(value: Any, path: str = "") -> list[tuple[str, Any]]:
    """Return the leaves of a JSON value, with the keys that lead to them."""
    if isinstance(value, dict):
        return [leaf for key in sorted(value) for leaf in leaves(value[key], f"{path}.{key}")]
    if isinstance(value, list) and value:
        return [leaf for each in value for leaf in leaves(each, f"{path}[]")]
    return [(path, value)]


def command(line: str) -> dict[str, Any]:
    """Run a command line, and return its exit status with what it printed."""
    asked = [] if "--help" in line else ["--json", "--quiet"]
    result = invoke(*shlex.split(line), *asked)
    kept: dict[str, Any] = {"status": result.exit_code}
    told = [each for each in result.stderr.splitlines() if re.match(r"(note|Error): ", each)]
    kept |= {"told": [masked(each) for each in told]} if told else {}
    if result.exit_code:
        reason = getattr(result.exception, "__context__", None)
        return kept | {"error": "usage" if reason is None else type(reason).__name__}
    if "--help" in line:
        options = re.findall(r"^  (?:-h, )?(--[\w-]+|\w+(?=  ))", result.stdout, re.MULTILINE)
        return kept | {"options": listed(options)}
    found = leaves(json.loads(result.stdout.splitlines()[-1]))
    keys: dict[str, set[str]] = {}
    for path, _ in found:
        keys.setdefault(path.rpartition(".")[0], set()).add(path.rpartition(".")[2])
    kinds = int, float
    numbers = [float(v) for path, v in found if isinstance(v, kinds) and not PASSING.search(path)]
    lines = [f"{parent}: {' '.join(sorted(names))}" for parent, names in keys.items()]
    return kept | {"keys": listed(lines), "numbers": summary(numbers)}


def of_file(path: Path) -> dict[str, Any]:
    """Return what is in a file that a case wrote; in HDF5 the arrays of all folds are as one."""
    if path.suffix == ".csv":
        header = path.read_text().partition("\n")[0].split(",")
        return {"header": listed(header), "rows": summary(np.genfromtxt(path, delimiter=",")[1:])}
    if path.suffix == ".html":
        found = re.findall(r"<h\d[^>]*>(.*?)</h\d>", path.read_text(), re.DOTALL)
        return {"headings": listed(map(masked, found))}
    if path.suffix == ".onnx":
        from onnx import load, numpy_helper

        graph = load(path).graph
        arrays = {each.name: summary(numpy_helper.to_array(each)) for each in graph.initializer}
        return {"operators": [node.op_type for node in graph.node], "arrays": arrays}
    if path.suffix != ".h5":
        return {}
    layout: list[str] = []
    parts: dict[str, list[Any]] = {}

    def visit(name: str, node: Any) -> None:
        alike = re.sub(r"/\d+(?=/)", "/*", name)
        layout.extend(f"{alike}@{key} {kind(value)}" for key, value in node.attrs.items())
        if isinstance(node, h5py.Dataset):
            layout.append(f"{alike} {kind(node[()])}")
            if kind(node[()]) != "text" and not PASSING.search(name):
                parts.setdefault(alike, []).append(np.ravel(node[()]))

    with h5py.File(path) as file:
        visit("", file)
        file.visititems(visit)
    # Types and shapes are told by the layout.
    bare = {name: summary(np.concatenate(parts[name])).rpartition(") ")[2] for name in parts}
    return {"layout": listed(layout), "arrays": bare}


def kind(values: Any) -> str:
    """Return type and shape of an array; texts of cards are of any length."""
    array = np.asarray(values)
    return "text" if array.dtype.kind in "OSU" else f"{array.dtype} {array.shape}"


def run(name: str) -> dict[str, Any]:
    """Return what a case gives, run in a folder that is removed again."""
    steps = cases.CASES[name]
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        warnings.catch_warnings(record=True) as noted,
    ):
        warnings.simplefilter("always")
        shutil.copytree(cases.data(), ".", dirs_exist_ok=True)
        before = set(Path().rglob("*"))
        kept = {"result": plain(steps()) if callable(steps) else [command(each) for each in steps]}
        notes = [f"{each.category.__name__}: {masked(str(each.message))}" for each in noted]
        written = sorted(path for path in set(Path().rglob("*")) - before if path.is_file())
        # Names of kept moments and of checkpoints hold a hash of their folder.
        files = {
            re.sub(r"-[0-9a-f]{8,12}(?=[.-])", "", str(path)): of_file(path) for path in written
        }
    return json.loads(json.dumps(kept | {"notes": notes, "files": files}))


def differences(expected: Any, found: Any, tolerance: float | None, at: str) -> list[str]:
    """Return in what two records differ, a line each; without a tolerance hashes are compared."""
    if isinstance(expected, list) and isinstance(found, list):
        expected, found = dict(enumerate(expected)), dict(enumerate(found))
    if isinstance(expected, dict) and isinstance(found, dict):
        both = [key for key in expected if key in found]
        lines = [f"{at}/{key} is missing" for key in expected if key not in found]
        lines += [f"{at}/{key} is new" for key in found if key not in expected]
        parts = [differences(expected[key], found[key], tolerance, f"{at}/{key}") for key in both]
        return lines + [line for part in parts for line in part]
    same = expected == found
    if not same and tolerance is not None and isinstance(expected, str) and isinstance(found, str):
        first, second = HASH.fullmatch(expected), HASH.fullmatch(found)
        if first and second and first[1] == second[1] != "list ":
            a, b = (np.array(match[2].split(), dtype=float) for match in (first, second))
            same = bool((np.abs(a - b) <= tolerance * max([1e-9, *a[:1]])).all())
    if not same and expected in LISTS and found in LISTS:
        before, after = set(LISTS[expected]), set(LISTS[found])
        lines = [f"{at}: {line!r} is missing" for line in sorted(before - after)]
        return lines + [f"{at}: {line!r} is new" for line in sorted(after - before)]
    return [] if same else [f"{at} was {expected}, is {found}"]


def read() -> dict[str, Any]:
    """Return the record."""
    record: dict[str, Any] = json.loads(RECORD.read_text())
    LISTS.update(record["lists"])
    return record


def write(found: dict[str, Any], of: dict[str, Any]) -> None:
    """Write the record of these cases, made by one machine."""
    text = json.dumps(found)
    lists = {name: lines for name, lines in LISTS.items() if name in text}
    record = {"machine": of, "cases": found, "lists": lists}
    RECORD.write_text(json.dumps(record, indent=0, sort_keys=True) + "\n")


def check(name: str, record: dict[str, Any]) -> list[str]:
    """Return in what a case differs from the record."""
    tolerance = None if record["machine"] == machine() else cases.TOLERANCES.get(name, 1e-4)
    return differences(record["cases"].get(name), run(name), tolerance, name)


def reason_to_skip(name: str, record: dict[str, Any]) -> str | None:
    """Return why a case cannot run here, or None."""
    if name in cases.NEED_ONNX and importlib.util.find_spec("onnx") is None:
        return "onnx is not installed"
    if name in ("help", "compare") and installed() != list(EXTENSIONS):
        return "an extension is deleted"
    is_alike = record["machine"]["libraries"] == machine()["libraries"]
    return None if is_alike or name not in cases.NEED_SAME_LIBRARIES else "other libraries"


def main() -> int:
    """Write or compare, and return the exit status."""
    parser = argparse.ArgumentParser(description="Write the record, or compare with it.")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", action="store_true")
    what.add_argument("--check", action="store_true")
    parser.add_argument("--only", metavar="NAME", action="append", choices=list(cases.CASES))
    asked = parser.parse_args()
    names = asked.only or list(cases.CASES)
    if asked.write:
        if asked.only and set(names) - {"help"} and read()["machine"] != machine():
            parser.error("the record is of another machine; write all of it, or help alone.")
        kept = read() if asked.only else {"machine": machine(), "cases": {}}
        write(kept["cases"] | {name: run(name) for name in names}, kept["machine"])
        return 0
    record = read()
    left_out = [name for name in names if reason_to_skip(name, record)]
    lines = [line for name in names if name not in left_out for line in check(name, record)]
    print(*lines, f"{len(names)} cases, {len(lines)} differences, left out: {left_out}", sep="\n")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
