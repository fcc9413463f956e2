"""The record of what commands and Python calls give: write it, or compare with it.

    python tests/golden/record.py --check [--only NAME]
    python tests/golden/record.py --write [--only NAME]
    python tests/golden/record.py --files

The bits of an array depend on the processor and the libraries, so hashes are compared where both
are those of the record, and elsewhere norms and projections, as far as a case says.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib.metadata
import importlib.util
import json
import platform
import re
import shlex
import shutil
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import scipy.linalg  # noqa: F401  loads the BLAS library that the machine is named by
import threadpoolctl
from click.testing import CliRunner

# The tree that this file is in, not one that is installed.
sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]

from golden.cases import CASES, FILES, STORED, Case, write_data  # noqa: E402

from streamkern.cli import main as streamkern  # noqa: E402

RECORD = Path(__file__).parent / "record.json"
LIBRARIES = ("numpy", "scipy", "scikit-learn", "dask", "h5py", "pandas")
# What differs between two runs, or between machines with the same processor.
PASSING = re.compile(
    r"second|bytes|modified|threads|workers"
    r"|frontier"  # its order is that of measured times
)


def machine() -> dict[str, Any]:
    """Return what bits depend on: the processor, and the libraries that compute."""
    facts: dict[str, str] = {}
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            name, _, value = line.partition(":")
            facts.setdefault(name.strip(), value.strip())
    named = [facts.get(key, "") for key in ("model name", "cpu family", "model")]
    blas = {
        " ".join(str(pool.get(key)) for key in ("internal_api", "version", "architecture"))
        for pool in threadpoolctl.threadpool_info()
        if pool["user_api"] == "blas"
    }
    return {
        "processor": " ".join([platform.machine(), *named]),
        "blas": sorted(blas),
        "libraries": {name: importlib.metadata.version(name) for name in LIBRARIES},
    }


def summary(values: Any) -> str:
    """Return type, shape, hash, norm and a projection of an array; of text no more than a hash."""
    array = np.asarray(values)
    if array.dtype.kind in "OSU":
        text = [each.decode() if isinstance(each, bytes) else str(each) for each in array.ravel()]
        return f"text {array.shape} {_hash(json.dumps(text).encode())}"
    finite = np.nan_to_num(array.astype(float).ravel(), posinf=0, neginf=0)
    direction = np.random.default_rng(0).standard_normal(finite.size)
    numbers = f"{np.linalg.norm(finite):.6g} {finite @ direction:.6g}"
    bits = _hash(np.ascontiguousarray(array).tobytes())
    return f"{array.dtype} {array.shape} {bits} {numbers}"


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def masked(text: str) -> str:
    """Return a sentence without what differs between folders and machines."""
    text = text.replace(str(Path.cwd()), ".")
    text = re.sub(r"(?<![\w.])/[\w./-]+", "PATH", text)
    return re.sub(r"\d+([.,]\d+)*(e[+-]?\d+)?( [kMGT]B)?", "#", text)


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
    result = CliRunner().invoke(streamkern, [*shlex.split(line), *asked])
    kept: dict[str, Any] = {"status": result.exit_code}
    if result.exit_code:
        reason = getattr(result.exception, "__context__", None)
        kept["error"] = "usage" if reason is None else type(reason).__name__
    told = [each for each in result.stderr.splitlines() if re.match(r"(note|Error): ", each)]
    if told:
        kept["told"] = [masked(each) for each in told]
    if "--help" in line:
        kept["keys"] = sorted(set(re.findall(r"(?<!\S)--?[a-z][a-z-]*", result.stdout)))
    elif not result.exit_code:
        found = leaves(json.loads(result.stdout.splitlines()[-1]))
        keys: dict[str, set[str]] = {}
        for path, _ in found:
            parent, _, key = path.rpartition(".")
            keys.setdefault(parent, set()).add(key)
        kept["keys"] = [f"{parent}: {' '.join(sorted(keys[parent]))}" for parent in sorted(keys)]
        numbers = [
            float(value)
            for path, value in found
            if isinstance(value, (int, float)) and not PASSING.search(path)
        ]
        kept["numbers"] = summary(numbers)
    return kept


def contents(path: Path) -> tuple[list[str], dict[str, str]]:
    """Return what an HDF5 file is made of, and its arrays; those of all folds are as one."""
    layout: set[str] = set()
    arrays: dict[str, list[Any]] = {}

    def visit(name: str, node: Any) -> None:
        alike = re.sub(r"/\d+(?=/)", "/*", name)
        layout.update(f"{alike}@{key} {_kind(node.attrs[key])}" for key in node.attrs)
        if isinstance(node, h5py.Dataset):
            values = node[()]
            layout.add(f"{alike} {_kind(values)}")
            if not isinstance(values, (bytes, str)) and not PASSING.search(name):
                arrays.setdefault(alike, []).append(np.ravel(values))

    with h5py.File(path) as file:
        visit("", file)
        file.visititems(visit)
    # Types and shapes are told by the layout.
    summaries = {name: summary(np.concatenate(parts)) for name, parts in arrays.items()}
    return sorted(layout), {name: each.rpartition(") ")[2] for name, each in summaries.items()}


def _kind(value: Any) -> str:
    array = np.asarray(value)
    return "text" if array.dtype.kind in "OSU" else f"{array.dtype} {array.shape}"


def run(name: str) -> dict[str, Any]:
    """Return what a case gives, run in a folder that is removed again."""
    case: Case = CASES[name]
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        warnings.catch_warnings(record=True) as noted,
    ):
        warnings.simplefilter("always")
        write_data()
        before = set(Path().rglob("*"))
        kept: dict[str, Any] = {}
        if callable(case.steps):
            for key, value in case.steps().items():
                is_array = isinstance(value, (np.ndarray, float))
                group = kept.setdefault("arrays" if is_array else "facts", {})
                group[key] = summary(value) if is_array else _plain(value)
        else:
            kept["commands"] = [command(line) for line in case.steps]
        notes = [f"{each.category.__name__}: {masked(str(each.message))}" for each in noted]
        kept |= {"notes": notes} if notes else {}
        for path in sorted(set(Path().rglob("*")) - before):
            _keep_file(kept, path)
    return json.loads(json.dumps(kept))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return masked(value) if isinstance(value, str) else value


def _keep_file(kept: dict[str, Any], path: Path) -> None:
    """Add what is in a file that a case wrote."""
    # Names of kept moments hold a hash of their folder.
    name = re.sub(r"-[0-9a-f]{8,12}(?=[.-])", "", str(path))
    if path.suffix == ".h5":
        layout, arrays = contents(path)
        kept.setdefault("files", {})[name] = layout
        kept.setdefault("arrays", {})[name] = arrays
    elif path.suffix == ".csv":
        header = path.read_text().partition("\n")[0].split(",")
        kept.setdefault("files", {})[name] = header
        values = np.genfromtxt(path, delimiter=",", skip_header=1)
        kept.setdefault("arrays", {})[name] = summary(values)
    elif path.suffix == ".html":
        headings = re.findall(r"<h\d[^>]*>(.*?)</h\d>", path.read_text(), flags=re.DOTALL)
        kept.setdefault("files", {})[name] = [masked(each) for each in headings]
    elif path.is_file():
        kept.setdefault("files", {})[name] = []


def differences(
    expected: Any, found: Any, *, exact: bool, tolerance: float, at: str = ""
) -> list[str]:
    """Return in what two records differ, a line each."""
    options: dict[str, Any] = {"exact": exact, "tolerance": tolerance}
    if isinstance(expected, dict) and isinstance(found, dict):
        lines = []
        for key in sorted(expected.keys() | found.keys()):
            if key not in expected or key not in found:
                lines.append(f"{at}/{key} is {'missing' if key in expected else 'new'}")
            else:
                lines += differences(expected[key], found[key], at=f"{at}/{key}", **options)
        return lines
    if isinstance(expected, list) and isinstance(found, list):
        if all(isinstance(each, str) for each in expected + found):
            gone = [f"{at}: {each!r} is missing" for each in expected if each not in found]
            return gone + [f"{at}: {each!r} is new" for each in found if each not in expected]
        if len(expected) == len(found):
            pairs = enumerate(zip(expected, found, strict=True))
            return [d for i, two in pairs for d in differences(*two, at=f"{at}[{i}]", **options)]
    if expected == found:
        return []
    if not exact and isinstance(expected, str) and isinstance(found, str):
        pattern = r"(\w+ \(.*?\) )?[0-9a-f]{16} ?(.*)"
        first, second = (re.fullmatch(pattern, each) for each in (expected, found))
        if first and second and first[1] == second[1] and _is_near(first[2], second[2], tolerance):
            return []
    return [f"{at} was {expected}, is {found}"]


def _is_near(expected: str, found: str, tolerance: float) -> bool:
    first, second = (np.array(each.split(), dtype=float) for each in (expected, found))
    return bool((np.abs(first - second) <= tolerance * max([1e-12, *first[:1]])).all())


def read() -> dict[str, Any]:
    """Return the record, with the lists that its cases share in their places."""
    stored = json.loads(RECORD.read_text())

    def whole(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: whole(each) for key, each in value.items()}
        if isinstance(value, list):
            return [whole(each) for each in value]
        return stored["lists"].get(value, value) if isinstance(value, str) else value

    return {"machine": stored["machine"], "cases": whole(stored["cases"])}


def write(record: dict[str, Any]) -> None:
    """Write the record, every long list once."""
    lists: dict[str, list[str]] = {}

    def short(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: short(each) for key, each in value.items()}
        if isinstance(value, list):
            if len(value) > 3 and all(isinstance(each, str) for each in value):
                name = f"list {_hash(json.dumps(value).encode())[:10]}"
                lists[name] = value
                return name
            return [short(each) for each in value]
        return value

    cases = short(record["cases"])
    whole = {"machine": record["machine"], "cases": cases, "lists": lists}
    RECORD.write_text(json.dumps(whole, indent=0, sort_keys=True) + "\n")


def check(name: str, record: dict[str, Any]) -> list[str]:
    """Return in what a case differs from the record."""
    case, exact = CASES[name], record["machine"] == machine()
    if name not in record["cases"]:
        return [f"{name} is not in the record"]
    expected, found = record["cases"][name], run(name)
    return differences(expected, found, exact=exact, tolerance=case.tolerance, at=name)


def reason_to_skip(name: str, record: dict[str, Any]) -> str | None:
    """Return why a case cannot run here, or None."""
    case = CASES[name]
    if case.needs and importlib.util.find_spec(case.needs) is None:
        return f"{case.needs} is not installed"
    if case.same_libraries and record["machine"]["libraries"] != machine()["libraries"]:
        return "the record is of other libraries"
    return None


def write_files() -> None:
    """Write the files that later versions must be able to read."""
    FILES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        write_data()
        command("convert people.csv people.h5 --target price --drop income")
        for name, how in STORED.items():
            if callable(how):
                how(name)
            else:
                command(f"{how} --out {name}")
            shutil.move(name, FILES / name)


def main() -> int:
    """Write or compare, and return the exit status."""
    parser = argparse.ArgumentParser(description="Write the record, or compare with it.")
    what = parser.add_mutually_exclusive_group(required=True)
    for option in ("--write", "--check", "--files"):
        what.add_argument(option, action="store_true")
    parser.add_argument("--only", metavar="NAME", action="append", choices=list(CASES))
    asked = parser.parse_args()
    if asked.files:
        write_files()
        return 0
    names = asked.only or list(CASES)
    record = read() if RECORD.exists() else {"cases": {}}
    if asked.write:
        kept = {name: case for name, case in record["cases"].items() if name in CASES}
        made = {name: run(name) for name in names}
        write({"machine": machine(), "cases": kept | made})
        return 0
    n_different = 0
    for name in names:
        skipped = reason_to_skip(name, record)
        lines = [] if skipped else check(name, record)
        n_different += bool(lines)
        for line in [f"{name} is left out: {skipped}"] if skipped else lines:
            print(line)
    print(f"{len(names)} cases, {n_different} of them different")
    return 1 if n_different else 0


if __name__ == "__main__":
    sys.exit(main())
