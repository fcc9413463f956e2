"""What estimators have in common: they hold a fitted model, and check tables of rows."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_array

import streamkern
from streamkern.estimators.conventions import (
    check_finite,
    checked_rows,
    checked_targets,
    data_errors,
)
from streamkern.estimators.loading import load_fitted
from streamkern.estimators.paths import are_paths, files_or_rows, opened_paths
from streamkern.models.fitted_model import FittedModel, through
from streamkern.parameters.template import Template
from streamkern.registry import extension
from streamkern.sources import Source, as_source
from streamkern.sources.arrays import NamedRows
from streamkern.sources.columns import Columns, Recipe
from streamkern.sources.containers import (
    as_table,
    column_names,
    is_dask_frame,
    is_frame,
    is_lazy,
    unwrapped,
    with_named_columns,
)

Estimator = TypeVar("Estimator")


def fitted(name: str, description: str) -> Any:
    return through(f"model_.{name}", description)


class TableEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator that holds a fitted model, and checks tables as scikit-learn does."""

    on_bad_rows: str
    _reads_labels = False
    n_features_in_: int
    _state: Any = None  # a fitted model, or moments that rows come to and leave
    _told: set[str] | None = None  # kinds of cells that were warned of since the fit

    def __sklearn_is_fitted__(self) -> bool:
        return self._state is not None

    @property
    def model_(self) -> Any:
        """The fitted model, solved for here if rows have come or gone."""
        if self._state is None:
            raise NotFittedError("this model is not fitted yet; call fit first.")
        if isinstance(self._state, FittedModel):
            return self._state
        return self._state.solved(self._parameters(), self._problem())

    @property
    def _current_model(self) -> Any:
        """The model as it was fitted; of the parameters set since, only `on_bad_rows` counts."""
        return self.model_.with_bad_rows(self.on_bad_rows)

    __streamkern_model__ = _current_model  # for functions that are given an estimator

    report_ = fitted("report", "Rows, seconds, memory and diagnostics of the fit.")

    @property
    def recipe_(self) -> Recipe | None:
        """How a table became the inputs: a file that `convert` wrote, or a data frame; or None."""
        return self._columns.recipe

    @property
    def _skips(self) -> bool:
        return self.on_bad_rows == "skip"

    @property
    def _columns(self) -> Columns:
        columns: Columns = (self._state or self.model_).columns
        return columns

    def _tables(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        first: bool = False,
        targets: bool = True,
        drop: Sequence[str] = (),
        **more: Any,
    ) -> tuple[Any, Any, Any]:
        """Return rows as `_rows` does, targets and weights, checked where they are in memory.

        For paths, y and sample_weight are names, and `drop` lists columns that are no inputs.
        """
        X, y = unwrapped("X", files_or_rows(X, y, sample_weight)), unwrapped("y", y)
        sample_weight = unwrapped("sample_weight", sample_weight)
        if not (are_paths(X) or isinstance(X, Source)):
            X, y, sample_weight = with_named_columns(X, y=y, sample_weight=sample_weight)
        elif not isinstance(X, Source):
            like = more.get("like")
            recipe = self.recipe_ if not first else None if like is None else like.columns.recipe
            how: dict[str, Any] = {"targets": targets, "labels": self._reads_labels}
            how["as_they_are"] = recipe is None and not (first and like is None)
            how["told"] = None if first else self._told
            how["drop"] = drop
            X, y, sample_weight = opened_paths(X, y, sample_weight, recipe, **how), None, None
        rows = self._rows(X, y, first=first, **more)
        if not first and y is not None:
            self._columns.check_targets(column_names(y))
        if targets and not isinstance(X, Source) and (first or y is not None):
            y = checked_targets(self, y, labels=self._reads_labels)
        return rows, y, sample_weight

    __streamkern_rows__ = _tables  # for functions of rows that are given an estimator

    def _rows(
        self,
        X: Any,
        y: Any = None,
        *,
        first: bool = False,
        fewest: int = 1,
        like: Template | None = None,
        quiet: bool = False,
    ) -> Any:
        """Return rows in memory as an array, checked, and others as they are.

        They are those of a fit where `first` is true, and `fewest` rows at least.  A table becomes
        inputs by the recipe of the model; in a fit by that of `like`, or by one made of the table.
        Rows of a fit say what their columns and, with `y`, the targets are called.  Cells that the
        recipe did not expect are warned of once, unless rows are `quiet`, or of a fit.
        """
        if not first and self._are_plain(X):
            return X
        X = unwrapped("X", files_or_rows(X))
        if are_paths(X):
            X, _, _ = self._tables(X, targets=False)
        if isinstance(X, Source):
            if not first:
                self._columns.check_inputs(X)
            return checked_rows(self, X, first=first, finite=False)
        finite = not (first or self._skips)
        recipe = self.recipe_ if not first else None if like is None else like.columns.recipe
        is_table = is_frame(X) or is_dask_frame(X)
        is_new = first and recipe is None and is_table
        if is_new:
            discovery = extension("tables", "discovery")
            recipe = discovery.recipe_of_frame(X, keep_missing=self._skips)
        # Numbers are inputs as they are: a fit notes their names, which are asked for in arrays.
        are_inputs = is_new or not (first or is_table or (recipe is not None and recipe.is_plain))
        if recipe is None or (recipe.keeps_numbers and are_inputs):
            rows = checked_rows(self, X, first=first, finite=finite, fewest=fewest)
        else:
            known = None if first else _numbers_of(X, recipe)
            if known is not None:
                return known
            rows = recipe.encoded(X, None if first or quiet else self._told)
            if not is_lazy(rows):
                limits = {"ensure_all_finite": False, "ensure_min_samples": fewest}
                with data_errors():
                    checked = check_array(rows, estimator=self, accept_sparse=True, **limits)
                rows = as_table("X", checked)
                check_finite(self, rows, recipe.feature_names, finite=finite)
        if not first:
            return rows
        described: dict[str, Any] = {} if recipe is None else {"recipe": recipe.as_dict()}
        if recipe is None and "feature_names_in_" in vars(self):
            described["feature_names"] = self.feature_names_in_.tolist()
        if targets := column_names(y):
            described |= {"target_names": targets}
        return NamedRows(rows, described) if described else rows

    def _are_plain(self, X: Any) -> bool:
        """Say whether rows are as the model takes them: there is nothing that checks would do."""
        is_plain = type(X) is np.ndarray and X.dtype.char in "fd" and X.ndim == 2 and len(X) > 0
        if not is_plain or "feature_names_in_" in vars(self) or self.recipe_ is not None:
            return False
        with np.errstate(over="ignore", invalid="ignore"):
            return X.shape[1] == self.n_features_in_ and bool(np.isfinite(X.sum()))

    def _source(self, X: Any, *given: Any, targets: bool = True) -> Source:
        self.model_  # noqa: B018  refused before rows are looked at
        return as_source(*self._tables(X, *given, targets=targets))

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write what was fitted to an HDF5 file, which `streamkern.load` reads."""
        self._current_model.save(path, force=force)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._skips
        tags.input_tags.sparse = True
        return tags


def _numbers_of(X: Any, recipe: Recipe) -> Any:
    """Return a data frame whose numbers are the inputs, if it is that and no cell is missing."""
    if not (is_frame(X) and hasattr(X, "to_numpy") and recipe.keeps_numbers and len(X)):
        return None
    if list(X.columns) != [column.name for column in recipe.columns]:
        return None
    if any(getattr(dtype, "kind", None) not in {"f", "i", "u"} for dtype in X.dtypes):
        return None
    values = X.to_numpy()
    if values.dtype.char not in "fd":
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        rows = np.array(values, dtype=np.float32 if recipe.single else float, order="C")
        return rows if np.isfinite(rows.sum()) else None


def with_state(estimator: Estimator, state: Any) -> Estimator:
    """Return an estimator, which takes a fitted model for its own, with the columns it asks for."""
    columns: Columns = state.columns
    names = [name for name, _ in columns.table]
    vars(estimator).pop("feature_names_in_", None)
    if columns.input_names is not None:  # as a recipe's have
        vars(estimator)["feature_names_in_"] = np.array(names, dtype=object)
    vars(estimator).update(_state=state, n_features_in_=len(names), _told=set())
    return estimator


def load(path: str | Path) -> Any:
    """Read a model of any kind: what `save`, or `streamkern fit`, `tune`, or `pca`, wrote.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    estimator
        Fitted, of the class that was saved, such as RandomFeatureRidge.

    Raises
    ------
    ModelFileError
        If the file is missing, is not a model, is damaged, or has a newer format.
    """
    return estimator_of(load_fitted(path))


def estimator_of(model: FittedModel) -> Any:
    estimator = getattr(streamkern, model.estimator)
    return with_state(estimator(**model.estimator_parameters()), model)
