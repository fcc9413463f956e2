"""From moments to principal components, and these to files and to rows."""

from __future__ import annotations

import time
import warnings
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streamkern.engine.scheduler import is_task, run, shared, task
from streamkern.errors import DataError, ParameterError, StreamkernWarning
from streamkern.kernels import length_scale_of
from streamkern.models.component_files import write_components
from streamkern.models.fitted_ridge import versions
from streamkern.models.prediction import predict_to_hdf5
from streamkern.predict.principal_components import PrincipalComponents, checked_number
from streamkern.solve import Eigenbasis
from streamkern.tune.fold_solution import total_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from streamkern._typing import Floats
    from streamkern.models.data_moments import DataMoments
    from streamkern.parameters.fit_options import FitOptions
    from streamkern.sources import Source
    from streamkern.statistics import ByFold

# Of a fit, what those of principal components take too, by the same names.
OPTIONS = ("feature_map", "paired", "standardize", "precision", "on_bad_rows", "random_state")
# What rows become is itself the X of a data set.
DATASET = "X"


class _Leading(NamedTuple):
    """Leading eigenvectors of G in rows, with what else is said of it."""

    components: Floats
    variances: Floats
    mean: Floats
    total: float
    weight: float
    rank: int


def principal_components(
    moments: DataMoments, n_components: int | float | None = None
) -> tuple[PrincipalComponents, dict[str, Any]]:
    """Decompose the centred moments of features, where the moments are.

    Parameters
    ----------
    moments : DataMoments
        With targets or without.
    n_components : int or float, optional
        How many components to keep, or the share of the variance that they are to explain at
        least; by default all whose variance is more than rounding of the products.

    Returns
    -------
    found : PrincipalComponents
    report : dict
        That of the moments, with what was found, as plain JSON values.

    Raises
    ------
    ParameterError
        If there are fewer rows or features than components asked for.
    DataError
        If there are fewer than two rows, or they do not differ.
    """
    begun, wanted = time.perf_counter(), checked_number(n_components)
    moments = moments.solvable()
    D, n_rows = moments.feature_map.n_components, int(moments.report["rows"])
    if isinstance(wanted, int) and wanted > min(D, n_rows):
        raise ParameterError(
            f"there are {min(D, n_rows):,} components at most, of {n_rows:,} rows and {D:,} "
            f"features, but n_components is {wanted:,}; ask for no more."
        )
    folds = moments.folds if is_task(moments.folds) else shared(moments.folds)
    leading: _Leading = run(task(_leading, folds, wanted, name="principal-components"))
    K = len(leading.components)
    if isinstance(wanted, int) and wanted > K:
        warnings.warn(
            f"only {K:,} of the {wanted:,} components asked for have a variance above rounding; "
            f"these are kept.",
            StreamkernWarning,
            stacklevel=3,
        )
    found = PrincipalComponents(
        moments.feature_map,
        leading.mean,
        leading.components,
        leading.variances,
        leading.total,
        leading.weight,
        moments.options.precision,
    )
    seconds = dict(moments.report["seconds"])
    seconds["solve"] = time.perf_counter() - begun
    seconds["total"] += seconds["solve"]
    return found, moments.report | {
        "seconds": seconds,
        "kernel": moments.kernel.name,
        "kernel_parameters": moments.kernel.parameters(),
        "length_scale": length_scale_of(moments.kernel),
        "n_random_features": D,
        "n_components": K,
        "rank": leading.rank,
        "explained_variance": leading.variances.tolist(),
        "explained_variance_ratio": found.explained_variance_ratio.tolist(),
    }


def _leading(folds: ByFold, wanted: int | float | None) -> _Leading:
    total = total_of(folds, None)
    if total.n_rows < 2 or not total.weight > 1.0:
        raise DataError(
            f"principal components need 2 rows at least, but there are {total.n_rows} that weigh "
            f"{total.weight:g}; add rows, or give weights that count rows."
        )
    centred = total.centred()
    variance = float(centred.gram.diagonal().sum()) / (total.weight - 1.0)
    basis = Eigenbasis.of(centred, total.n_rows - 1)
    values = basis.spectrum.values[::-1] / (total.weight - 1.0)
    # Eigenvalues below the floor are rounding, and their vectors are any.
    rank = int((basis.spectrum.values > basis.spectrum.floor).sum())
    if not rank:
        raise DataError(
            "the features of all rows are equal, so they have no principal components; take a "
            "shorter length scale."
        )
    kept = rank
    if isinstance(wanted, float):
        shares = np.cumsum(values) / variance
        kept = min(int(np.searchsorted(shares, wanted, side="right")) + 1, rank)
    elif wanted is not None:
        kept = min(wanted, rank)
    components = np.ascontiguousarray(basis.vectors[:, : -kept - 1 : -1].T)
    largest = np.abs(components).argmax(axis=1)
    components *= np.sign(components[np.arange(kept), largest])[:, None]
    return _Leading(
        components, values[:kept].copy(), basis.feature_mean, variance, total.weight, rank
    )


def save_components(
    path: str | Path,
    found: PrincipalComponents,
    report: dict[str, Any],
    options: FitOptions,
    n_components: int | float | None,
    *,
    feature_names: Sequence[str] | None = None,
    force: bool = False,
) -> None:
    """Write principal components to an HDF5 file, with the options that they were made by.

    Parameters
    ----------
    path : path
    found : PrincipalComponents
    report : dict
    options : FitOptions
        Of the passes over the rows.
    n_components : int or float, optional
        What was asked for.
    feature_names : sequence of str, optional
        Of the columns, where they have some.
    force : bool
        Replace an existing file.

    Raises
    ------
    OutputError
        If the file exists and `force` is not given, or cannot be written.
    """
    kernel = options.kernel
    card = {
        "kind": "RandomFeaturePCA",
        "options": {name: getattr(options, name) for name in OPTIONS}
        | {"n_components": n_components, "n_random_features": options.n_components},
        "option_kernel": {"name": kernel.name, "parameters": kernel.parameters()},
        "report": report,
        "versions": versions(),
        "feature_names": feature_names,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    write_components(path, found, card, force=force)


def transform_to_hdf5(
    found: PrincipalComponents,
    source: Source,
    path: str | Path,
    *,
    skip_bad_rows: bool = False,
    force: bool = False,
) -> int:
    """Write the scores (n, K) of the rows of a source as the dataset `X` of a new HDF5 file.

    Returns
    -------
    int
        How many rows are NaN, because they hold values that are not finite.

    Raises
    ------
    OutputError
        If the file exists and `force` is not given, or cannot be written.
    DataError
        If the rows cannot be used.
    """
    return predict_to_hdf5(
        found.projection,
        source,
        path,
        skip_bad_rows=skip_bad_rows,
        force=force,
        dataset=DATASET,
    )
