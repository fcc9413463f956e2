"""Compare exact kernel ridge with random features: python jobs/compare_exact.py train.h5."""

import argparse

import streamkern


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="+", help="HDF5 files with datasets X and y")
    parser.add_argument("--cluster", help="cluster.yaml; by default a local cluster")
    parser.add_argument("--scheduler", help="address of a running scheduler")
    parser.add_argument("--rows", type=int, default=4000, help="rows that exact kernel ridge takes")
    parser.add_argument("--seeds", type=int, default=5, help="draws of every map")
    parser.add_argument("--alpha", type=float, help="the penalty; by default every model chooses")
    options = parser.parse_args()

    source = streamkern.open_hdf5(options.data)
    alpha = "cv" if options.alpha is None else options.alpha
    model = streamkern.RandomFeatureRidge(streamkern.Gaussian("median"), alpha=alpha)
    with streamkern.connect(cluster=options.cluster, scheduler=options.scheduler):
        comparison = streamkern.compare(source, model, n_train=options.rows, n_seeds=options.seeds)
    print(f"{'model':10} {'D':>6} {'test rmse':>10} {'/ exact':>8}  95% interval over the seeds")
    for trial in comparison.trials:
        name, D = trial.map or trial.method, trial.n_components or ""
        low_high = trial.interval["test_rmse"]
        interval = f"{low_high[0]:.4g} to {low_high[1]:.4g}" if low_high else ""
        print(f"{name:10} {D:>6} {trial.test_rmse:10.4g} {trial.relative_rmse:8.3f}  {interval}")
    exact = comparison.trials[0]
    print(f"exact: alpha {exact.alpha:.3g}, leave-one-out rmse {exact.loo_rmse:.4g}")


if __name__ == "__main__":
    main()
