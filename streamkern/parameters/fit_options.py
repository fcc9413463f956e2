"""What a fit takes as given, and what that will take."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.errors import DataError, ParameterError
from streamkern.errors.formatting import unknown
from streamkern.features import FAMILIES, Family, FeatureMap, Identity
from streamkern.features.base import checked_seed
from streamkern.features.metric import GivenMetric, check_metric, checked_metric, learning_of
from streamkern.kernels import Gaussian, Kernel, Linear, ShiftInvariantKernel, as_kernel
from streamkern.parameters.plan import SAMPLE_ROWS, Plan, large_sample, plan_fit
from streamkern.runtime.events import tell_of_job
from streamkern.runtime.resources import current_resources

if TYPE_CHECKING:
    from streamkern._typing import Array, Floats
    from streamkern.sources import Source
    from streamkern.statistics.centred_moments import Precision

# What a sample may take that a map is made from.
_SAMPLE_BYTES = 128 << 20
_FEWEST_ROWS = 256

FOLDS_BY = ("auto", "shards", "rows", "blocks")


@dataclass(frozen=True)
class FitOptions:
    """What a fit takes as given, checked when it is made.

    Parameters are those of `RandomFeatureRidge`.

    Raises
    ------
    ParameterError
        If an option has a value that it cannot have.
    """

    kernel: Kernel
    n_components: int
    feature_map: str
    paired: bool
    standardize: bool
    fit_intercept: bool
    precision: Precision
    on_bad_rows: str
    random_state: int
    n_folds: int = 1
    fold_by: str = "auto"
    metric: str | GivenMetric | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernel", as_kernel(self.kernel))
        if self.feature_map == "auto":
            raise ParameterError(
                "the map 'auto' is chosen by a search; take `tune` instead, or name a map."
            )
        for name, value, allowed in (
            ("feature_map", self.feature_map, tuple(FAMILIES)),
            ("precision", self.precision, ("single", "double")),
            ("on_bad_rows", self.on_bad_rows, ("error", "skip")),
            ("fold_by", self.fold_by, FOLDS_BY),
        ):
            if value not in allowed:
                raise ParameterError(
                    f"{name} must be one of {', '.join(allowed)}, not "
                    f"{unknown(value, allowed)}; choose one of them."
                )
        checked_seed(self.random_state)
        checked_n_folds(self.n_folds)
        checked_metric(self.metric)
        if self.feature_map == "identity":
            other = not isinstance(self.kernel, Linear) and self.kernel != Gaussian()
            if other or not self.paired:
                raise ParameterError(
                    "the identity map has no kernel but the linear one, and no phases; leave them "
                    "out, or take another map."
                )
        if not self.is_identity:
            self.map_of(self.kernel)

    def parameters(self) -> dict[str, Any]:
        """Return the options as parameters of `RandomFeatureRidge`."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def is_identity(self) -> bool:
        """Whether the features are the inputs."""
        if self.feature_map == "identity":
            return True
        return isinstance(self.kernel, Linear) and not self.family.takes_linear

    @property
    def family(self) -> Family:
        """How the map is made."""
        return FAMILIES[self.feature_map]

    @property
    def is_nested(self) -> bool:
        """Whether the first features of the map are a smaller map of its kind."""
        return not self.is_identity and self.map_of(self.kernel).nesting > 0

    @property
    def can_strip(self) -> bool:
        """Whether products can be made in strips: of features that are nested as they are."""
        return self.is_nested and not self.family.rows_a_feature

    def sample_rows(self, source: Source) -> int:
        """Return how many rows the first pass brings along, for the map and what is learnt."""
        n_columns = source.n_features + source.n_targets
        learning = large_sample(n_columns) if learning_of(self.metric) else 0
        return max(learning, sample_size(self.family.rows_a_feature, self.n_components, n_columns))

    def planned(self, source: Source, n_sample: int | None = None, **job: Any) -> Plan:
        """Return the plan of a fit: `plan_fit` of what these options say, and of the job."""
        return plan_fit(
            source,
            self.components_for(source.n_features),
            precision=self.precision,
            n_folds=self.n_folds,
            fold_by=self.fold_by,
            n_sample=n_sample or self.sample_rows(source),
            can_strip=self.can_strip,
            from_rows=self.family.rows_a_feature > 0,
            **job,
        )

    def components_for(self, n_features: int) -> int:
        """Return D for rows of p inputs, and check that the length scales fit them."""
        check_metric(self.metric, n_features)
        if self.is_identity:
            return n_features
        if isinstance(self.kernel, ShiftInvariantKernel):
            self.kernel.check_inputs(n_features)
        self.check_map(n_features)
        return self.n_components

    def check_map(self, n_features: int) -> None:
        """Raise ParameterError unless the map is for p inputs, and for what is to be learnt."""
        if self.is_identity:
            return
        feature_map = self.map_of(self.kernel)
        feature_map.check_inputs(n_features)
        if learning_of(self.metric) and not feature_map.has_gradients:
            raise ParameterError(
                f"a metric is learnt from gradients, which the map {self.feature_map!r} of the "
                f"kernel {self.kernel.name!r} does not have; take the orthogonal map, or leave the "
                f"metric out."
            )

    def map_of(self, kernel: Kernel, n_components: int | None = None) -> FeatureMap:
        """Return the map of a kernel, of D features or another number of them, not drawn yet."""
        return self.family.map_of(
            kernel,
            n_components or self.n_components,
            paired=self.paired,
            precision=self.precision,
            random_state=self.random_state,
        )

    def map_for(
        self, kept: Array, rows: Floats, weights: Floats | None = None
    ) -> tuple[FeatureMap, Kernel]:
        """Draw the map for the inputs that are kept, with the length scale that suits `rows`."""
        if self.is_identity:
            return Identity().draw(len(kept)), Linear()
        kernel = self.kernel
        if isinstance(kernel, ShiftInvariantKernel):
            kernel = kernel.restricted(kept).resolved(rows, weights=weights)
        drawn = self.map_of(kernel)
        return drawn.draw(len(kept), drawn.chosen(rows, weights)), kernel


