"""Random-feature ridge regression on arrays, Dask arrays and files."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from streamkern.errors import ModelFileError, ParameterError, StreamkernWarning
from streamkern.features import FAMILIES, Cosines
from streamkern.features.base import checked_n_components
from streamkern.features.metric import with_metric
from streamkern.kernels import Gaussian, Kernel, kernel_from
from streamkern.models.data_moments import DataMoments, moments_header
from streamkern.models.growing_ridge import GrowingRidge, deciding
from streamkern.models.model_files import read_model
from streamkern.models.moments_fit import fit_moments
from streamkern.models.ridge_options import RidgeOptions
from streamkern.models.ridge_solution import solved_ridge
from streamkern.models.tuned_fit import Choice
from streamkern.parameters.memory_estimate import solve_bytes
from streamkern.parameters.template import Pattern, check_columns
from streamkern.runtime.events import job, tell_of_job
from streamkern.runtime.memory import check_free
from streamkern.runtime.resources import current_resources
from streamkern.sources import as_source
from streamkern.storage import holds_moments
from streamkern.storage.untrusted import WRONG_VALUES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamkern._typing import Array
    from streamkern.models.model_files import ModelFile
    from streamkern.solve.penalty_curve import PenaltyCurve
    from streamkern.sources import Source


_Model = TypeVar("_Model", bound="RidgeModel")


class RidgeModel(GrowingRidge):
    """Kernel ridge regression by random features, without what scikit-learn adds to it.

    Commands take this one: scikit-learn takes longer to import than a small fit takes.  Parameters
    and attributes are those of `RandomFeatureRidge`.
    """

    # Of a fit; a model that was loaded has none.
    penalty_curve_: PenaltyCurve | None
    # How many features of its moments a solution takes, None for all.
    _n_leading: int | None = None
    # Whether rows are dealt to folds even where the penalty is not chosen by them.
    _keeps_folds = False

    def __init__(
        self,
        kernel: Kernel | str = Gaussian("median"),  # noqa: B008  immutable
        *,
        n_components: int | str = 2048,
        alpha: float | str | Sequence[float] = "cv",
        alphas: Sequence[float] | None = None,
        n_folds: int = 5,
        fold_by: str = "auto",
        per_target: bool = False,
        one_standard_error: bool = False,
        sparse: int | str | None = None,
        sparse_method: str = "forward",
        feature_map: str = "orthogonal",
        paired: bool = True,
        metric: str | Array | None = None,
        standardize: bool = True,
        fit_intercept: bool = True,
        precision: str = "single",
        on_bad_rows: str = "error",
        random_state: int = 0,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.alpha = alpha
        self.alphas = alphas
        self.n_folds = n_folds
        self.fold_by = fold_by
        self.per_target = per_target
        self.one_standard_error = one_standard_error
        self.sparse = sparse
        self.sparse_method = sparse_method
        self.feature_map = feature_map
        self.paired = paired
        self.metric = metric
        self.standardize = standardize
        self.fit_intercept = fit_intercept
        self.precision = precision
        self.on_bad_rows = on_bad_rows
        self.random_state = random_state

    @job("fit")
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        like: Any = None,
        checkpoint: str | Path | None = None,
        keep_moments: bool = False,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : Source, array_like, dask.array.Array or dask.dataframe.DataFrame, of shape (n, p)
            A source, such as `open_hdf5` returns, brings its own targets and weights.  Lazy chunks
            of unknown size are computed once more, for their lengths.
        y : array_like or Dask collection of shape (n,) or (n, q)
        sample_weight : array_like or Dask collection of shape (n,), optional
            Numbers of at least 0: a row of weight s counts as s equal rows, and one of weight 0 as
            none, whatever it holds.  In double precision the two fits agree to 1e-9 in
            coefficients, intercept, errors and degrees of freedom, and in the curve of a penalty
            that is chosen by 'gcv' or 'evidence', as far as the condition of the system does not
            magnify their rounding.  Rows are dealt to folds by their places, so
            cross-validation agrees only where folds hold the same rows.  So does the median length
            scale where the equal rows are 1,024 or fewer; else both are of samples.  Landmarks are
            chosen by weight from a sample whose rows are drawn without, so they are near those of
            the equal rows, not the same.
        like : DataMoments, RandomFeatureRidge, or path of either, optional
            Whose map, standardisation and precision are taken, instead of those that the options
            and the rows would give.
        checkpoint : path, optional
            A folder where sums are saved as they are made.  The same fit goes on from there when it
            was stopped; `report_["resumed_shards"]` is what it did not read again.
        keep_moments : bool
            Leave the moments of folds where they are as `moments_`, about 4 D^2 bytes a fold:
            `partial_fit` adds rows to them, and `write_report` makes of them the models that
            predict rows which they have not seen.  For `update` and `forget` begin with
            `partial_fit`, whose moments know their rows, which takes 9 bytes for each.

        Raises
        ------
        ParameterError
            If an option has a value that it cannot have.
        DataError
            If the rows cannot be used.
        CheckpointError
            If the folder is in use, or belongs to a fit that differs.
        InsufficientMemoryError
            If the job cannot fit; before the first read.
        SingularSystemError
            If `alpha` is 0 and the features are not independent.
        """
        asked, pattern = RidgeOptions(self), pattern_of(like)
        options = asked.passes(pattern)
        rows = self._tables(X, y, sample_weight, first=True, fewest=2, like=pattern)
        source = as_source(*rows)
        check_columns(pattern, source)
        options = asked.for_rows(options, source, pattern)
        asked.sparse(options.components_for(source.n_features))
        moments = fit_moments(
            source,
            options,
            like=pattern,
            fixed_alpha=asked.solves_at_once,
            n_left_out=asked.penalty.n_left_out,
            checkpoint=checkpoint,
        )
        return self._solve(moments, source=source, keep_moments=keep_moments)

    @job("moments")
    def moments(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        like: Any = None,
        checkpoint: str | Path | None = None,
    ) -> DataMoments:
        """Read the rows as `fit` does, and return their moments: all that `solve` needs.

        They can be saved, merged with those of other rows, and relieved of rows, and they keep the
        names of columns of a data frame.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        like : DataMoments, RandomFeatureRidge, or path of either, optional
            Whose map, standardisation, precision and number of folds are taken, so that the two
            merge, instead of those that the options and the rows would give.  A fold may then
            have no rows.
        checkpoint : path, optional
            As in `fit`.

        Returns
        -------
        DataMoments

        Raises
        ------
        ParameterError, DataError, InsufficientMemoryError
            As in `fit`.
        """
        asked, pattern = RidgeOptions(self), pattern_of(like)
        source = as_source(*self._tables_of_moments(X, y, sample_weight, like=pattern))
        check_columns(pattern, source)
        options = asked.for_rows(asked.moments(pattern), source, pattern)
        return fit_moments(source, options, like=pattern, indexed=True, checkpoint=checkpoint)

    @job("solve")
    def solve(self, moments: DataMoments, *, keep_moments: bool = False) -> Self:
        """Fit the model to moments, without reading rows.

        The map and what else the moments were made by is theirs, whatever this model's options.

        Parameters
        ----------
        moments : DataMoments
            Of at least `n_components` features, the leading ones of which are taken; or all that
            there are, for the identity map.
        keep_moments : bool
            As in `fit`; rows can then be updated with and forgotten too, if the moments know
            theirs.

        Raises
        ------
        ParameterError
            If there are fewer features, no folds to choose by, or rows to be left out one by one.
        InsufficientMemoryError
            If this process cannot hold the system of equations.
        SingularSystemError
            If `alpha` is 0 and the features are not independent.
        """
        D, size, penalty = moments.feature_map.n_components, None, RidgeOptions(self).penalty
        if self.n_components != "auto" and not moments.options.is_identity:
            size = checked_n_components(self.n_components)
            if D < size <= moments.options.n_components:
                size = D  # rows made fewer landmarks than were asked for
            if size > D:
                raise ParameterError(
                    f"the moments are of {D:,} features, but n_components is {size:,}; ask for no "
                    f"more than there are."
                )
        n_folds = moments.n_folds if penalty.needs_folds or self._keeps_folds else 1
        resources = current_resources()
        if not resources.n_workers:
            check_free(
                solve_bytes(size or D, moments.n_targets, n_folds, resources.n_threads), "solving"
            )
        return self._solve(moments, size, keep_moments=keep_moments)

    @job("tune")
    def tune(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        kernels: Kernel | str | Sequence[Kernel | str] | None = None,
        maps: str | Sequence[str] | None = None,
        budget: float | str | None = None,
        checkpoint: str | Path | None = None,
        keep_moments: bool = False,
    ) -> Self:
        """Choose the length scale, and among kernels and maps, and fit the model with them.

        The choice is made on a spread sample of the rows, by cross-validation at a reduced number
        of features, halving the candidates successively; the rows are read once more than the
        light first pass, as in `fit`.  `kernel_` and `report_["feature_map"]` are what was chosen,
        `report_["tuning"]` what was tried, and `report_["frontier"]` the error of every kernel, map
        and number of features that was tried, against the seconds that it would take on all rows.

        The search leaves out thirds of the sample in turn and has a grid of penalties of its own;
        `alpha` and the folds are for the fit.  To fit other rows alike, with the same kernel, map
        and metric, give `fit` this model as `like`; `kernel_` is of columns that are not constant.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.  Rows of the sample count by their weights.
        kernels : ShiftInvariantKernel, its name, sequence of them, or 'auto', optional
            Each is tried at 13 length scales, from an eighth of its own to eight times it, and then
            near the best of them; by default `kernel` alone.  'auto' is `kernel`, Gaussian, Matern
            5/2, 3/2 and 1/2, and Laplacian; so are maps 'auto' with a kernel left as it is.
        maps : str, sequence of str, or 'auto', optional
            Families of maps, named as `feature_map`; by default that alone.  'auto' is orthogonal
            Fourier features, the kernel at landmarks, and a grid of frequencies for up to three
            inputs, as far as they are for the kernel.
        budget : float or str, optional
            What the search may take.  A number is of passes: of the multiply-adds of a fit to all
            rows at `n_components`, of which a trial takes a known part, so that the choice is the
            same every time.  A text such as '120s', '5m' or '1h' is time on the clock, and the
            choice depends on the machine.  Kernels and maps are 'auto' then, unless they are
            given; the sample, the length scales and the features grow with it.  The passes of the
            fit come on top.
        checkpoint : path, optional
            As in `fit`; the search is made again.
        keep_moments : bool
            As in `fit`.

        Raises
        ------
        ParameterError
            If a kernel has no length scale, if kernels and maps do not go together, if a budget in
            seconds comes with a checkpoint, or for what `fit` raises.
        """
        choice = Choice(
            RidgeOptions(self), kernels=kernels, maps=maps, budget=budget, checkpoint=checkpoint
        )
        source = as_source(*self._tables(X, y, sample_weight, first=True, fewest=2))
        return self._solve(choice.moments(source), source=source, keep_moments=keep_moments)

    def _moments_like(self, X: Any, y: Any, sample_weight: Any, *, like: Any) -> DataMoments:
        """Return moments of rows that know them, of the map of `like` if that is given."""
        asked, pattern = RidgeOptions(self), pattern_of(like)
        options, goes_on = asked.passes(pattern), like is not None and like is self.moments_
        asked.penalty.check_without_rows()
        if goes_on:  # alpha may have changed
            if options.n_folds > like.n_folds == 1:
                raise ParameterError(
                    "cross-validation and calibration need folds, but the rows that are in were "
                    "not dealt to any; take alpha 'gcv', 'evidence' or a number, and of classes "
                    "calibration None, or begin with a clone."
                )
            options = replace(options, n_folds=like.n_folds)
        first = self.moments_ is None
        source = as_source(*self._tables(X, y, sample_weight, first=first, like=pattern))
        check_columns(pattern, source)
        options = asked.for_rows(options, source, pattern)
        return fit_moments(
            source,
            options,
            like=pattern,
            indexed=not goes_on or like.index is not None,
            fixed_alpha=asked.solves_at_once,
            more_to_come=True,
        )

    def _solve_kept(self) -> None:
        """Set the fitted attributes from `moments_`, and leave these as they are."""
        self._solve(self._kept_moments(), self._n_leading, keep_moments=True)

    def _solve(
        self,
        moments: DataMoments,
        size: int | None = None,
        *,
        source: Source | None = None,
        keep_moments: bool = False,
    ) -> Self:
        """Choose what is left to choose, and set the fitted attributes."""
        solved = solved_ridge(moments, RidgeOptions(self), size, source)
        for warning in solved.warnings:
            warnings.warn(warning, StreamkernWarning, stacklevel=3)
        self._made_by, self._n_leading = deciding(self), size
        self.report_, self.equations_ = solved.report, solved.equations
        told = ("seconds", "alpha", "alpha_curve", "cv_rmse", "train_rmse")
        tell_of_job("solved", **{name: self.report_[name] for name in told})
        self.penalty_curve_ = solved.penalty_curve
        self.moments_ = moments if keep_moments else None
        self._take(solved.predictor)
        return self


