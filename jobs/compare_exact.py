"""Compare exact kernel ridge with random features: python jobs/compare_exact.py train.h5."""

from __future__ import annotations

import argparse

import streamkern


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="+", help="HDF5 files with datasets X and y")
    parser.add_argument("--cluster", help="cluster.yaml; by default a local cluster")
    parser.add_argument("--scheduler", help="address of a running scheduler")
    parser.add_argument("--rows", type=int, default=4000, help="rows that exact kernel ridge takes")
    parser.add_argument("--alpha", type=float, default=0.1)
    options = parser.parse_args()

    source = streamkern.open_hdf5(options.data)
    model = streamkern.RandomFeatureRidge(streamkern.Gaussian("median"), alpha=options.alpha)
    with streamkern.connect(cluster=options.cluster, scheduler=options.scheduler):
        comparison = streamkern.compare(source, model, n_train=options.rows)
    print(f"{'model':16} {'D':>6} {'test rmse':>10} {'/ exact':>8}")
    for trial in comparison.trials:
        D = trial.n_components or ""
        print(f"{trial.method:16} {D:>6} {trial.test_rmse:10.4g} {trial.relative_rmse:8.3f}")


if __name__ == "__main__":
    main()
