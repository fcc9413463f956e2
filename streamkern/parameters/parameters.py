"""The parameters of a fit: one frozen value, from which everything that a fit does follows."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from streamkern.errors import ParameterError
from streamkern.features.metric import checked_metric
from streamkern.kernels import Gaussian, Kernel
from streamkern.parameters.choices import PenaltyOptions, SparseOptions
from streamkern.parameters.fit_options import FitOptions
from streamkern.solve.sparse_selection import checked_method, checked_size

if TYPE_CHECKING:
    from streamkern.parameters.template import Template
    from streamkern.sources import Source

DEFAULT_KERNEL = Gaussian("median")
AUTO = "auto"
AUTO_COMPONENTS = 4096
_FLAGS = ("paired", "standardize", "fit_intercept", "per_target", "one_standard_error")


@dataclass(frozen=True)
class Parameters:
    """What a fit is told; the fields are documented in `RandomFeatureRidge`.

    `keeps_folds` is no parameter of a user's: rows are dealt to folds even where the penalty is not
    chosen by them, as for a calibration.
    """

    kernel: Kernel | str = DEFAULT_KERNEL
    n_components: int | str = 2048
    alpha: Any = "cv"
    alphas: Any = None
    n_folds: int = 5
    fold_by: str = "auto"
    per_target: bool = False
    one_standard_error: bool = False
    sparse: int | str | None = None
    sparse_method: str = "forward"
    feature_map: str = "orthogonal"
    paired: bool = True
    metric: Any = None
    standardize: bool = True
    fit_intercept: bool = True
    precision: str = "single"
    on_bad_rows: str = "error"
    random_state: int = 0
    keeps_folds: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        for name in _FLAGS:
            value = getattr(self, name)
            if not isinstance(value, (bool, np.bool_)):
                raise ParameterError(
                    f"{name} must be True or False, not {value!r}; give one of them."
                )

    @classmethod
    def of(cls, holder: Any, *, keeps_folds: bool = False) -> Self:
        """Return the parameters that an estimator holds as attributes."""
        return cls(**{name: getattr(holder, name) for name in NAMES}, keeps_folds=keeps_folds)

    def values(self) -> dict[str, Any]:
        """Return the parameters of a user's by their names."""
        return {name: getattr(self, name) for name in NAMES}

    @property
    def skips_bad_rows(self) -> bool:
        """Whether rows with values that are not finite are left out."""
        return self.on_bad_rows == "skip"

    @property
    def penalty(self) -> PenaltyOptions:
        """How the penalty is chosen; checked here."""
        return PenaltyOptions(
            **{each.name: getattr(self, each.name) for each in fields(PenaltyOptions)}
        )

    @property
    def solves_at_once(self) -> bool:
        """Whether nothing is left to choose once the moments are there."""
        return self.penalty.is_fixed and self.sparse is None and not self.keeps_folds

    def passes(self, template: Template | None = None) -> FitOptions:
        """Return the checked options of the passes of a fit, those of the template if any."""
        if template is None or self.feature_map != AUTO:
            return self.with_folds(self.map_options(), template)
        found = template.options
        return self.with_folds(self.map_options(found.feature_map, found.kernel), template)

    def moments(self, template: Template | None = None) -> FitOptions:
        """Return the options of the passes of moments, which are dealt to folds in any case."""
        options = self.map_options()
        return options if template is None else template.applied(options)

    def map_options(
        self, feature_map: str | None = None, kernel: Kernel | None = None
    ) -> FitOptions:
        """Return the options of passes as they are, with another map or kernel if one is given."""
        values = {each.name: getattr(self, each.name) for each in fields(FitOptions)}
        values["feature_map"] = feature_map or self.feature_map
        values["kernel"] = kernel or self.kernel
        values["metric"] = checked_metric(self.metric)
        if self.n_components == AUTO:
            values["n_components"] = AUTO_COMPONENTS
        return FitOptions(**values)

    def for_rows(
        self, options: FitOptions, source: Source, template: Template | None = None
    ) -> FitOptions:
        """Return options with no more components than rows, where their number is chosen."""
        if self.n_components != AUTO or template is not None or options.is_identity:
            return options
        most = max(1 << (source.n_samples.bit_length() - 1), 64)
        return replace(options, n_components=min(options.n_components, most))

    def sparse_options(self, available: int | None) -> SparseOptions | None:
        """Return how a sparse model of so many features is chosen; None for no such model."""
        checked_method(self.sparse_method)
        if self.sparse is None:
            return None
        options = SparseOptions(self.sparse, self.sparse_method)
        if options.is_chosen and not self.penalty.needs_folds:
            raise ParameterError(
                "sparse 'auto' is chosen by cross-validation; take alpha 'cv' or a grid of "
                "penalties, or give the number."
            )
        if not options.is_chosen:
            if self.n_components == AUTO:
                raise ParameterError(
                    f"sparse {self.sparse} of n_components 'auto' is not known to be fewer; give "
                    f"the number of components, or take sparse 'auto'."
                )
            checked_size(self.sparse, available)
        return options

    def with_folds(self, options: FitOptions, template: Template | None = None) -> FitOptions:
        """Return options with the folds that the choice of the penalty needs."""
        penalty, automatic = self.penalty, self.n_components == AUTO
        needs_folds = penalty.needs_folds or self.keeps_folds
        if needs_folds and options.n_folds < 2:
            raise ParameterError("cross-validation needs at least 2 folds, not 1; take 5.")
        if automatic and not penalty.needs_folds:
            raise ParameterError(
                "n_components 'auto' is chosen by cross-validation; take alpha 'cv' or a grid of "
                "penalties, or give the number."
            )
        if automatic and not (options.is_identity or options.is_nested):
            raise ParameterError(
                f"the map {options.feature_map!r} has no smaller ones in it to choose from; give "
                f"n_components a number."
            )
        n_folds = options.n_folds if needs_folds else 1
        if template is not None:
            options = template.applied(options)
        self.sparse_options(None if options.is_identity else options.n_components)
        return replace(options, n_folds=n_folds)


NAMES = tuple(each.name for each in fields(Parameters) if each.name != "keeps_folds")
