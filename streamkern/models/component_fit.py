"""From moments to principal components, and these to files and to rows."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from streamkern.engine.scheduler import is_task, run, shared, task
from streamkern.errors import DataError, ModelFileError, ParameterError, StreamkernWarning
from streamkern.kernels import Kernel, as_kernel, kernel_from, length_scale_of
from streamkern.models.component_files import write_components
from streamkern.models.fitted_model import FittedModel, columns_of, versions
from streamkern.models.moments_fit import fit_moments
from streamkern.models.prediction import predict_to_hdf5, predicted_rows
from streamkern.parameters.fit_options import FitOptions
from streamkern.parameters.parameters import DEFAULT_KERNEL
from streamkern.predict.principal_components import PrincipalComponents, checked_number
from streamkern.solve import Eigenbasis
from streamkern.storage.untrusted import WRONG_VALUES
from streamkern.tune.fold_solution import total_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from streamkern._typing import Floats
    from streamkern.models.data_moments import DataMoments
    from streamkern.predict.predictor import Predictor
    from streamkern.sources import Source
    from streamkern.statistics import ByFold

# Of a fit, what those of principal components take too, by the same names.
_OPTIONS = ("feature_map", "paired", "standardize", "precision", "on_bad_rows", "random_state")
# What rows become is itself the X of a data set.
DATASET = "X"


@dataclass(frozen=True)
class ComponentOptions:
    """What components are of; the fields are documented in `RandomFeaturePCA`."""

    kernel: Kernel | str = DEFAULT_KERNEL
    n_components: int | float | None = None
    n_random_features: int = 2048
    feature_map: str = "orthogonal"
    paired: bool = True
    standardize: bool = True
    precision: str = "single"
    on_bad_rows: str = "error"
    random_state: int = 0

    @classmethod
    def of(cls, options: FitOptions, n_components: int | float | None) -> Self:
        """Return what makes components of moments that were made by some options."""
        alike = {name: getattr(options, name) for name in _OPTIONS}
        D = options.n_components
        return cls(options.kernel, n_components, n_random_features=D, **alike)

    def passes(self) -> FitOptions:
        """Return the checked options of the passes over the rows."""
        checked_number(self.n_components)
        alike = {name: getattr(self, name) for name in _OPTIONS}
        D, kernel = self.n_random_features, as_kernel(self.kernel)
        return FitOptions(kernel, n_components=D, fit_intercept=True, **alike)

    def fit(self, source: Source, *, checkpoint: str | Path | None = None) -> FittedComponents:
        """Find the components of the features of the rows of a source, in two passes."""
        options = self.passes()
        moments = fit_moments(source, options, needs_targets=False, checkpoint=checkpoint)
        return principal_components(moments, self)


@dataclass(frozen=True)
class FittedComponents(FittedModel):
    """Principal components of features, with the report of their fit.

    Parameters
    ----------
    options : ComponentOptions
    components : PrincipalComponents
    report : dict
    names : sequence of str, optional
        Of the inputs, where the report has none.
    """

    options: ComponentOptions
    components: PrincipalComponents
    report: dict[str, Any]
    names: Sequence[str] | None = None

    @property
    def predictor(self) -> Predictor:  # type: ignore[override]
        """What takes rows to their scores."""
        return self.components.projection

    @property
    def n_features(self) -> int:
        """The number of inputs, p."""
        return self.components.feature_map.n_features

    def transform(self, X: Any) -> Any:
        """Return the scores of rows along the components, (n, K)."""
        self.check_inputs(X)
        return predicted_rows(self.predictor, X)

    def transform_to_hdf5(
        self, source: Source, path: str | Path, *, skip_bad_rows: bool, force: bool = False
    ) -> int:
        """Write the scores of rows as `X` of a new HDF5 file, and return how many are NaN."""
        self.check_inputs(source)
        options: Any = {"skip_bad_rows": skip_bad_rows, "force": force, "dataset": DATASET}
        return predict_to_hdf5(self.predictor, source, path, **options)

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the components to a file, with the options that they were made by."""
        options, kernel = self.options, as_kernel(self.options.kernel)
        names = (*_OPTIONS, "n_components", "n_random_features")
        card = {
            "kind": "RandomFeaturePCA",
            "options": {name: getattr(options, name) for name in names},
            "option_kernel": {"name": kernel.name, "parameters": kernel.parameters()},
            "report": self.report,
            "versions": versions(),
            "feature_names": self.feature_names,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        write_components(path, self.components, card, force=force)

    @classmethod
    def of_file(cls, found: PrincipalComponents, card: dict[str, Any], path: str | Path) -> Self:
        """Return the components of a file, or raise ModelFileError if that is damaged."""
        try:
            kernel, names = card["option_kernel"], card.get("feature_names")
            resolved = kernel_from(kernel["name"], kernel["parameters"])
            model = cls(ComponentOptions(resolved, **card["options"]), found, card["report"], names)
            columns_of(model.report, model.n_features, names)
            kernel_from(model.report["kernel"], model.report["kernel_parameters"])
        except WRONG_VALUES as error:
            raise ModelFileError(f"{path} is a damaged PCA ({error}); copy it again.") from error
        return model


class _Leading(NamedTuple):
    """Leading eigenvectors of G in rows, with what else is said of it."""

    components: Floats
    variances: Floats
    mean: Floats
    total: float
    weight: float
    rank: int


def principal_components(moments: DataMoments, options: ComponentOptions) -> FittedComponents:
    """Decompose the centred moments of features, where the moments are."""
    begun, wanted = time.perf_counter(), checked_number(options.n_components)
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
    report = moments.report | {
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
    return FittedComponents(options, found, report)


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