def sample_size(rows_a_feature: int, n_components: int, n_columns: int) -> int:
    """Return how many rows, of so many columns, a map of D features is made from."""
    fitting = _SAMPLE_BYTES // (8 * n_columns)
    fewest = min(SAMPLE_ROWS, max(fitting, _FEWEST_ROWS))  # of thousands of targets
    return max(fewest, min(rows_a_feature * n_components, max(fitting, n_components)))


def checked_n_folds(n_folds: Any) -> int:
    """Return K, or raise ParameterError unless it is a whole number; 1 is for no folds at all."""
    if isinstance(n_folds, bool) or not isinstance(n_folds, (int, np.integer)) or n_folds < 1:
        raise ParameterError(
            f"n_folds must be a whole number of at least 2, not {n_folds!r}; give how many parts "
            f"to leave out in turn."
        )
    return int(n_folds)


def check_folds(options: FitOptions, source: Source) -> None:
    """Raise ParameterError if there are more folds than rows."""
    if options.n_folds > source.n_samples:
        raise ParameterError(
            f"{options.n_folds} folds need as many rows, but there are {source.n_samples:,}; take "
            f"fewer folds, or alpha 'gcv' or a number, and of classes calibration None."
        )


def plan_for(
    source: Source,
    options: FitOptions,
    n_sample: int | None = None,
    *,
    indexed: bool = False,
    fixed_alpha: bool = False,
    needs_targets: bool = True,
    n_left_out: int = 0,
    n_maps: int = 1,
) -> Plan:
    """Plan a fit on what the current scheduler offers, tell it, and refuse what does not fit."""
    if needs_targets and not source.n_targets:
        raise DataError("a fit needs targets, but the source has none; name a dataset with y.")
    resources = current_resources()
    plan = options.planned(
        source,
        n_sample,
        indexed=indexed,
        fixed_alpha=fixed_alpha,
        n_left_out=n_left_out,
        n_maps=n_maps,
        n_workers=resources.n_workers,
        n_threads=resources.n_threads,
        allowed_bytes=resources.worker_bytes,
    )
    plan.check()
    tell_of_job("planned", worker_bytes=plan.worker_bytes, allowed_bytes=plan.allowed_bytes)
    return plan
