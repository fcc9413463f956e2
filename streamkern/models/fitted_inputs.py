"""What every fitted model knows of the rows that it takes."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from streamkern.sources import Source
from streamkern.sources.preprocessing import recipe_of
from streamkern.sources.preprocessing.column_names import check_same_inputs, input_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamkern.parameters.template import Pattern
    from streamkern.sources.preprocessing import Recipe


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
        """How a table became the inputs: a file that `convert` wrote, or a data frame; or None."""
        self._check_fitted()
        return self._recipe()

    def _known_report(self) -> dict[str, Any]:
        """Return what is reported of the rows, without a solution where rows came or went."""
        known: Any = getattr(self, "ridge_", self)  # of a classifier
        moments = getattr(known, "moments_", None)
        report: dict[str, Any] = known.report_ if moments is None else moments.report
        return report

    def _recipe(self) -> Recipe | None:
        return recipe_of(self._known_report())

    def _tables(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        first: bool = False,
        fewest: int = 1,  # noqa: ARG002  of those that check rows in memory
        like: Pattern | None = None,  # noqa: ARG002
    ) -> tuple[Any, Any, Any]:
        """Return rows, targets and weights as they came; estimators of scikit-learn check them.

        They are those of a fit where `first` is true, and `fewest` rows at least.  A table becomes
        inputs by the recipe of the model; in a fit by that of `like`, or by one made of the table.
        """
        if not first and isinstance(X, Source):
            check_same_inputs(self._known_report(), X.describe())
        return X, y, sample_weight

    def _feature_names(self) -> tuple[str, ...] | None:
        """Return the names of the inputs, None where neither a file nor a frame named them."""
        recipe = self._recipe()
        names = getattr(self, "feature_names_in_", None) if recipe is None else recipe.feature_names
        return None if names is None else tuple(names)

    def _note_inputs(self, n_features: int, names: Sequence[str] | None = None) -> None:
        """Note the columns that predictions ask for, once what is reported of the rows is known.

        Names (p,) of the inputs count where the report has none.  Others than p are a ValueError.
        """
        known, recipe = input_names(self._known_report()), self._recipe()
        for each in (known, names):
            if each is not None:
                check_names(each, n_features)
        names = known or names
        if recipe is not None:
            names = [column.name for column in recipe.columns]
        self.n_features_in_ = n_features if recipe is None or names is None else len(names)
        self.__dict__.pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)

    def _tables_of_moments(self, *tables: Any, like: Pattern | None) -> tuple[Any, Any, Any]:
        """Return rows, targets and weights checked as in a fit.

        The model stays as it is: moments are not what it was fitted to.
        """
        return copy(self)._tables(*tables, first=True, like=like)


def check_names(names: Any, n_features: int) -> None:
    """Raise ValueError unless a file's names of columns can be those of so many."""
    if len(names) != n_features or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{len(names)} names for {n_features} columns")
