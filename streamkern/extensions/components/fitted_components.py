"""From moments to principal components, and these to files and to rows."""

import time
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from streamkern._typing import Floats, Group
from streamkern.engine.scheduler import compute, delayed, scatter
from streamkern.errors import DataError, ParameterError, warn
from streamkern.errors.checks import checked_integer
from streamkern.errors.formatting import listed
from streamkern.features import FeatureMap, trended
from streamkern.fit import sums_of
from streamkern.fitting.planned_fit import planned_fit
from streamkern.kernels import Kernel, as_kernel
from streamkern.models.data_moments import DataMoments
from streamkern.models.fitted_model import FittedModel, described_kernel, restored_kernel, through
from streamkern.models.prediction import predicted_rows
from streamkern.models.prediction_files import predict_to_hdf5
from streamkern.models.report_facts import kernel_facts
from streamkern.models.report_rows import Row, input_rows, pass_rows
from streamkern.parameters.fit_options import FitOptions
from streamkern.parameters.fit_report import FitReport, with_seconds
from streamkern.parameters.parameters import DEFAULT_KERNEL, Parameters
from streamkern.predict.predictor import Predictor, Uncached
from streamkern.solve import Eigenbasis
from streamkern.sources import Source
from streamkern.sources.columns import Columns
from streamkern.statistics import FoldStatistics, precision_of_features
from streamkern.storage.codec import Kind, map_card, restored_map
from streamkern.storage.untrusted import finite_array, finite_arrays


@dataclass(frozen=True)
class PrincipalComponents(Uncached):
    """The directions of features in which rows vary most: kernel principal components.

    With G = V diag(d) V^T of the centred features, the components are the leading columns of V,
    their variances d / (N - 1), and a row becomes (phi(x) - phibar)^T V.
    """

    feature_map: FeatureMap
    mean: Floats
    components: Floats  # (K, D), orthonormal; in each the number of largest size is positive
    explained_variance: Floats  # (K,), descending
    total_variance: float  # of all D features
    weight: float  # N, of weights that are 1 in the mean where they are less
    precision: str = "single"

    @cached_property
    def projection(self) -> Predictor:
        """The function that takes rows (n, p) to their scores (n, K), as a predictor."""
        coef = np.ascontiguousarray(self.components.T)
        return Predictor(self.feature_map, coef, -self.mean @ coef, precision=self.precision)

    @property
    def explained_variance_ratio(self) -> Floats:
        return self.explained_variance / self.total_variance

    @property
    def singular_values(self) -> Floats:
        """The lengths (K,) of the columns of scores of all rows: sqrt((N - 1) variance)."""
        return np.sqrt(self.explained_variance * (self.weight - 1.0))


def checked_number(n_components: Any) -> int | float | None:
    """Return how many components to keep: a number, a share of the variance, or None for all."""
    if n_components is None:
        return None
    if isinstance(n_components, (float, np.floating)) and 0.0 < n_components < 1.0:
        return float(n_components)
    sentence = (
        "n_components must be a whole number of at least 1, a share of the variance between 0 and "
        "1, or None for all, not {!r}; give one of these."
    )
    return checked_integer(n_components, sentence, 1)


# Of a fit, what those of principal components take too, by the same names.
_OPTIONS = ("feature_map", "paired", "standardize", "precision", "on_bad_rows", "random_state")
_ARRAYS = ("components", "mean", "explained_variance", "total_variance", "weight")
# What rows become is itself the X of a data set.
DATASET = "X"


@dataclass(frozen=True)
class ComponentOptions:
    """What components are of; the fields are documented in `RandomFeaturePCA`."""

    kernel: Kernel | str = DEFAULT_KERNEL
    n_components: int | float | None = None
    n_random_features: int = 2048
    feature_map: str = Parameters.feature_map
    paired: bool = Parameters.paired
    standardize: bool = Parameters.standardize
    precision: str = Parameters.precision
    on_bad_rows: str = Parameters.on_bad_rows
    random_state: int = Parameters.random_state

    @classmethod
    def of(cls, options: FitOptions, n_components: int | float | None) -> Self:
        alike = {name: getattr(options, name) for name in _OPTIONS}
        return cls(options.kernel, n_components, n_random_features=options.n_components, **alike)

    def pass_options(self) -> FitOptions:
        checked_number(self.n_components)
        alike = {name: getattr(self, name) for name in _OPTIONS}
        D, kernel = self.n_random_features, as_kernel(self.kernel)
        return FitOptions(kernel, n_components=D, fit_intercept=True, **alike)

    def fit(self, source: Source, *, checkpoint: str | Path | None = None) -> "FittedComponents":
        context = planned_fit(source, self.pass_options(), needs_targets=False, folder=checkpoint)
        return principal_components(sums_of(context), self)


