"""Fitted models: a function of rows, a report, names of columns, and a file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, ClassVar, Self

from streamkern._version import __version__
from streamkern.kernels import Kernel, kernel_from
from streamkern.sources import Source
from streamkern.sources.preprocessing import recipe_of
from streamkern.sources.preprocessing.column_names import check_same_inputs, input_names
from streamkern.storage.codec import write_card

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import h5py

    from streamkern.predict.predictor import RowFunction
    from streamkern.sources.preprocessing import Recipe
    from streamkern.storage.codec import Kind

LIBRARIES = ("dask", "distributed", "h5py", "numpy", "scikit-learn", "scipy")


class FittedModel(ABC):
    """A fitted model, which does not change: estimators hold one, and commands use it alone.

    Attributes
    ----------
    file_kind : Kind
    estimator : str
        The name of the estimator that fits such models.
    predictor : RowFunction
        What gives the predictions, or scores of classes, of rows.
    report : dict
        Rows, seconds, memory, data and diagnostics of the fit, as plain JSON values.
    names : sequence of str, optional
        Of the inputs, where the report has none.
    """

    file_kind: ClassVar[Kind]
    estimator: ClassVar[str]
    predictor: RowFunction
    report: dict[str, Any]
    names: Sequence[str] | None

    @property
    @abstractmethod
    def n_features(self) -> int:
        """The number of inputs, p."""

    @abstractmethod
    def stored(self, *, compact: bool) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what this kind adds to a card, and its arrays, the fewest if it is compact."""

    @classmethod
    @abstractmethod
    def restored(cls, file: h5py.File, card: dict[str, Any], *, with_equations: bool) -> Self:
        """Return the model of an open file; what is raised on the way is damage."""

    def save(self, path: str | Path, *, compact: bool = False, force: bool = False) -> None:
        """Write the model to an HDF5 file, without normal equations if it is to be compact."""
        card, arrays = self.stored(compact=compact)
        card |= {
            "kind": self.estimator,
            "report": self.report,
            "versions": {"streamkern": __version__} | {name: version(name) for name in LIBRARIES},
            "feature_names": self.feature_names,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        write_card(path, self.file_kind, card, arrays, force=force)

    @property
    def kernel(self) -> Kernel:
        """The kernel, with its length scale resolved."""
        return kernel_from(self.report["kernel"], self.report["kernel_parameters"])

    @property
    def recipe(self) -> Recipe | None:
        """How a table became the inputs."""
        return recipe_of(self.report)

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """The names of the inputs, None where neither a file nor a frame named them."""
        names = input_names(self.report) or self.names
        return None if names is None else tuple(names)

    def check_inputs(self, X: Any) -> None:
        """Raise DataError if a source has other inputs than the rows of the fit."""
        if isinstance(X, Source):
            check_same_inputs(self.report, X.describe())


def columns_of(
    report: dict[str, Any], n_features: int, names: Sequence[str] | None = None
) -> tuple[int, list[str] | None]:
    """Return how many columns predictions ask for, and their names, as a fit reports them."""
    known, recipe = input_names(report), recipe_of(report)
    if recipe is not None and len(recipe.feature_names) != n_features:
        raise ValueError(f"a recipe of {len(recipe.feature_names)} inputs for {n_features}")
    for each in (known, names):
        if each is not None:
            check_names(each, n_features)
    if recipe is not None:
        columns = [column.name for column in recipe.columns]
        return len(columns), columns
    found = known or names
    return n_features, None if found is None else list(found)


def check_names(names: Any, n_features: int) -> None:
    """Raise ValueError unless a file's names of columns can be those of so many."""
    if len(names) != n_features or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{len(names)} names for {n_features} columns")
