"""Single against double precision on real sets: python jobs/precisions.py ../shared/data/*.

Every set is a folder with `data.npz`: X and y; rows with NaN are left out.  A model in single
precision chooses its penalty; one in double takes the same penalty and the same map.  Differences
of their predictions on a tenth of the rows, which is held out, are over the standard deviation of
the target.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import streamkern


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+", type=Path, help="folders with data.npz")
    parser.add_argument("--components", type=int, default=2048)
    options = parser.parse_args()
    print(
        f"{'set':18}{'rows':>9}{'alpha':>11}{'error':>8}"
        f"{'root mean square difference':>29}{'largest':>10}"
    )
    for folder in options.sets:
        path = folder / "data.npz"
        if not path.exists():
            continue
        data = np.load(path, allow_pickle=False)
        X, y = data["X"].astype(float), data["y"].astype(float)
        whole = np.isfinite(X).all(axis=1) & np.isfinite(y)
        X, y = X[whole], y[whole]
        held_out = np.random.default_rng(0).random(len(X)) < 0.1
        sd = y[~held_out].std()
        single = streamkern.RandomFeatureRidge(n_components=options.components, alpha="cv")
        predictions = [single.fit(X[~held_out], y[~held_out]).predict(X[held_out])]
        double = streamkern.RandomFeatureRidge(
            streamkern.Gaussian(single.report_["length_scale"]),
            n_components=options.components,
            alpha=single.alpha_,
            precision="double",
        )
        predictions.append(double.fit(X[~held_out], y[~held_out]).predict(X[held_out]))
        difference = np.abs(predictions[0] - predictions[1]) / sd
        error = np.sqrt(np.mean((predictions[0] - y[held_out]) ** 2)) / sd
        print(
            f"{folder.name:18}{np.sum(~held_out):>9,}{single.alpha_:>11.3g}{error:>8.3f}"
            f"{np.sqrt(np.mean(difference**2)):>29.1e}{difference.max():>10.1e}",
            flush=True,
        )


if __name__ == "__main__":
    main()