def component_rows(report: FitReport) -> list[Row]:
    shares, K = report["explained_variance_ratio"], report["n_components"]
    shown = listed((f"{100 * share:.3g}%" for share in shares[:5]), 5) + ", ..." * (len(shares) > 5)
    features = f"{report['n_random_features']:,} ({report['precision']} precision)"
    return [
        *input_rows(report),
        ("random features", features),
        ("principal components", f"{K:,} of {report['rank']:,} above rounding"),
        ("variance explained", f"{100 * sum(shares):.4g}%: {shown}"),
        *pass_rows(report),
    ]


@dataclass(frozen=True, repr=False)
class FittedComponents(FittedModel):
    file_kind = Kind("PCA", "streamkern-pca", 1, "streamkern pca")
    title, options_in = "Principal components", None
    estimator = "RandomFeaturePCA"

    options: ComponentOptions
    components: PrincipalComponents
    report: FitReport
    columns: Columns

    predictor = through("components.projection")
    n_features = through("components.feature_map.n_features")
    rows_of = staticmethod(component_rows)

    def estimator_parameters(self) -> dict[str, Any]:
        return vars(self.options)

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

    def stored(self, *, compact: bool) -> tuple[dict[str, Any], dict[str, Any]]:  # noqa: ARG002
        options, found = vars(self.options).copy(), self.components
        kernel = described_kernel(options.pop("kernel"))
        card = map_card(found.feature_map, found.precision)
        arrays = {name: getattr(found, name) for name in _ARRAYS}
        card |= {"options": options, "option_kernel": kernel}
        return card, {"map": found.feature_map.arrays(), **arrays}

    def with_bad_rows(self, on_bad_rows: str) -> Self:
        return replace(self, options=replace(self.options, on_bad_rows=on_bad_rows))

    @classmethod
    def restored(cls, file: Group, card: dict[str, Any], *, with_equations: bool) -> Self:  # noqa: ARG003
        feature_map = restored_map(file, card)
        D, components = feature_map.n_components, finite_array(file, "components", kinds="f")
        if components.ndim != 2 or components.shape[1] != D or not len(components):
            raise ValueError(f"components of shape {components.shape} for {D} features")
        shapes = {"explained_variance": components.shape[:1], "mean": (D,)}
        arrays = finite_arrays(file, shapes | {"total_variance": (), "weight": ()}, "f")
        variance = arrays["explained_variance"]
        total, weight = float(arrays["total_variance"]), float(arrays["weight"])
        if (variance < 0).any() or not (total > 0 and weight > 1):
            raise ValueError(f"a variance of {total:g} and rows that weigh {weight:g}")
        found = PrincipalComponents(
            feature_map, arrays["mean"], components, variance, total, weight, card["precision"]
        )
        options = ComponentOptions(restored_kernel(card["option_kernel"]), **card["options"])
        return cls(options, found, card["report"], Columns.restored(card, feature_map.n_features))


def principal_components(moments: DataMoments, options: ComponentOptions) -> FittedComponents:
    """Decompose the centred moments of features, where the moments are."""
    begun, wanted = time.perf_counter(), checked_number(options.n_components)
    if trended(moments.feature_map):
        raise ParameterError(
            "the first components of moments with a trend would be its terms; take moments without."
        )
    moments = moments.solvable()
    D, n_rows = moments.feature_map.n_components, moments.n_rows
    if isinstance(wanted, int) and wanted > min(D, n_rows):
        raise ParameterError(
            f"there are {min(D, n_rows):,} components at most, of {n_rows:,} rows and {D:,} "
            f"features, but n_components is {wanted:,}; ask for no more."
        )
    leading = delayed(_leading, scatter(moments.folds), wanted, name="principal-components")
    rank, *arrays = compute(leading)
    found = PrincipalComponents(moments.feature_map, *arrays)
    found = replace(found, precision=precision_of_features(moments.options.precision))
    K = len(found.components)
    if isinstance(wanted, int) and wanted > K:
        warn(
            f"only {K:,} of the {wanted:,} components asked for have a variance above rounding; "
            f"these are kept."
        )
    report = with_seconds(moments.report, solve=time.perf_counter() - begun)
    report |= kernel_facts(moments.kernel) | {
        "n_random_features": D,
        "n_components": K,
        "rank": rank,
        "explained_variance": found.explained_variance.tolist(),
        "explained_variance_ratio": found.explained_variance_ratio.tolist(),
    }
    return FittedComponents(options, found, report, moments.columns)


def _leading(folds: FoldStatistics, wanted: int | float | None) -> tuple[Any, ...]:
    """Return the rank of G; and mean, components, their and the total variance, and weight."""
    total = folds.total()
    if total.n_rows < 2:
        raise DataError(
            f"principal components need 2 rows at least, but there is {total.n_rows}; add rows."
        )
    centred = total.centred()
    spare = centred.weight - centred.row_weight
    variance = float(centred.gram.diagonal().sum()) / spare
    basis = Eigenbasis.of(centred, total.n_rows - 1)
    values = basis.spectrum.values[::-1] / spare
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
    weight = centred.weight / centred.row_weight
    return rank, basis.feature_mean, components, values[:kept].copy(), variance, weight
