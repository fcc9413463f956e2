"""Every precision on real sets: python benchmarks/precisions.py ../shared/data/*.

Every set is a folder with `data.npz`: X and y; rows with NaN are left out.  All models have the
same map and choose their penalty by cross-validation.  Errors are on the rows that are held out,
over the standard deviation of the target; beside them is how much more that is than in double, and
the time of the pass over that in single precision.
"""

import argparse
import warnings
from pathlib import Path

from real_sets import read

import streamkern

_PRECISIONS = ("double", "single", "int8", "int16", "auto")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+", type=Path, help="folders with data.npz")
    parser.add_argument("--components", default="2048,4096", help="numbers of features")
    parser.add_argument("--kernel", default="gaussian")
    parser.add_argument("--map", default="orthogonal")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{'set':18}{'rows':>9}{'D':>7}" + "".join(f"{name:>29}" for name in _PRECISIONS))
    for folder in options.sets:
        if not (folder / "data.npz").exists():
            continue
        rows = read(folder)
        for D in map(int, options.components.split(",")):
            print(f"{rows.name:18}{len(rows.X):>9,}{D:>7,}", end="", flush=True)
            models = {
                name: streamkern.RandomFeatureRidge(
                    options.kernel, n_components=D, feature_map=options.map, precision=name
                ).fit(rows.X, rows.y)
                for name in _PRECISIONS
            }
            errors = {
                name: rows.error(model.predict(rows.X_test)) for name, model in models.items()
            }
            for name, model in models.items():
                worse = 100 * (errors[name] / errors["double"] - 1)
                seconds = [models[n].report_["seconds"]["pass"] for n in (name, "single")]
                chosen = model.report_["precision"] if name == "auto" else ""
                figures = f"{errors[name]:.4f}{worse:>+8.2f}%{seconds[0] / seconds[1]:>6.2f}"
                print(f"{chosen:>7} {figures}".rjust(29), end="", flush=True)
            print()


if __name__ == "__main__":
    main()
