"""Recipe: how rows of a table become inputs and targets, as one value that a file can hold."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from streamkern._docstrings import described
from streamkern._typing import Array, Floats
from streamkern.errors import DataError, ModelFileError, first_line, warn
from streamkern.errors.formatting import listed
from streamkern.extensions.tables.cells import (
    MISSING,
    Whole,
    Writing,
    arrow_table,
    cells_of,
    numbers,
    places,
    plain_cells,
)
from streamkern.extensions.tables.column_encoders import KINDS, Column, Numbers, Tally, with_lists
from streamkern.runtime.private_names import meta_of
from streamkern.sources.columns import RECIPE, recipe_of
from streamkern.sources.containers import is_dask_frame, is_frame
from streamkern.sources.hdf5_opening import known_reason, open_local
from streamkern.storage import untrusted
from streamkern.storage.codec import kind_of, opened_card
from streamkern.storage.outputs import local_path

VERSION = 1
# Datasets of rows, and of predictions beside those that begin with y_.
_DATASETS = {"X", "y", "weights", "classes", RECIPE}


_METHODS = """
frame : pandas, polars or pyarrow table
    With the columns that are asked for, in any order.
X : data frame, also one of Dask, of n rows; or array_like of shape (n, p)
told : set of str, or None
    Kinds of cells that were warned of already; None for rows of a fit, without warnings.
names : sequence of str
    Of columns.
other : Recipe
values : dict
    What `as_dict` returned.
text : str
    What `to_json` returned.
encoded() : array_like or Dask DataFrame of shape (n, p)
read_targets() : ndarray of shape (n,) or (n, q), or None
    Numbers are NaN where they are missing, and UTF-8 texts are empty there.
