"""Iterations of conjugate gradients against the condition: python jobs/iterations.py FOLDER...

Every set is a folder with `data.npz`: X and y.  All fits have one penalty and the same map; what
changes is the penalty, over six decades, and the size of the sketch that preconditions.  Prints a
table and draws it into iterations.svg.
"""

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from accuracies.sets import read
from matplotlib import pyplot as plt

import streamkern
from streamkern.report.pictures import STYLE, UNDATED
from streamkern.solve import preconditioner
from streamkern.solvers.gram_passes import GramPasses

_SKETCHES = {128: "#0072B2", 512: "#D55E00", 2048: "#009E73"}
_TICKS = 2, 5, 10, 20, 50
_PENALTIES = np.geomspace(1e-3, 1e3, 7)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+", type=Path, help="folders with data.npz")
    parser.add_argument("--components", type=int, default=4096)
    parser.add_argument("--rows", type=int, default=20_000, help="at most, of every set")
    parser.add_argument("--out", type=Path, default=Path("iterations.svg"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found = {folder.name: measured(folder, options) for folder in options.sets}
    draw(found, options.out)


def measured(folder: Path, options: Any) -> dict[int, list[tuple[float, int]]]:
    """Return the condition and the iterations at every penalty, by the size of the sketch."""
    rows, found = read(folder), {}
    X, y = rows.X[: options.rows], rows.y[: options.rows]
    GramPasses.far = 0.0  # a sketch as large as may be, whatever the penalty
    for size in _SKETCHES:
        preconditioner._MOST = size  # noqa: SLF001
        found[size] = []
        for alpha in _PENALTIES:
            model = streamkern.RandomFeatureRidge(
                n_components=options.components, alpha=float(alpha), solver="cg"
            ).fit(X, y)
            report = model.report_
            taken = report["iterations"]
            # The floor of single precision is 1e-7 of the largest eigenvalue.
            condition = 1.0 + report["precision_floor"] / (1e-7 * alpha)
            if not report["gradients"]["note"]:  # which says that it is not solved
                found[size].append((condition, taken))
            print(
                f"{rows.name:14} sketch {size:>5,} alpha {alpha:<6.3g} condition "
                f"{condition:>9.3g} iterations {taken:>4} {report['note'][:60]}",
                flush=True,
            )
    return found


def draw(found: dict[str, dict[int, list[tuple[float, int]]]], path: Path) -> None:
    with plt.style.context(["default", STYLE]):
        figure, axes = plt.subplots(
            1, len(found), figsize=(7.2, 2.8), sharey=True, squeeze=False, layout="constrained"
        )
        for axis, (name, lines) in zip(axes.flat, found.items(), strict=True):
            for size, points in lines.items():
                axis.loglog(*np.transpose(points), "o-", color=_SKETCHES[size], label=f"{size:,}")
            axis.minorticks_off()
            axis.set_title(name.removeprefix("uci_"))
            axis.set_xlabel("condition of G + alpha I")
        axes[0, 0].set_yticks(_TICKS, map(str, _TICKS))
        axes[0, 0].set_ylabel("iterations")
        axes[0, 0].legend(title="sketch")
        form = path.suffix[1:].lower()
        figure.savefig(path, dpi=200, format=form, metadata=UNDATED.get(form))
        plt.close(figure)


if __name__ == "__main__":
    main()
