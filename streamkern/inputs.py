"""What every fitted model knows of the rows that it takes."""

from __future__ import annotations

from copy import copy
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

    def _name_features(self, names: Sequence[str] | None) -> None:
        """Note the names that predictions ask columns to have, or None for any."""
        self.__dict__.pop("feature_names_in_", None)
        if names is not None:
            check_names(names, self.n_features_in_)
            self.feature_names_in_ = np.array(names, dtype=object)

    def _share_names(self, part: TakesRows) -> None:
        """Note the names of the columns for a model that this one is made of."""
        names = self._feature_names()
        if names is not None:
            part.feature_names_in_ = np.array(names, dtype=object)

    def _tables_of_moments(self, *tables: Any) -> tuple[tuple[Any, Any, Any], dict[str, Any]]:
        """Return rows, targets and weights checked as in a fit, and a report of their columns.

        The model stays as it is: moments are not what it was fitted to.
        """
        checking = copy(self)
        checked = checking._tables(*tables, first=True)  # noqa: SLF001  its own
        names = checking._feature_names()
        return checked, {} if names is None else {"feature_names": list(names)}


def check_names(names: Any, n_features: int) -> None:
    """Raise ValueError unless a file's names of columns can be those of so many."""
    if len(names) != n_features or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{len(names)} names for {n_features} columns")
