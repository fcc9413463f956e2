"""The moments of the rows of a data set: kept, merged, and taken rows out of."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from streamkern._docstrings import described
from streamkern.engine.scheduler import compute, delayed, is_delayed, persist, scatter
from streamkern.errors import ParameterError
from streamkern.features import FeatureMap, LandmarkFolds, solve_map
from streamkern.kernels import Kernel
from streamkern.models.feature_rounding import USUAL_ROUNDING
from streamkern.models.moments_files import read_moments, write_moments
from streamkern.models.report_facts import kernel_facts
from streamkern.models.report_rows import summary_line
from streamkern.parameters.fit_options import FitOptions
from streamkern.parameters.fit_report import FitReport
from streamkern.parameters.template import Template
from streamkern.predict.support import SupportRows
from streamkern.registry import extension
from streamkern.runtime.memory import check_free
from streamkern.solvers.base import Completion
from streamkern.sources.columns import Columns
from streamkern.sources.target_encoding import NUMBERS, TargetEncoding
from streamkern.statistics import FeatureSums, FoldStatistics, RowIndex, RowSample, Triangle


@described("""
gathered(), solvable(), merge(), forget() : DataMoments
template() : Template
known_rows() : RowIndex
""")
@dataclass(frozen=True, repr=False)
class DataMoments:
    """The moments of the rows of a data set: all that choosing and solving need.

    Made by `RandomFeatureRidge.moments`, solved by `RandomFeatureRidge.solve`.

    Attributes
    ----------
    folds, n_folds : FoldStatistics, or a task of one, and int
        A task stays where it was merged; the number is 1 for no folds.
    feature_map, kernel : FeatureMap and Kernel
        The whole map, from raw rows to features; and the kernel with its length scale resolved.
    n_rows, columns, encoding, flat : int, Columns, TargetEncoding and bool
        How many rows, what inputs and targets are called, how targets became numbers, and whether
        a single one is stored as (n,).
    options, report, search_note : FitOptions, FitReport, and str or None
        What passes were told, and found; and a note on the search that chose kernel and map.
    index, sample, support_rows : RowIndex, RowSample and SupportRows, or None
        Rows with their folds, 9 bytes each with up to 256 folds; a sample, until rows come or go;
        and rows of one pass, by which support is told.  Only the first is saved.
    crowds, is_reweighted : bool
        Whether rows crowd, so that folds guard the penalty; and whether they were weighted by an
        earlier model, which the sample is not.
    landmarks, completion : LandmarkFolds and Completion, or None
        Where features are made of landmarks; and after conjugate gradients.
    feature_rounding, weight_unit : float, and float or None
        Of rounded features: their error in units of a level, and the unit of weights.
    n_threads : int or None
        Tasks of a process that were planned to run at a time.
    """

    folds: Any
    n_folds: int
    feature_map: FeatureMap
    kernel: Kernel
    flat: bool
    report: FitReport
    options: FitOptions
    columns: Columns
    n_rows: int
    encoding: TargetEncoding = NUMBERS
    index: RowIndex | None = None
    n_threads: int | None = None
    crowds: bool = False
    landmarks: LandmarkFolds | None = None
    completion: Completion | None = None
    support_rows: SupportRows | None = None
    sample: RowSample | None = None
    is_reweighted: bool = False
    feature_rounding: float = USUAL_ROUNDING
    weight_unit: float | None = None
    search_note: str | None = None

    def __repr__(self) -> str:
        n_components = self.feature_map.n_components
        known = kernel_facts(self.kernel) | {"n_components": n_components}
        return summary_line("DataMoments", self.report | known)

    def check_whole(self) -> None:
        """Raise ParameterError unless these are the moments of all features."""
        if self.completion is not None:
            raise ParameterError(
                "conjugate gradients leave moments of the combinations of features that their "
                "solution needs, which other rows and penalties have no place in; fit all rows "
                "again, or with solver 'direct' (--solver direct)."
            )

    def check_lasting(self) -> None:
        """Raise ParameterError if other rows, and files, do not know which fold they are in."""
        if self.options.fold_column:
            raise ParameterError(
                f"folds by {self.options.fold_by} are of rows that are all there, but these "
                f"moments are for others to come, or for a file; fit all rows again, or with "
                f"fold_by 'rows' (--fold-by rows)."
            )

    def gathered(self) -> "DataMoments":
        """Return the same moments, all in this process."""
        return replace(self, folds=compute(self.folds)) if is_delayed(self.folds) else self

    @property
    def n_targets(self) -> int:
        """The number of targets, q."""
        return self.columns.n_targets

    @property
    def nbytes(self) -> int:
        """What the moments take in memory."""
        D = self.feature_map.n_components
        part = 8 * Triangle.size(D) + 16 * D * (self.n_targets + 1)
        return self.n_folds * part + (9 * len(self.index) if self.index else 0)

    def solvable(self) -> "DataMoments":
        """Return the moments of the map whose features are solved for.

        These, but where what was summed is to be turned: a task a fold, where the moments are.
        """
        feature_map, turning = solve_map(self.feature_map)
        if turning is None:
            return self
        folds = scatter(self.folds)
        numbers: list[int] = compute(delayed(FoldStatistics.numbers, folds, name="folds"))
        parts = [delayed(_solvable, folds, fold, name=f"turn-{fold}") for fold in numbers]
        whole = persist(delayed(_with_parts, folds, numbers, *parts, name="turned"))
        return replace(self, folds=whole, feature_map=feature_map)

    def template(self) -> Template:
        """Return what moments of more rows must take over to be merged with these."""
        self.check_whole()
        self.check_lasting()
        folds = self.folds
        empty = (
            compute(delayed(_empty, folds, name="template")) if is_delayed(folds) else _empty(folds)
        )
        known: Any = self.feature_map, self.kernel, self.columns, empty, self.encoding
        return Template(self.options, *known)

    def known_rows(self) -> RowIndex:
        """Return the index of the rows, or raise ParameterError if there is none."""
        if self.index is None:
            raise ParameterError(
                "these moments do not know their rows; take those of RandomFeatureRidge.moments."
            )
        return self.index

    def merge(self, other: "DataMoments", *, repeated_rows: bool = False) -> "DataMoments":
        """Return the moments of both sets of rows, fold by fold.

        Shifts that differ are reconciled, and so are means of inputs that are not standardised,
        but not those of sums in integers.

        Parameters
        ----------
        other : DataMoments
            Made `like` these, so that the map is the same; or of pairs of waves with the same
            options and seed, where nothing of the map follows from the rows but the means.
        repeated_rows : bool
            Whether rows of equal values in both are different observations, and count twice.
            Moments that do not know their rows merge only so, and both do not know theirs then.

        Raises
        ------
        ParameterError
            If rows that repeat are to be found, but one of the two does not know its rows.
        DataError
            If the two differ in map, deviations, precision, targets or number of folds, or if rows
            are in both.
        InsufficientMemoryError
            If this process cannot hold them.
        """
        merging = extension("growing", "moments_merge")
        merged: DataMoments = merging.merged(self, other, repeated_rows=repeated_rows)
        return merged

    def forget(self, X: Any, y: Any = None, sample_weight: Any = None) -> "DataMoments":
        """Return the moments without some rows, which are read twice.

        Rows that were read in one pass and are forgotten in one leave nothing but rounding in
        double.  Of others that were read in single precision, rounding of that remains: about
        1e-7 of the moments of the rows that are forgotten.

        Rows with values that are not finite are left out if they were when the moments were made.

        Parameters
        ----------
        X : Source, array_like or Dask collection, of shape (n, p), but no path
        y : array_like or Dask collection, of shape (n,) or (n, q), or labels (n,), optional
        sample_weight : array_like or Dask collection of shape (n,), optional
            As they were in.  Targets are needed with arrays.

        Raises
        ------
        DataError
            If a row was never in, or not as often as it is here, or if none would be left.
        """
        removal = extension("growing", "moments_removal")
        left: DataMoments = removal.forgotten(self, X, y, sample_weight)
        return left

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the moments to an HDF5 file, which `streamkern.load_moments` reads.

        Parameters
        ----------
        path : str or Path
        force : bool
            Replace a file that is there.

        Raises
        ------
        OverflowedError
            If the sums are not finite.
        OutputError
            If the file exists and `force` is not given, or cannot be written.
        """
        self.check_whole()
        self.check_lasting()
        write_moments(path, self, force=force)


