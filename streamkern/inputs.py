"""What every fitted model knows of the rows that it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from streamkern.recipes import recipe_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamkern.recipes import Recipe


class TakesRows:
    """A model of rows (n, p), whose columns may have names.

    Attributes
    ----------
    _fitted_by : str
        The attribute that is there once the model is fitted.
    n_features_in_ : int
    """

    _fitted_by: ClassVar[str]
    n_features_in_: int

    def _check_fitted(self) -> None:
        if not hasattr(self, self._fitted_by):
            from sklearn.exceptions import NotFittedError  # noqa: PLC0415  slow

            raise NotFittedError("this model is not fitted yet; call fit first.")

    @property
    def recipe_(self) -> Recipe | None:
        """How a table became the inputs, where `convert` wrote the rows that were fitted."""
        self._check_fitted()
        fitted: Any = self
        return recipe_of(fitted.report_)

    def _tables(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        first: bool = False,  # noqa: ARG002  of those that note what came
        fewest: int = 1,  # noqa: ARG002
    ) -> tuple[Any, Any, Any]:
        """Return rows, targets and weights as they came; estimators of scikit-learn check them.

        They are those of a fit where `first` is true, and `fewest` rows at least.
        """
        return X, y, sample_weight

    def _feature_names(self) -> tuple[str, ...] | None:
        """Return the names of the columns, where they were fitted as a data frame."""
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else tuple(names.tolist())

    def _forget_names(self) -> None:
        """Note that columns may have any names, as those of moments."""
        self.__dict__.pop("feature_names_in_", None)

    def _name_features(self, names: Sequence[str] | None) -> None:
        """Note the names that predictions ask columns to have, or None for any."""
        if names is None:
            return
        if len(names) != self.n_features_in_ or not all(isinstance(name, str) for name in names):
            raise ValueError(f"{len(names)} names for {self.n_features_in_} columns")
        self.feature_names_in_ = np.array(names, dtype=object)
