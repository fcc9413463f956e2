"""Lazy rows through Dask-ML: python jobs/dask_ml_rows.py train.h5.

Dask-ML scales the rows, keeps some for a test, searches the penalty on a part of the others, adds
all of them block after block to one model, and predicts the test rows block by block.  No more than
a block for every thread is in memory.
"""

import argparse
import warnings

import dask.array as da
import h5py

import streamkern

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what Dask-ML imports
    from dask_ml.metrics import mean_squared_error
    from dask_ml.model_selection import GridSearchCV, train_test_split
    from dask_ml.preprocessing import StandardScaler
    from dask_ml.wrappers import Incremental


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", help="an HDF5 file with datasets X and y")
    parser.add_argument("--components", type=int, default=512)
    parser.add_argument("--block-rows", type=int, default=100_000)
    parser.add_argument("--search-rows", type=int, default=2000)
    options = parser.parse_args()

    with h5py.File(options.data) as file:
        X, y = (da.from_array(file[name], chunks=options.block_rows) for name in ("X", "y"))
        X = StandardScaler().fit_transform(X.rechunk({1: -1}))
        X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, random_state=0, shuffle=True)
        model = streamkern.RandomFeatureRidge(
            streamkern.Gaussian(X.shape[1] ** 0.5),
            n_components=options.components,
            standardize=False,
        )
        part = X[: options.search_rows].compute(), y[: options.search_rows].compute()
        search = GridSearchCV(model, {"alpha": [0.01, 0.1, 1.0, 10.0]}, cv=3).fit(*part)
        added = Incremental(search.best_estimator_, shuffle_blocks=False).fit(X, y)
        test_rmse = mean_squared_error(y_test, added.predict(X_test)) ** 0.5
    n_rows = added.estimator_.report_["rows"]
    print(f"alpha {search.best_params_['alpha']}, {n_rows:,} rows, test RMSE {test_rmse:.4g}")


if __name__ == "__main__":
    main()
