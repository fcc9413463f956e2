"""Feature maps: what all of them offer, and how they are declared."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from reprlib import repr as shortened
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from streamkern._docstrings import described
from streamkern._typing import Array, Floats
from streamkern.errors import DataError, ParameterError
from streamkern.errors.checks import checked_integer
from streamkern.errors.formatting import turned_by
from streamkern.features.families import FAMILIES, MAPS, Family
from streamkern.kernels.base import declare
from streamkern.runtime.sparse_rows import SparseRows, is_sparse

if TYPE_CHECKING:
    from streamkern.runtime.scratch import Scratch

# Features are made for a few rows at a time, so that they are still in cache for the cosines.
_CACHED_VALUES = 1 << 18
# The largest integers that features are rounded to, by precision: of one byte, and of two.  Two
# digits from -128 to 127 reach 32,639; up to half of that, sums have room for four times the rows.
LEVELS = {"int8": 127, "int16": 127 << 7}

NO_CHOICE_BESIDE_TREND = (
    "features are not chosen beside a trend, which comes first; leave out sparse (--sparse), or "
    "the trend."
)


# What methods of maps take and return.
_PROTOCOL = """
n_features : int
    p, the number of inputs.
rows : ndarray of shape (m, p), optional
    Spread over the data, for maps that are made from rows.
X : ndarray or SparseRows of shape (n, p)
    Of any real dtype.
y : object
    Not looked at.
out : ndarray of shape (n, D), float32 or float64
    Where features are written, in the precision that they are computed in.
shift : ndarray of shape (D,), or 0
    Of the dtype of `out`.
scratch : Scratch, optional
    Memory to work in, lent until the last slice is asked for.
dtype : type
    numpy.float64 or numpy.float32.
n_components : int
    How many features.
indices : array_like of int
    Of features, each once.
parameters, arrays : mapping
    What the methods of these names return.