def load_as(model_class: type[_Model], path: str | Path) -> _Model:
    """Read a model file as a model of this class.

    Raises
    ------
    ModelFileError
        As `streamkern.load` does.
    """
    return restored(model_class, read_model(path), path)


def restored(model_class: type[_Model], file: ModelFile, path: str | Path) -> _Model:
    """Return the model of a file, or raise ModelFileError if that is damaged."""
    try:
        kernel = file.card["option_kernel"]
        options = with_metric(file.card["options"], file.predictor.feature_map)
        model = model_class(kernel_from(kernel["name"], kernel["parameters"]), **options)
        model.report_ = file.card["report"]
        model.equations_, model.penalty_curve_ = file.equations, None
        model._take(file.predictor)
        model._note_inputs(model.feature_map_.n_features, file.card.get("feature_names"))
    except WRONG_VALUES as error:
        raise ModelFileError(f"{path} is a damaged model ({error}); copy it again.") from error
    return model


def pattern_of(like: Any) -> Pattern | None:
    """Return the pattern that moments, a fitted model, or the file of either are to others."""
    if like is None or isinstance(like, Pattern):
        return like
    if isinstance(like, (str, Path)):
        like = moments_header(like) if holds_moments(like) else load_as(RidgeModel, like)
    if isinstance(like, DataMoments):
        return like.pattern()
    if not isinstance(like, RidgeModel) or not hasattr(like, "feature_map_"):
        raise ParameterError(
            f"like must be moments, a fitted model, or the path of either, not {like!r}; give one "
            f"of these."
        )
    D, kernel = like.feature_map_.n_components, like.kernel_
    # Of a search, kernel and map are what was chosen.
    searched = kernel if "tuning" in like.report_ else None
    options = RidgeOptions(like).drawn(like.report_.get("feature_map"), searched)
    paired, name = options.paired, options.feature_map
    if isinstance(getattr(like.feature_map_, "inner", None), Cosines):
        # What was chosen from pairs has no pairs any more, and that of a grid no grid.
        paired, name = False, name if FAMILIES[name].has_phases else "iid"
    precision: Any = like.predictor_.precision
    options = replace(options, n_components=D, paired=paired, feature_map=name, precision=precision)
    names, recipe = like._feature_names(), like._recipe()
    return Pattern.of(options, like.feature_map_, kernel, names=names, recipe=recipe)
