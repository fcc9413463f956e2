"""Maps of which rows decide something: a median length scale, landmarks, the cells of a grid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from streamkern.engine.reduction import accumulate
from streamkern.kernels import ShiftInvariantKernel, as_kernel, length_scale_of
from streamkern.models.transformers.base import KernelTransformer
from streamkern.parameters.fit_options import sample_size
from streamkern.statistics import ColumnStatistics, RowSample, Together
from streamkern.tune.column_pass import check_rows

if TYPE_CHECKING:
    from streamkern._typing import Array, Floats
    from streamkern.sources import Source


class RowsTransformer(KernelTransformer):
    """A map of a kernel that is drawn for the rows that it is fitted to.

    Attributes
    ----------
    rows_a_feature : int
        Rows of a spread sample for every feature, for a map that is made from rows.
    """

    rows_a_feature: ClassVar[int] = 0

    def fit(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002  scikit-learn's signature
        sample_weight: Any = None,
    ) -> Self:
        """Draw the map for rows such as these.

        What is made from rows (landmarks, cells of a grid, a median length scale) is made from a
        uniform sample of them, in one light pass; else rows are not read.

        Parameters
        ----------
        X : Source, dask.array.Array, data frame or array_like, of shape (n, p)
        y : object
            Is not looked at.
        sample_weight : array_like or Dask collection of shape (n,), optional
            Numbers of at least 0: a row of weight 0 counts as none, and one of weight s as s equal
            rows in the median length scale, exactly where the equal rows are 1,024 or fewer.
            Landmarks are chosen by weight from rows that are drawn by their places, and a grid
            follows from the range of these.

        Raises
        ------
        ParameterError
            If an option has a value that it cannot have.
        DataError
            If the rows cannot be used.
        """
        reads = self.rows_a_feature > 0 or length_scale_of(as_kernel(self.kernel)) == "median"
        source = self._source(X, sample_weight, fewest=2 if reads else 1)
        sample = self._sample(source) if reads else (None, None)
        return self._take(self.draw(source.n_features, *sample))

    def _sample(self, source: Source) -> tuple[Array, Floats | None]:
        """Return a uniform sample of the rows, in random order, and what they count."""
        n_sample = sample_size(self.rows_a_feature, self.n_components, source.n_features)
        seed = getattr(self, "random_state", 0)  # a grid has none
        empty = ColumnStatistics(source.n_features + source.n_targets), RowSample(n_sample, seed)
        found = accumulate(source, Together(*empty), label="sample")
        columns, sample = found.statistic.parts
        assert isinstance(columns, ColumnStatistics)  # noqa: S101  for the type checker
        assert isinstance(sample, RowSample)  # noqa: S101
        check_rows(source, columns, found)
        return np.asarray(sample.X, dtype=np.float64), sample.counts

    def _resolved(
        self, n_features: int, rows: Array | None, weights: Floats | None
    ) -> dict[str, Any]:
        options = self._options()
        kernel = options["kernel"]
        if isinstance(kernel, ShiftInvariantKernel):
            kernel.check_inputs(n_features)
            if rows is not None:
                options["kernel"] = kernel.resolved(rows, weights=weights)
        return options