other : FeatureMap
shape : tuple of int
evaluated() : iterator of slice
transform() : ndarray of shape (n, D)
first(), subset(), restore() : FeatureMap
checked_part() : int
checked_subset() : ndarray of int, of shape (K,)
Self() : self
parameters() : dict
arrays() : dict of str to ndarray
equals() : bool
"""


_X = "X : array_like of shape (n, p), or sparse rows"


@described(_PROTOCOL, fit=_X, transform=_X)
class FeatureMap(ABC):
    """A map phi from rows of p inputs to D features.

    A map is drawn once, for a number of inputs, and is from then on a plain function: `evaluate`
    for programs that own the memory, `evaluated` for those that use the features while they are in
    cache, `transform` for everyone else.  A map of your own is a class with a `name`, `families`
    and the methods that are abstract here.  Models are fitted, searched and loaded with it wherever
    the module that declares it is imported.

    Attributes
    ----------
    name : str
        The name in files.
    families : mapping
        For every name of the map in options: what it is, in a few words, and the arguments of the
        class that make it so.  Of `kernel`, `n_components`, `paired`, `jitter` and `random_state`
        the class is given those that its constructor takes.
    no_part : str
        Why no leading part of `{}` features stands for the whole, where that is so.
    n_features, n_components : int
        p, known once the map is drawn, and D, the number of features.
    scale : float
        The factor that `evaluate` leaves out and `transform` applies, because a caller can often
        apply it for nothing.
    nesting : int
        Leading parts are of multiples of so many features; 0 where there are none.
    exact_rows : bool
        Whether something is subtracted from rows, so that they are to come in double.
    is_field : bool
        Whether they are waves that are laid for the range of all rows, as of the extension
        `fields`, which knows their sums and chooses their kernel.
    left_out, n_terms : float and int
        What of k(x, x) their squares leave out, and how many before them are terms of a trend.
    takes_sparse : bool
        Whether features of sparse rows are made of what is stored; else some rows at a time are
        made dense.
    """

    name: ClassVar[str]
    families: ClassVar[Mapping[str, tuple[str, Mapping[str, Any]]]] = {}
    no_part: ClassVar[str] = "this map has no part of {} features that stands for the whole."
    nesting: int = 0
    exact_rows: ClassVar[bool] = False
    is_field: ClassVar[bool] = False
    left_out: float = 0.0
    n_terms: int = 0
    takes_sparse: bool = False
    n_features: int = 0
    n_components: int
    scale: float = 1.0

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" in vars(cls):
            declare(MAPS, cls.name, cls)
            owners = {name: family.made for name, family in FAMILIES.items()}
            for name, (text, arguments) in vars(cls).get("families", {}).items():
                declare(owners, name, cls)
                FAMILIES[name] = Family(cls, text, arguments)

    @abstractmethod
    def draw(self, n_features: int, rows: Array | None = None) -> Self:
        """Draw what is random, and return the map itself."""

    def check_inputs(self, n_features: int) -> None:  # noqa: B027  most maps take any number
        """Raise ParameterError unless the map can be drawn for rows of so many inputs."""

    def evaluate(self, X: Array, out: Array, shift: Array | float = 0.0) -> None:
        """Write phi(X) / scale - shift into `out`."""
        for _ in self.evaluated(X, out, shift):
            pass

    @abstractmethod
    def evaluated(
        self, X: Array, out: Array, shift: Array | float = 0.0, scratch: Scratch | None = None
    ) -> Iterator[slice]:
        """Write phi(X) / scale - shift into `out`, and yield slices of rows as they are done."""

    def first(self, n_components: int) -> FeatureMap:
        """Return the map of the leading features, up to the factor sqrt(L / L'), or refuse."""
        raise ParameterError(self.no_part.format(n_components))

    @abstractmethod
    def subset(self, indices: Array) -> FeatureMap:
        """Return the map of some of the features, in this order, with this map's scale."""

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """Return what describes the map as plain JSON values."""

    @abstractmethod
    def arrays(self) -> dict[str, Array]:
        """Return what was drawn, by name, as arrays for a model file."""

    @classmethod
    @abstractmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Mapping[str, Array]) -> FeatureMap:
        """Rebuild a map from `parameters()` and `arrays()`, bit for bit."""

    def fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: ARG002  scikit-learn's signature
        """Draw the map for rows such as those of `X`."""
        rows = given_rows(X)
        return self.draw(rows.shape[1], rows)

    def transform(self, X: ArrayLike, dtype: type[np.floating[Any]] = np.float64) -> Floats:
        """Return the features of some rows, in double or single precision."""
        given: Any = SparseRows.of(X) if is_sparse(X) else X
        rows: Any = given if isinstance(given, SparseRows) else np.asarray(X)
        self.check(rows.shape)
        features = np.empty((len(rows), self.n_components), dtype=dtype)
        if isinstance(rows, SparseRows) and not self.takes_sparse:
            for part in cached_slices(len(rows), max(rows.shape[1], self.n_components)):
                self.evaluate(np.asarray(rows[part]), features[part])
        else:
            self.evaluate(rows, features)
        features *= dtype(self.scale)
        return features

    def equals(self, other: FeatureMap) -> bool:
        """Say whether two maps are the same function, bit for bit."""
        if self is other:
            return True
        mine, theirs = self.arrays(), other.arrays()
        return (
            self.name == other.name
            and self.parameters() == other.parameters()
            and mine.keys() == theirs.keys()
            and all(np.array_equal(mine[name], theirs[name]) for name in mine)
        )

    def checked_part(self, n_components: int) -> int:
        """Return the size of a leading part, or raise ParameterError unless there are so many."""
        self.check_drawn()
        if not 1 <= n_components <= self.n_components:
            raise ParameterError(
                f"a part of this map has between 1 and {self.n_components} features, not "
                f"{n_components}; ask for no more than there are."
            )
        return n_components

    def checked_subset(self, indices: Array) -> Array:
        """Return indices of features, or raise ParameterError unless they are that, each once."""
        self.check_drawn()
        chosen, D = np.asarray(indices), self.n_components
        if (
            chosen.ndim != 1
            or chosen.dtype.kind not in "iu"
            or not len(chosen)
            or len(np.unique(chosen)) < len(chosen)
            or not 0 <= chosen.min() <= chosen.max() < D
        ):
            raise ParameterError(
                f"a subset is a list of different whole numbers from 0 to {D - 1}, not "
                f"{shortened(chosen.tolist())}; name every feature once."
            )
        return chosen

    def check_drawn(self) -> None:
        """Raise ParameterError unless the map is drawn."""
        if not self.n_features:
            raise ParameterError("the map is not drawn yet; call fit(X) or draw(n_features) first.")

    def check(self, shape: tuple[int, ...]) -> None:
        """Raise DataError unless `shape` is (n, p) with the p that the map was drawn for."""
        self.check_drawn()
        if len(shape) != 2 or shape[1] != self.n_features:
            remedy = "; pass the same inputs"
            if len(shape) == 2 and shape[0] == self.n_features:
                remedy = f", and seems to be transposed, {turned_by(['/X'])}"
            raise DataError(
                f"rows must have {self.n_features} columns, as the model was fitted on, but X has "
                f"shape {tuple(shape)}{remedy}."
            )


def given_rows(X: Any) -> Floats:
    """Return rows, which may be sparse, as float64 (n, p)."""
    return np.asarray(SparseRows.of(X) if is_sparse(X) else X, dtype=float)


def slices(n: int, step: int) -> Iterator[slice]:
    """Yield slices of so many at a time, and of what is left."""
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


def cached_slices(n_rows: int, n_components: int, n_factors: int = 0) -> Iterator[slice]:
    """Return slices of rows whose features fit in a core's cache, or of 16 to 64 of them.

    So many as there are numbers a feature that are read for every slice.
    """
    fewest = min(max(n_factors, 16), 64)
    return slices(n_rows, max(_CACHED_VALUES // max(n_components, 1), fewest))


def checked_seed(random_state: Any) -> int:
    """Return the seed as an int, or raise ParameterError unless it is a whole number >= 0."""
    sentence = (
        "random_state must be a whole number of at least 0, not {!r}; give a seed that can be "
        "stored with the model."
    )
    return checked_integer(random_state, sentence, 0)


def checked_n_components(n_components: Any) -> int:
    """Return D as an int, or raise ParameterError unless it is a positive whole number."""
    D = checked_integer(
        n_components, "n_components must be a whole number, not {!r}; give how many."
    )
    return checked_integer(D, "n_components must be at least 1, not {}; give how many.", 1)


def stream(seed: int, *key: int) -> np.random.Generator:
    """Return random numbers of a seed for one use; more of them never change those of others."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))
