"""Streamkern beside other ways to the same regression, and beside what the arithmetic alone takes.

One run gives one table, one picture and one JSON file.  Every measurement is a process of its own;
repeats go round all cases and contenders, so that what else the machine does meets them alike.
Seconds are those of reading, features, products and solve, without the start of Python or of a
cluster; memory is the peak of all processes together; ratios are of medians, to a roofline that is
measured in the same run on as many cores.

Without options: n = 400,000 rows of p = 90 inputs in HDF5, D = 2,048 features in single precision,
all contenders.  Several values of an option, with commas between them, are all measured:

    python jobs/benchmark.py --components 2048,4096 --contenders streamkern,dask,ridge --name others
    python jobs/benchmark.py --sweep components --precision single,double
    python jobs/benchmark.py --draw benchmark/components.json
"""

from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarking.cases import (
    CODECS,
    HEADLINE,
    PLACES,
    PRECISIONS,
    SWEEPS,
    Case,
    measured_by,
    together,
)
from benchmarking.contenders import CONTENDERS, run_one, with_rooflines
from benchmarking.table import table
from benchmarking.wording import Wording

if TYPE_CHECKING:
    from collections.abc import Callable


def several(
    kind: Callable[[str], Any], allowed: tuple[str, ...] = ()
) -> Callable[[str], list[Any]]:
    """Return what reads values with commas between them."""

    def read(text: str) -> list[Any]:
        values = [kind(part) for part in text.split(",")]
        wrong = [value for value in values if allowed and value not in allowed]
        if wrong:
            raise argparse.ArgumentTypeError(f"{wrong[0]} is none of {', '.join(allowed)}")
        return values

    return read


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    names = several(str, tuple(CONTENDERS))
    add("--sweep", type=several(str, (*SWEEPS, "all")), help=f"{', '.join(SWEEPS)}, or all")
    add("--contenders", type=names, help=f"of {', '.join(CONTENDERS)}")
    add("--rows", type=several(int), help="n, by default 400000")
    add("--inputs", type=several(int), help="p, by default 90")
    add("--components", type=several(int), help="D, by default 2048")
    add("--precision", type=several(str, PRECISIONS), help="single or double")
    add("--codec", type=several(str, CODECS), help=f"of the file: {', '.join(CODECS)}")
    add("--workers", type=several(int), help="cores for everyone, by default all")
    add("--latency", type=several(float), help="seconds added to every chunk streamkern reads")
    add("--place", choices=PLACES, default="processes", help="where streamkern's tasks run")
    add("--repeats", type=int, default=5)
    add("--out", type=Path, default=Path("benchmark"), help="folder of results")
    add("--cache", type=Path, help="folder of rows, by default in the one of results")
    add("--name", help="of the results' files, by default the sweep's")
    add("--draw", type=Path, nargs="+", metavar="JSON", help="table and picture of earlier runs")
    for hidden in ("--only", "--case", "--path"):
        add(hidden, help=argparse.SUPPRESS)
    return parser.parse_args()


def measure_all(given: argparse.Namespace) -> dict[str, Any]:
    """Go round all cases and contenders as often as asked, writing results after every round."""
    from benchmarking.machine import description
    from benchmarking.measuring import measure, summary
    from benchmarking.rows import path_of, write_rows

    axes = ("rows", "inputs", "components", "precision", "codec", "workers", "latency")
    values = {axis: getattr(given, axis) for axis in axes if getattr(given, axis)}
    names = given.sweep or [HEADLINE]
    names = list(SWEEPS) if "all" in names else names
    chosen = with_rooflines(given.contenders or ())
    sweeps = {name: measured_by(name, values, given.place, chosen) for name in names}
    measured = together(sweeps.values())
    cache = given.cache or given.out / "data"
    given.out.mkdir(parents=True, exist_ok=True)
    write_rows(cache, measured)
    runs: dict[Case, dict[str, list[Any]]] = {
        case: {name: [] for name in names} for case, names in measured.items()
    }
    order = list(measured)
    results: dict[str, Any] = {
        "command": " ".join(sys.argv),
        "begun": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": description(),
        "repeats": given.repeats,
        "sweeps": {
            name: {
                "cases": [order.index(case) for case in sweep.cases],
                "contenders": sweep.contenders,
            }
            for name, sweep in sweeps.items()
        },
    }
    wording = Wording(case.as_dict() for case in order)
    for repeat in range(given.repeats):
        for case, found in runs.items():
            for name, done in found.items():
                done.append(measure(name, case, path_of(cache, case)))
                said = done[-1].get("seconds")
                print(
                    f"{repeat + 1}/{given.repeats} {wording.apart(case.as_dict())} {name}: "
                    + (f"{said:.2f} s" if said else str(done[-1])),
                    file=sys.stderr,
                )
        results["cases"] = [
            {"case": case.described(), "contenders": summary(case, found)}
            for case, found in runs.items()
        ]
        results["rounds"] = repeat + 1
        results["ended"] = datetime.now(UTC).isoformat(timespec="seconds")
        file_of(given, ".json").write_text(json.dumps(results, indent=1))
    return results


def file_of(given: argparse.Namespace, ending: str) -> Path:
    """Return where a result goes."""
    name = given.name or "-".join(given.sweep or [HEADLINE])
    return Path(given.out) / f"{name}{ending}"


def joined(paths: list[Path]) -> dict[str, Any]:
    """Return the results of several runs as one, with the machine of the first."""
    first, *rest = [json.loads(path.read_text()) for path in paths]
    for other in rest:
        for name, sweep in other["sweeps"].items():
            sweep["cases"] = [index + len(first["cases"]) for index in sweep["cases"]]
            count = len(first["sweeps"])
            first["sweeps"][f"{name} ({count})" if name in first["sweeps"] else name] = sweep
        first["cases"] += other["cases"]
    return dict(first)


def main() -> None:
    given = options()
    if given.only:
        case = Case(**json.loads(given.case))
        print(json.dumps(run_one(given.only, case, Path(given.path))))
        return
    results = joined(given.draw) if given.draw else measure_all(given)
    if given.draw:
        given.name = given.name or given.draw[0].stem
        given.out.mkdir(parents=True, exist_ok=True)
    said = table(results)
    print(said)
    file_of(given, ".md").write_text(said + "\n")
    from benchmarking.picture import draw

    for ending in (".svg", ".png"):
        draw(results, file_of(given, ending))
    failed = [
        name
        for entry in results["cases"]
        for name, c in entry["contenders"].items()
        if "failed" in c
    ]
    if failed:
        raise SystemExit(f"{', '.join(sorted(set(failed)))} failed")


if __name__ == "__main__":
    main()
