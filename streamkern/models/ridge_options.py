"""What the parameters of a ridge regression ask of its passes and of its solution."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from streamkern.errors import ParameterError
from streamkern.features.metric import checked_metric
from streamkern.kernels import as_kernel
from streamkern.parameters.fit_options import FitOptions
from streamkern.solve.sparse_selection import checked_method, checked_size
from streamkern.tune.candidates import AUTO, kernels_to_try, maps_to_try
from streamkern.tune.fold_solution import PenaltyOptions
from streamkern.tune.sparse_solution import SparseOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamkern.kernels import Kernel
    from streamkern.models.ridge_model import RidgeModel
    from streamkern.parameters.template import Pattern
    from streamkern.sources import Source

AUTO_COMPONENTS = 4096
_FLAGS = ("paired", "standardize", "fit_intercept", "per_target", "one_standard_error")


@dataclass(frozen=True)
class RidgeOptions:
    """The parameters of a model, checked when they are asked for, before a row is read.

    Parameters
    ----------
    model : RidgeModel
        Whose parameters they are; it need not be fitted.

    Raises
    ------
    ParameterError
        By every method, if a parameter has a value that it cannot have.
    """

    model: RidgeModel

    def __post_init__(self) -> None:
        for name in _FLAGS:
            value = getattr(self.model, name)
            if not isinstance(value, (bool, np.bool_)):
                raise ParameterError(
                    f"{name} must be True or False, not {value!r}; give one of them."
                )

    @property
    def penalty(self) -> PenaltyOptions:
        """How the penalty is chosen."""
        return PenaltyOptions(
            **{each.name: getattr(self.model, each.name) for each in fields(PenaltyOptions)}
        )

    @property
    def solves_at_once(self) -> bool:
        """Whether nothing is left to choose once the moments are there."""
        model = self.model
        return self.penalty.is_fixed and model.sparse is None and not model._keeps_folds

    def passes(self, pattern: Pattern | None = None) -> FitOptions:
        """Return the options of the passes of a fit, those of the pattern if there is one."""
        if pattern is None or self.model.feature_map != AUTO:
            return self._with_folds(self.drawn(), pattern)
        searched = pattern.options
        return self._with_folds(self.drawn(searched.feature_map, searched.kernel), pattern)

    def moments(self, pattern: Pattern | None = None) -> FitOptions:
        """Return the options of the passes of moments, which are dealt to folds in any case."""
        options = self.drawn()
        return options if pattern is None else pattern.applied(options)

    def search(
        self,
        *,
        kernels: Kernel | str | Sequence[Kernel | str] | None = None,
        maps: str | Sequence[str] | None = None,
    ) -> FitOptions:
        """Return the options of a search, and of the fit after it.

        They have the kernel and map that take most memory, of those that go together.

        Parameters
        ----------
        kernels, maps
            As in `RandomFeatureRidge.tune`.
        """
        found, refusals = [], []
        tried = kernels_to_try(kernels, self.model.kernel) or [as_kernel(self.model.kernel)]
        for kernel, name in product(tried, maps_to_try(maps, self.model.feature_map)):
            try:
                found.append(self.drawn(name, kernel))
            except ParameterError as error:
                refusals.append(error)
        if not found:
            raise refusals[0]
        return self._with_folds(max(found, key=lambda each: each.family.rows_a_feature))

    def drawn(self, feature_map: str | None = None, kernel: Kernel | None = None) -> FitOptions:
        """Return the options of passes as they are, with another map or kernel if one is given."""
        values = {each.name: getattr(self.model, each.name) for each in fields(FitOptions)}
        values["feature_map"] = feature_map or self.model.feature_map
        values["kernel"] = kernel or self.model.kernel
        values["metric"] = checked_metric(self.model.metric)
        if self.model.n_components == "auto":
            values["n_components"] = AUTO_COMPONENTS
        return FitOptions(**values)

    def for_rows(
        self, options: FitOptions, source: Source, pattern: Pattern | None = None
    ) -> FitOptions:
        """Return the options with no more components than rows, where their number is chosen."""
        if self.model.n_components != "auto" or pattern is not None or options.is_identity:
            return options
        most = max(1 << (source.n_samples.bit_length() - 1), 64)
        return replace(options, n_components=min(options.n_components, most))

    def sparse(self, available: int | None) -> SparseOptions | None:
        """Return the options of a sparse model of so many features, or None for no such model."""
        model = self.model
        checked_method(model.sparse_method)
        if model.sparse is None:
            return None
        options = SparseOptions(model.sparse, model.sparse_method)
        if options.is_chosen and not self.penalty.needs_folds:
            raise ParameterError(
                "sparse 'auto' is chosen by cross-validation; take alpha 'cv' or a grid of "
                "penalties, or give the number."
            )
        if not options.is_chosen:
            if model.n_components == "auto":
                raise ParameterError(
                    f"sparse {model.sparse} of n_components 'auto' is not known to be fewer; give "
                    f"the number of components, or take sparse 'auto'."
                )
            checked_size(model.sparse, available)
        return options

    def _with_folds(self, options: FitOptions, pattern: Pattern | None = None) -> FitOptions:
        """Return options that go with the choice of the penalty: with the folds that it needs."""
        penalty, automatic = self.penalty, self.model.n_components == "auto"
        needs_folds = penalty.needs_folds or self.model._keeps_folds
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
        if pattern is not None:
            options = pattern.applied(options)
        self.sparse(None if options.is_identity else options.n_components)
        return replace(options, n_folds=n_folds)
