"""Checked options of the passes of a fit."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern._typing import Array, Floats, Source
from streamkern.errors import ParameterError
from streamkern.errors.checks import check_choice, checked_integer
from streamkern.features import FAMILIES, LEVELS, Family, FeatureMap, Identity
from streamkern.features.abilities import drawn_from, has_gradients
from streamkern.features.base import checked_seed
from streamkern.features.metric import GivenMetric, check_metric, checked_metric, learning_of
from streamkern.kernels import (
    Gaussian,
    Kernel,
    Linear,
    RadialKernel,
    ShiftInvariantKernel,
    as_kernel,
)
from streamkern.registry import check_map, extension

if TYPE_CHECKING:
    from streamkern.statistics.centred_moments import AnyPrecision

# Scales in which a category is one input, and all for distances between inputs.
OF_CATEGORIES = "grouped", "robust-grouped"
OF_DISTANCES = "robust", *OF_CATEGORIES, "quantile"
CHOICES: dict[str, Collection[str]] = {
    "feature_map": FAMILIES,  # to which a user's own module may add
    "scale": ("auto", "standard", "robust", "common", *OF_CATEGORIES, "quantile", "none"),
    "precision": ("single", "double", "int8", "int16"),
    "on_bad_rows": ("error", "skip"),
}
FOLDS = ("auto", "shards", "rows", "blocks", "space")
# What folds by a column of the rows are called before its name.
GROUPS, TIMES = "column:", "time:"
# Units of a gap between dates.
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
# The most components whose D x D system the solver 'auto' makes.
DIRECT_COMPONENTS = 8192
# Rows of the spread sample travel with the first pass, and more where kernel or scale is chosen.
SAMPLE_ROWS, CHOICE_ROWS = 2048, 4096
# The bytes of a sample that something is made from or learnt on, and its rows.
_SAMPLE_BYTES, _FEWEST_ROWS, _LARGE_SAMPLE = 128 << 20, 256, 16384
# Rows a feature below which they are few.
_FEW_ROWS = 4


@dataclass(frozen=True)
class FitOptions:
    """Of `Parameters`, what the sums of a pass depend on, by the same names.

    `n_components`, `feature_map` and `kernel` have values here, never 'auto'; but with scale
    'auto', or with `chooses_kernel`, scale and kernel are still to be chosen on the sample.
    `n_folds` 1 means no folds.
    """

    kernel: Kernel
    n_components: int
    feature_map: str
    paired: bool
    standardize: bool
    fit_intercept: bool
    precision: AnyPrecision
    on_bad_rows: str
    random_state: int
    n_folds: int = 1
    fold_by: str = "auto"
    gap: float | str = 0
    metric: str | GivenMetric | None = None
    scale: str = "standard"
    trend: tuple[int | str, ...] | None = None
    chooses_kernel: bool = False  # and its length scale, on the sample or in windows of a field

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernel", as_kernel(self.kernel))
        check_map(self.feature_map)
        for name, allowed in CHOICES.items():
            check_choice(name, getattr(self, name), allowed)
        self._check_folds()
        checked_seed(self.random_state)
        sentence = (
            "n_folds must be a whole number of at least 2, not {!r}; give how many parts to leave "
            "out in turn."
        )
        checked_integer(self.n_folds, sentence, 1)  # 1 is for no folds at all
        checked_metric(self.metric)
        if self.scale in OF_DISTANCES and self.is_identity:
            raise ParameterError(
                f"a linear model has no scale {self.scale!r}, which is for distances; take scale "
                f"'standard' (--scale standard), or a kernel."
            )
        if self.feature_map == "identity":
            other = not isinstance(self.kernel, Linear) and self.kernel != Gaussian()
            if other or not self.paired:
                raise ParameterError(
                    "the identity map has no kernel but the linear one, and no phases; leave them "
                    "out, or take another map."
                )
        if self.precision in LEVELS and not self.has_bounds:
            raise ParameterError(
                f"precision {self.precision!r} is for features that have a bound, which those of "
                f"the map {self.feature_map!r} do not have; take precision 'single' (--precision "
                f"single), or a map of Fourier features."
            )
        if self.trend is not None:
            object.__setattr__(self, "trend", tuple(self.trend))  # files have lists
            extension("fields", "asked_trend").check_trend(self)
        if not self.is_identity:
            self.map_of(self.kernel)

    def _check_folds(self) -> None:
        if not self.fold_column:
            check_choice("fold_by", self.fold_by, (*FOLDS, f"{GROUPS}NAME", f"{TIMES}NAME"))
        if span(self.gap) and not self.is_in_time:
            raise ParameterError(
                f"a gap is left between times, but folds are {self.fold_by!r}; take fold_by "
                f"'time:NAME' (--fold-by time:NAME), or leave the gap out."
            )

    @property
    def is_in_time(self) -> bool:
        """Whether folds are windows of time, each predicted from what came before it."""
        return str(self.fold_by).startswith(TIMES)

    @property
    def leaves_out_places(self) -> bool:
        """Whether folds are said to be blocks, regions or groups, whose errors are much alike."""
        return self.fold_by in ("blocks", "space") or str(self.fold_by).startswith(GROUPS)

    @property
    def fold_column(self) -> str | None:
        """The name of the column that folds go by, or None."""
        return fold_column(self.fold_by)

    @property
    def n_parts(self) -> int:
        """The number of parts that have sums of their own: folds, or parts of time."""
        if not self.is_in_time or self.n_folds == 1:
            return self.n_folds
        return 2 * self.n_folds + 1 if span(self.gap) else self.n_folds + 1

    def parameters(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in GIVEN}

    @property
    def is_identity(self) -> bool:
        """Whether the features are the inputs."""
        if self.feature_map == "identity":
            return True
        return isinstance(self.kernel, Linear) and not self.family.rows_a_feature

    @property
    def has_bounds(self) -> bool:
        """Whether features have a bound, so that they can be rounded to integers."""
        has_none = self.is_identity or self.trend is not None
        return not has_none and getattr(self.map_of(self.kernel), "bounds", None) is not None

    @property
    def family(self) -> Family:
        return FAMILIES[self.feature_map]

    @property
    def is_field(self) -> bool:
        """Whether the map is that of a field, whose kernel is chosen in windows."""
        return self.family.made.is_field

    @property
    def may_take_landmarks(self) -> bool:
        """Whether landmarks may take the place of the map: nothing but rows decides on it."""
        plain = self.chooses_kernel and self.paired and self.feature_map == "orthogonal"
        return plain and self.precision not in LEVELS and self.n_components <= DIRECT_COMPONENTS

    @property
    def is_nested(self) -> bool:
        """Whether the first features of the map are a smaller map of its kind."""
        has_parts = not self.is_identity and self.trend is None
        return has_parts and self.map_of(self.kernel).nesting > 0

    @property
    def can_strip(self) -> bool:
        """Whether products can be made in strips: of features that are nested as they are."""
        return self.is_nested and not self.family.rows_a_feature

    @property
    def own_solver(self) -> Any:
        """The solver of a map whose few sums tell the products of any vectors; None of others.

        Waves have such sums where their frequencies are in a ball of a lattice.
        """
        if not self.is_field or self.is_identity or not isinstance(self.kernel, RadialKernel):
            return None
        return extension("fields", "toeplitz").Toeplitz

    @property
    def cost(self) -> tuple[int, bool]:
        """The order by memory: maps of more rows take more, then those that make features."""
        return self.family.rows_a_feature, self.own_solver is None

    def sample_rows(self, source: Source) -> int:
        """Return how many rows the first pass brings along, for the map and what is learnt."""
        n_columns = source.n_features + source.n_targets
        large, needed = large_sample(n_columns), 0
        if learning_of(self.metric):
            needed = large
        elif self.scale == "auto" or self.chooses_kernel:
            needed = min(large, CHOICE_ROWS)
        made_from = sample_size(self.family.rows_a_feature, self.n_components, n_columns)
        return max(needed, made_from)

    def trend_among(self, n_features: int) -> Any:
        """Return the terms of a trend among p inputs, and along which the rest is a field."""
        return extension("fields", "trend").Trend.of(self.trend, np.arange(n_features))

    def n_terms(self, n_features: int) -> int:
        return 0 if self.trend is None else len(self.trend_among(n_features).terms)

    def n_coordinates(self, n_features: int) -> int:
        return n_features if self.trend is None else len(self.trend_among(n_features).along)

    def components_for(self, n_features: int) -> int:
        """Return D for rows of p inputs, and check that the length scales fit them."""
        check_metric(self.metric, n_features)
        if self.is_identity:
            return n_features
        if isinstance(self.kernel, ShiftInvariantKernel) and self.metric is None:
            # In a metric, they are what inputs are turned to.
            self.kernel.check_inputs(self.n_coordinates(n_features))
        self.check_map(n_features)
        return self.n_components

    def check_map(self, n_features: int) -> None:
        """Raise ParameterError unless the map is for p inputs, and for what is to be learnt."""
        if self.is_identity:
            return
        feature_map = self.map_of(self.kernel)
        if self.trend is not None:
            extension("fields", "asked_trend").check_columns(self, n_features)
        feature_map.check_inputs(self.n_coordinates(n_features))
        if learning_of(self.metric) and not has_gradients(feature_map):
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
        self, kept: Array, rows: Floats, weights: Floats | None, ends: Floats | None
    ) -> tuple[FeatureMap, Kernel]:
        """Draw the map for the inputs that are kept, with the length scale that suits `rows`.

        It is laid for rows between ends (2, r) where these are given.
        """
        if self.is_identity:
            return Identity().draw(len(kept)), Linear()
        if self.trend is not None:
            drawn: Any = extension("fields", "asked_trend").map_beside
            return drawn(self, kept, rows, weights, ends)
        kernel = self.kernel
        if isinstance(kernel, ShiftInvariantKernel):
            kernel = kernel.restricted(kept).resolved(rows, weights=weights)
        return drawn_from(self.map_of(kernel), rows if ends is None else ends, weights), kernel


def fold_column(fold_by: Any) -> str | None:
    """Return the name of the column that folds go by, or None."""
    is_named = isinstance(fold_by, str) and fold_by.startswith((GROUPS, TIMES))
    return fold_by.partition(":")[2] if is_named else None


def span(gap: float | str) -> float:
    """Return a gap between times as a number, of seconds where it is a text such as '7d'."""
    number, unit = (gap[:-1], gap[-1:]) if isinstance(gap, str) else (gap, "s")
    try:
        found = float(number) * _SECONDS.get(unit, -1.0)
    except (TypeError, ValueError):
        found = -1.0
    if not 0 <= found < math.inf:
        raise ParameterError(
            f"gap must be a number of at least 0 in the units of the times, or between dates a "
            f"text such as '7d' or '12h', not {gap!r}; give one (--gap)."
        )
    return found


# Of the options, what parameters say and files hold.
GIVEN = tuple(each.name for each in fields(FitOptions) if each.name != "chooses_kernel")


def has_few_rows(n_rows: int, n_components: int) -> bool:
    """Say whether rows are so few that some of the features are of single ones of them."""
    return n_rows < _FEW_ROWS * n_components


def large_sample(n_columns: int) -> int:
    """Return how many rows of so many inputs and targets a large sample may hold."""
    return int(min(_LARGE_SAMPLE, max(_SAMPLE_BYTES // (8 * n_columns), _FEWEST_ROWS)))


def sample_size(rows_a_feature: int, n_components: int, n_columns: int) -> int:
    """Return how many rows, of so many columns, a map of D features is made from."""
    fitting = _SAMPLE_BYTES // (8 * n_columns)
    fewest = min(SAMPLE_ROWS, max(fitting, _FEWEST_ROWS))  # of thousands of targets
    return max(fewest, min(rows_a_feature * n_components, max(fitting, n_components)))


def check_folds(options: FitOptions, source: Source) -> None:
    if options.n_folds > source.n_samples:
        raise ParameterError(
            f"{options.n_folds} folds need as many rows, but there are {source.n_samples:,}; take "
            f"fewer folds, or alpha 'gcv' or a number, and of classes calibration None."
        )