def load_moments(path: str | Path) -> DataMoments:
    """Read moments that `DataMoments.save` or `streamkern moments` wrote.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    DataMoments

    Raises
    ------
    ModelFileError
        If the file is missing, is not a moments file, is damaged, or has a newer format.
    InsufficientMemoryError
        If this process cannot hold them.
    """
    where = Path(path)
    if where.is_file():
        check_free(where.stat().st_size, f"reading {path}")
    return DataMoments(**read_moments(path, with_folds=True))


def moments_header(path: str | Path) -> DataMoments:
    """Read all of a moments file but its folds and their rows."""
    return DataMoments(**read_moments(path, with_folds=False))


def _solvable(folds: FoldStatistics, fold: int) -> FeatureSums:
    return folds.parts[fold].solvable()


def _with_parts(
    folds: FoldStatistics, numbers: Sequence[int], *parts: FeatureSums
) -> FoldStatistics:
    return FoldStatistics.of(folds.rule, dict(zip(numbers, parts, strict=True)))


def _empty(folds: FoldStatistics) -> FeatureSums:
    return folds.empty.zero()


def checked_moments(value: Any) -> DataMoments:
    """Return moments, or raise ParameterError unless a value is these."""
    if isinstance(value, DataMoments):
        return value
    raise ParameterError(
        f"moments are what an estimator's `moments` or `streamkern.load_moments` returns, not "
        f"{value!r}; give these."
    )