read_weights() : ndarray of shape (n,), or None
read_beside() : dict of str to ndarray of shape (n,)
encodes_like() : bool
in_words() : list of tuple of str
as_dict() : dict
to_json() : str
Self() : Recipe
"""


@described(_METHODS)
@dataclass(frozen=True)
class Recipe:
    """How the rows of a table become inputs and targets.

    `streamkern.convert` makes one of a table and stores it with the rows; a fit copies it into the
    model, where it is `recipe_`.  It is applied to rows that are not numbers yet by `transform`.

    Parameters
    ----------
    columns : tuple of Column
        Those that become inputs, in their order.
    targets : tuple of str
        Columns of targets; none for a table of inputs alone.
    labels : tuple of str, optional
        What the target may be where it is text, sorted.
    weights : str, optional
        The column of weights of rows.
    left_out : dict of str to str
        Other columns of the table, and why they are not inputs.
    missing : tuple of str
        Texts that mean missing, besides an empty one.
    single : bool
        Whether inputs are float32, which is where they lose nothing by it.
    header : bool
        Whether a CSV begins with the names of its columns; else they are called 0, 1, 2, ...
    ids : tuple of str
        Columns that say which row it is: they are no inputs, and predictions carry them.
    delimiter : str, optional
        The character between the cells of a CSV; by default a comma, of `.tsv` a tab.
    decimal, thousands : str, optional
        The decimal mark of numbers in a CSV, by default a point, and the one between thousands.
    """

    columns: tuple[Column, ...]
    targets: tuple[str, ...] = ()
    labels: tuple[str, ...] | None = None
    weights: str | None = None
    left_out: dict[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = MISSING
    single: bool = False
    header: bool = True
    ids: tuple[str, ...] = ()
    delimiter: str | None = None
    decimal: str | None = None
    thousands: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", Whole(self.columns))

    @property
    def feature_names(self) -> list[str]:
        """The names of the inputs."""
        return [name for column in self.columns for name in column.inputs()]

    @property
    def writing(self) -> Writing:
        """How texts are written that are numbers, or missing."""
        return Writing(self.missing, self.decimal, self.thousands)

    @property
    def is_plain(self) -> bool:
        """Whether all columns are numbers that stay as they are."""
        return self.labels is None and all(
            isinstance(column, Numbers) and column.fill is None for column in self.columns
        )

    @property
    def keeps_numbers(self) -> bool:
        """Whether each column is one of numbers that become one input, and none is left out."""
        kept = (isinstance(each, Numbers) and not each.indicator for each in self.columns)
        return all(kept) and not self.left_out

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of inputs."""
        return np.dtype(np.float32 if self.single else np.float64)

    def of_targets(self, names: Sequence[str]) -> Self:
        """Return the recipe with other targets, if there are any."""
        inputs = {column.name for column in self.columns}
        if taken := [name for name in names if name in inputs]:
            raise DataError(f"{taken[0]!r} is an input of the model; name another target.")
        if self.labels is not None and len(names) > 1:
            raise DataError(f"labels are in one column, not in {listed(names)}; name one of them.")
        return replace(self, targets=tuple(names)) if names else self

    def encodes_like(self, other: Self) -> bool:
        """Say whether the same cells become the same inputs, but for what missing ones become."""
        mine, theirs = (
            [{**column.as_dict(), "fill": None} for column in recipe.columns]
            for recipe in (self, other)
        )
        return mine == theirs

    def transform(self, frame: Any, tally: Tally | None = None, out: Array | None = None) -> Array:
        """Return the inputs that rows of a table become.

        Parameters
        ----------
        frame : pandas, polars or pyarrow table
            With the columns of the recipe, in any order; others are not looked at.
        tally : Tally, optional
            Where categories that are new and cells that are missing are counted.
        out : ndarray of shape (n, p), optional
            Where the inputs are written.

        Returns
        -------
        ndarray of shape (n, p)
            A number or time that is missing is filled with the mean over the rows that the recipe
            was made of; a category that was not there then is 0 in all inputs of its column.

        Raises
        ------
        DataError
            If a column is not there, or holds something else than it did.
        """
        table, tally = arrow_table(frame), Tally() if tally is None else tally
        widths = [len(column.inputs()) for column in self.columns]
        X = np.empty((table.num_rows, sum(widths)), self.dtype) if out is None else out
        X.fill(0)
        parts = np.split(X, np.cumsum(widths)[:-1], axis=1)
        for column, part in zip(self.columns, parts, strict=True):
            column.encode(cells_of(table, column.name), self.writing, part, tally)
        return X

    def encoded(self, X: Any, told: set[str] | None) -> Any:
        """Return the inputs that a table becomes, lazily for one of Dask; other rows are inputs.

        It warns of cells of tables in memory that the recipe did not expect.
        """
        if is_dask_frame(X):
            meta = _encoded_part(meta_of(X), self)
            return X.map_partitions(_encoded_part, self, meta=meta)
        if not is_frame(X):
            names = self.feature_names
            if told is not None and not self.is_plain and "names" not in told:
                told.add("names")
                warn(
                    f"X has no names of columns, so it is taken for the {len(names)} inputs that "
                    f"are made of a table: {listed(names, 5)}; give a data frame to have them made."
                )
            return X
        tally = Tally()
        rows = self.transform(X, tally)
        if told is not None:
            tally.warn(told)
        return rows

    def read_targets(self, frame: Any) -> Array | None:
        """Return the targets of rows of a table, None where the recipe has none.

        DataError says which column is not there, or holds something else, such as a new label.
        """
        if not self.targets:
            return None
        table = arrow_table(frame)
        if self.labels is not None:
            return self._read_labels(cells_of(table, self.targets[0]))
        read = [numbers(name, cells_of(table, name), self.writing) for name in self.targets]
        return read[0] if len(read) == 1 else np.stack(read, axis=1)

    def _read_labels(self, column: Any) -> Array:
        labels = self.labels or ()
        found = places(self.targets[0], column, labels, self.writing)
        if (found == -1).any():
            first = str(column[int(np.argmax(found == -1))].as_py()).strip()[:80]
            raise DataError(
                f"target {self.targets[0]!r} is {first!r} in a row, but was one of "
                f"{listed(map(repr, labels))} when the recipe was made; mend the label."
            )
        return np.array([label.encode() for label in labels] + [b"", b""])[found]

    def read_weights(self, frame: Any) -> Floats | None:
        """Return the weights of rows, None where the recipe has none."""
        if self.weights is None:
            return None
        found = numbers(self.weights, cells_of(arrow_table(frame), self.weights), self.writing)
        if not (np.isfinite(found) & (found >= 0)).all():
            raise DataError(
                f"column {self.weights!r} must hold weights, which are finite and not negative; "
                f"mend it."
            )
        return found

    def read_beside(self, frame: Any, names: Sequence[str]) -> dict[str, Array]:
        """Return what is beside the inputs of a table: integers, or texts."""
        table = arrow_table(frame)
        return {name: plain_cells(cells_of(table, name)) for name in names}

    def in_words(self) -> list[tuple[str, str]]:
        """Say of every column of the table what it becomes, as pairs of a name and words."""
        said = [(column.name, column.in_words()) for column in self.columns]
        labelled = "" if self.labels is None else f", one of {len(self.labels):,} labels"
        said += [(name, f"target{labelled}") for name in self.targets]
        said += [(name, "id, carried by predictions") for name in self.ids]
        if self.weights is not None:
            said.append((self.weights, "weight of the row"))
        return said + [(name, f"left out: {why}") for name, why in self.left_out.items()]

    def as_dict(self) -> dict[str, Any]:
        """Return the recipe as plain JSON values."""
        columns = [column.as_dict() for column in self.columns]
        values = with_lists(vars(self))
        for name in ("ids", "delimiter", "decimal", "thousands"):  # of later versions
            if not values[name]:
                del values[name]
        return {"format_version": VERSION, **values, "columns": columns}

    def to_json(self) -> str:
        """Return the recipe as a JSON text."""
        return json.dumps(self.as_dict(), allow_nan=False, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the recipe that `to_json` wrote."""
        try:
            return cls.from_dict(json.loads(text))
        except RecursionError as error:
            raise ValueError("a recipe of endless depth") from error

    @classmethod
    def from_dict(cls, values: Any) -> Self:
        """Return the recipe that `as_dict` returned."""
        if not isinstance(values, dict):
            raise ValueError(f"a recipe that is {type(values).__name__}")  # noqa: TRY004  damage
        given = dict(values)
        version = given.pop("format_version", None)
        if version != VERSION:
            raise ValueError(f"a recipe of format version {version!r}, not {VERSION}")
        try:
            given["columns"] = tuple(_column(each) for each in given["columns"])
            for name in ("targets", "labels", "missing", "ids"):
                if isinstance(given.get(name), list):
                    given[name] = tuple(given[name])
            recipe = cls(**given)
            recipe._check()
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"a recipe with other values ({error})") from error
        json.dumps(values, ensure_ascii=False).encode()  # no halves of characters
        return recipe

    def _check(self) -> None:
        for column in self.columns:
            column.check()
        for texts in (self.targets, self.labels or (), self.missing, self.ids):
            if not (isinstance(texts, tuple) and all(isinstance(text, str) for text in texts)):
                raise ValueError("a recipe with something else than texts")
        if self.labels is not None and (not self.labels or len(self.targets) != 1):
            raise ValueError("a recipe of labels without one target")
        left = self.left_out
        if not isinstance(left, dict) or not all(isinstance(why, str) for why in left.values()):
            raise ValueError("a recipe that does not say what it leaves out")
        marks = self.delimiter, self.decimal, self.thousands
        if not all(isinstance(each, str | None) for each in (self.weights, *marks)):
            raise ValueError("a recipe with weights of no name, or a mark that is no text")
        if taken := reserved(self.ids):
            raise ValueError(f"an id called {taken[0]!r}, as datasets of rows and predictions are")
        if not (isinstance(self.single, bool) and isinstance(self.header, bool)):
            raise ValueError("a recipe with neither yes nor no")  # noqa: TRY004  damage
        names = [column.name for column in self.columns]
        if not names or any(len({*each}) < len(each) for each in (names, self.ids)):
            raise ValueError("a recipe of no columns, or with one of them twice")


def _encoded_part(part: Any, recipe: Recipe) -> Any:
    import pandas as pd  # slow, and whoever has a Dask frame has imported it

    return pd.DataFrame(recipe.transform(part), index=part.index)


def read_recipe(path: str | Path) -> Recipe:
    """Read how a table became inputs.

    Parameters
    ----------
    path : str or Path
        Of rows, of a model of any kind, or of moments.

    Returns
    -------
    Recipe

    Raises
    ------
    DataError, ModelFileError
        If the file has no recipe, or none that can be read.
    """
    path = local_path(path)
    if (kind := kind_of(path)) is not None:
        with opened_card(path, kind) as (_, card):
            recipe: Any = recipe_of(card.get("report", {}).get("data", {}))
        if recipe is not None:
            return recipe
        raise ModelFileError(
            f"{path} was not fitted to a table that `streamkern convert` read, and has no recipe; "
            f"give rows in HDF5."
        )
    try:
        with open_local(path) as file:
            if file.get(RECIPE, getlink=True) is not None:
                return Recipe.from_json(untrusted.text(file, RECIPE))
    except untrusted.DAMAGE as error:
        why = known_reason(error) or (
            f"has no recipe that can be read ({first_line(error)}); give a file that `streamkern "
            f"convert` wrote from a table."
        )
        raise DataError(f"{path} {why}") from error
    raise DataError(
        f"{path} has no recipe of a table; give a file that `streamkern convert` wrote from CSV or "
        f"Parquet."
    )


def reserved(ids: Sequence[str]) -> list[str]:
    """Return the ids that may not be called so, beside the datasets of rows and predictions."""
    return [name for name in ids if name in _DATASETS or "/" in name or name.startswith("y_")]


def _column(values: Any) -> Column:
    given = dict(values)
    kind = KINDS[given.pop("kind")]
    lists = {name: tuple(value) for name, value in given.items() if isinstance(value, list)}
    return kind(**{**given, **lists})
