"""Random-feature ridge regression on arrays, Dask arrays and files."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from streamkern.checkpointing import checkpointed
from streamkern.datamoments import DataMoments, moments_header
from streamkern.errors import ModelFileError, ParameterError, StreamkernWarning
from streamkern.features import FAMILIES, Cosines
from streamkern.features.base import checked_n_components
from streamkern.fitoptions import FitOptions, check_folds, plan_for
from streamkern.fitting import fit_moments, moments_pass
from streamkern.footprint import solve_bytes
from streamkern.growing import GrowingRidge, deciding
from streamkern.kernels import Gaussian, Kernel, kernel_from, length_scale_of
from streamkern.learning import check_metric_of, in_metric
from streamkern.leaving_out import LeavingOut
from streamkern.memory import check_free
from streamkern.metric import checked_metric, with_metric
from streamkern.observing import job, tell_of_job
from streamkern.pattern import Pattern
from streamkern.plan import large_sample
from streamkern.predictor import Predictor
from streamkern.reporting import as_stored, facts_of, sizes_as_dict
from streamkern.resources import current_resources
from streamkern.solving import (
    PenaltyOptions,
    SparseOptions,
    nested_sizes,
    solve_folds,
    solve_sparse,
)
from streamkern.sources import as_source
from streamkern.sparse import checked_method, checked_size
from streamkern.storage import holds_moments, read_model
from streamkern.survey import survey
from streamkern.tuning import (
    AUTO,
    Budget,
    Spent,
    budgeted_rows,
    kernels_to_try,
    maps_to_try,
    pairs_to_try,
    search,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamkern._typing import Array
    from streamkern.selection import PenaltyCurve
    from streamkern.sources import Source
    from streamkern.storage import ModelFile


_Model = TypeVar("_Model", bound="RidgeModel")

AUTO_COMPONENTS = 4096
_PENALTY = ("alpha", "alphas", "per_target", "one_standard_error")
_SPARSE = ("sparse", "sparse_method")


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
    keeps_folds = False

    def __init__(
        self,
        kernel: Kernel = Gaussian("median"),  # noqa: B008  immutable
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

    def options(self, like: Any = None) -> tuple[FitOptions, PenaltyOptions]:
        """Return the checked options of the passes of a fit, and of the choice of the penalty.

        Parameters
        ----------
        like
            As in `fit`.

        Raises
        ------
        ParameterError
            If an option has a value that it cannot have.
        """
        pattern = pattern_of(like)
        if pattern is None or self.feature_map != AUTO:
            return self._checked(self._pass_options(), pattern)
        searched = self._pass_options(pattern.options.feature_map, pattern.options.kernel)
        return self._checked(searched, pattern)

    def _checked(self, passes: FitOptions, like: Any = None) -> tuple[FitOptions, PenaltyOptions]:
        """Return options that go together: of the passes of a fit, and of the penalty's choice."""
        penalty = self._penalty_options()
        needs_folds = penalty.needs_folds or self.keeps_folds
        if needs_folds and passes.n_folds < 2:
            raise ParameterError("cross-validation needs at least 2 folds, not 1; take 5.")
        if self.n_components == "auto" and not penalty.needs_folds:
            raise ParameterError(
                "n_components 'auto' is chosen by cross-validation; take alpha 'cv' or a grid of "
                "penalties, or give the number."
            )
        if self.n_components == "auto" and not (passes.is_identity or passes.is_nested):
            raise ParameterError(
                f"the map {passes.feature_map!r} has no smaller ones in it to choose from; give "
                f"n_components a number."
            )
        n_folds, pattern = passes.n_folds if needs_folds else 1, pattern_of(like)
        if pattern is not None:
            passes = pattern.applied(passes)
        self._sparse_options(penalty, None if passes.is_identity else passes.n_components)
        return replace(passes, n_folds=n_folds), penalty

    def _pass_options(
        self, feature_map: str | None = None, kernel: Kernel | None = None
    ) -> FitOptions:
        values = self._parameters()
        values["feature_map"] = feature_map or self.feature_map
        values["kernel"] = kernel or self.kernel
        if self.n_components == "auto":
            values["n_components"] = AUTO_COMPONENTS
        for name in (*_PENALTY, *_SPARSE):
            del values[name]
        values["metric"] = checked_metric(self.metric)
        return FitOptions(**values)

    def _for_rows(
        self, options: FitOptions, source: Source, like: Pattern | None = None
    ) -> FitOptions:
        """Return the options with no more components than rows, where their number is chosen."""
        if self.n_components != "auto" or like is not None or options.is_identity:
            return options
        most = max(1 << (source.n_samples.bit_length() - 1), 64)
        return replace(options, n_components=min(options.n_components, most))

    def moments_options(self, like: Any = None) -> FitOptions:
        """Return the checked options of the passes of `moments`.

        Parameters
        ----------
        like
            As in `moments`.
        """
        options, pattern = self._pass_options(), pattern_of(like)
        return options if pattern is None else pattern.applied(options)

    def _penalty_options(self) -> PenaltyOptions:
        return PenaltyOptions(**{name: getattr(self, name) for name in _PENALTY})

    def _sparse_options(
        self, penalty: PenaltyOptions, available: int | None
    ) -> SparseOptions | None:
        """Return the checked options of a sparse model of so many features, None for no such."""
        checked_method(self.sparse_method)
        if self.sparse is None:
            return None
        options = SparseOptions(self.sparse, self.sparse_method)
        if options.is_chosen and not penalty.needs_folds:
            raise ParameterError(
                "sparse 'auto' is chosen by cross-validation; take alpha 'cv' or a grid of "
                "penalties, or give the number."
            )
        if not options.is_chosen:
            if self.n_components == "auto":
                raise ParameterError(
                    f"sparse {self.sparse} of n_components 'auto' is not known to be fewer; give "
                    f"the number of components, or take sparse 'auto'."
                )
            checked_size(self.sparse, available)
        return options

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
        pattern = pattern_of(like)
        options, penalty = self.options(pattern)
        source = as_source(*self._tables(X, y, sample_weight, first=True, fewest=2))
        options = self._for_rows(options, source, pattern)
        self._sparse_options(penalty, options.components_for(source.n_features))
        moments = fit_moments(
            source,
            options,
            like=pattern,
            fixed_alpha=self.solves_at_once(),
            n_left_out=self.n_left_out(),
            checkpoint=checkpoint,
        )
        return self._solve(moments, penalty, source=source, keep_moments=keep_moments)

    def n_left_out(self) -> int:
        """Return how many penalties another pass compares, leaving out every row in turn."""
        return self._penalty_options().n_left_out

    def solves_at_once(self) -> bool:
        """Say whether nothing is left to choose once the moments are there."""
        is_fixed = self._penalty_options().is_fixed
        return is_fixed and self.sparse is None and not self.keeps_folds

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

        They can be saved, merged with those of other rows, and relieved of rows.

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
        pattern = pattern_of(like)
        source = as_source(X, y, sample_weight)
        options = self._for_rows(self.moments_options(pattern), source, pattern)
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
        self.forget_names()
        D, size, penalty = moments.feature_map.n_components, None, self._penalty_options()
        if self.n_components != "auto" and not moments.options.is_identity:
            size = checked_n_components(self.n_components)
            if D < size <= moments.options.n_components:
                size = D  # rows made fewer landmarks than were asked for
            if size > D:
                raise ParameterError(
                    f"the moments are of {D:,} features, but n_components is {size:,}; ask for no "
                    f"more than there are."
                )
        n_folds = moments.n_folds if penalty.needs_folds else 1
        resources = current_resources()
        if not resources.n_workers:
            check_free(
                solve_bytes(size or D, moments.n_targets, n_folds, resources.n_threads), "solving"
            )
        return self._solve(moments, penalty, size, keep_moments=keep_moments)

    def search_options(
        self,
        *,
        kernels: Kernel | Sequence[Kernel] | str | None = None,
        maps: str | Sequence[str] | None = None,
    ) -> FitOptions:
        """Return the checked options of a search, and of the fit after it.

        They have the kernel and map that take most memory, of those that go together.

        Parameters
        ----------
        kernels, maps
            As in `tune`.

        Raises
        ------
        ParameterError
            If an option has a value that it cannot have.
        """
        found, refusals = [], []
        tried = kernels_to_try(kernels, self.kernel) or [self.kernel]
        for kernel, name in product(tried, maps_to_try(maps, self.feature_map)):
            try:
                found.append(self._pass_options(name, kernel))
            except ParameterError as error:
                refusals.append(error)
        if not found:
            raise refusals[0]
        return self._checked(max(found, key=lambda each: each.family.rows_a_feature))[0]

    @job("tune")
    def tune(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        kernels: Kernel | Sequence[Kernel] | str | None = None,
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
        kernels : ShiftInvariantKernel, sequence of them, or 'auto', optional
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
        allowed, penalty = Budget.of(budget), self._penalty_options()
        if allowed is not None:
            kernels = AUTO if kernels is None else kernels
            maps = AUTO if maps is None else maps
            if allowed.in_seconds and checkpoint is not None:
                raise ParameterError(
                    "a search within seconds may choose otherwise when it is made again, so it "
                    "has no checkpoint; give the budget in passes."
                )
        if kernels is None and AUTO in (maps, self.feature_map):
            kernels = AUTO if self.kernel == Gaussian("median") else None  # as good as its kernel
        options = self.search_options(kernels=kernels, maps=maps)
        source = as_source(*self._tables(X, y, sample_weight, first=True, fewest=2))
        tried = kernels_to_try(kernels, self.kernel)
        names = maps_to_try(maps, self.feature_map, source.n_features)
        pairs = pairs_to_try(tried, names, options, source)
        check_metric_of(options, tried, source)
        options = replace(options, kernel=pairs[0][0], feature_map=pairs[0][1])
        options = self._for_rows(options, source)
        check_folds(options, source)
        n_rows = large_sample(source.n_features + source.n_targets)
        if allowed is not None:
            n_rows = budgeted_rows(source, options, len(pairs), allowed)
        # A map may be made from more rows than are searched on, and take more memory than others.
        each = [replace(options, kernel=kernel, feature_map=name) for kernel, name in pairs]
        n_sample = max(n_rows, *(one.sample_rows(source) for one in each))
        heaviest = max(each, key=lambda one: one.family.rows_a_feature)
        plan = plan_for(source, heaviest, n_sample, n_left_out=self.n_left_out())
        searched = [*tried, *names, str(allowed)]
        with checkpointed(checkpoint, source, options, plan, searched=searched) as saved:
            seen = survey(source, options, plan, n_sample, checkpoint=saved)
            contenders, learnt = in_metric(seen, options, pairs)
            spent = Spent() if learnt is None else learnt.spent
            found = search(
                contenders, options, plan=plan, n_rows=n_rows, budget=allowed, spent=spent
            )
            options = replace(options, kernel=found.kernel, feature_map=found.feature_map)
            seen = contenders[found.place].survey
            moments = moments_pass(source, options, plan, seen, checkpoint=saved)
        moments.report["seconds"]["search"] = found.seconds
        moments.report["seconds"]["total"] += found.seconds
        moments.report.update(found.as_dict())
        moments.report["tuning_kernels"] = [
            {"name": kernel.name, "parameters": kernel.parameters()} for kernel in tried
        ]
        moments.report["tuning_maps"] = names
        moments.report["tuning_budget"] = None if allowed is None else str(allowed)
        if learnt is not None:
            moments = learnt.reported(moments, found.place)
        return self._solve(moments, penalty, source=source, keep_moments=keep_moments)

    def moments_like(self, X: Any, y: Any, sample_weight: Any, *, like: Any) -> DataMoments:
        """Return moments of rows that know them, of the map of `like` if that is given."""
        pattern, goes_on = pattern_of(like), like is not None and like is self.moments_
        options, penalty = self.options(pattern)
        penalty.check_without_rows()
        if goes_on:  # alpha may have changed
            if options.n_folds > like.n_folds == 1:
                raise ParameterError(
                    "cross-validation and calibration need folds, but the rows that are in were "
                    "not dealt to any; take alpha 'gcv', 'evidence' or a number, and of classes "
                    "calibration None, or begin with a clone."
                )
            options = replace(options, n_folds=like.n_folds)
        first = self.moments_ is None
        source = as_source(*self._tables(X, y, sample_weight, first=first))
        options = self._for_rows(options, source, pattern)
        return fit_moments(
            source,
            options,
            like=pattern,
            indexed=not goes_on or like.index is not None,
            fixed_alpha=self.solves_at_once(),
            more_to_come=True,
        )

    def _solve_kept(self) -> None:
        """Set the fitted attributes from `moments_`, and leave these as they are."""
        moments, penalty = self.kept_moments(), self._penalty_options()
        self._solve(moments, penalty, self._n_leading, keep_moments=True)

    def _solve(
        self,
        moments: DataMoments,
        penalty: PenaltyOptions,
        size: int | None = None,
        *,
        source: Source | None = None,
        keep_moments: bool = False,
    ) -> Self:
        """Choose what is left to choose, and set the fitted attributes."""
        begun, given = time.perf_counter(), moments
        self._made_by, self._n_leading = deciding(self), size
        moments = moments.solvable()
        D = moments.feature_map.n_components
        automatic = self.n_components == "auto" and not moments.options.is_identity
        sizes = nested_sizes(D, moments.feature_map.nesting) if automatic else [size or D]
        sparse = self._sparse_options(penalty, sizes[-1])
        intercept = self.fit_intercept
        leaving = None if source is None else LeavingOut(source, moments)
        solved = solve_folds(
            moments.folds, penalty, intercept=intercept, sizes=sizes, leave_one_out=leaving
        )
        feature_map = moments.feature_map
        size = len(solved.solution.coef)
        if size < D:
            feature_map = feature_map.first(size)
        if sparse is not None:
            solved = solve_sparse(moments.folds, solved, sparse, intercept=intercept)
            if solved.support is not None:
                feature_map = feature_map.subset(solved.support)
        solution, report = solved.solution, moments.report
        notes = [solution.note, solved.ordered_rows(report["fold_by"] or "rows")]
        for note in filter(None, notes):
            warnings.warn(note, StreamkernWarning, stacklevel=3)
        # Too common for warnings.
        notes += [solved.at_the_edge(report["precision"]), report.get("tuning_note", "")]
        seconds, passed = dict(report["seconds"]), leaving and leaving.passed
        spent = time.perf_counter() - begun
        seconds["total"] += spent
        if passed:
            seconds["leave-one-out"] = passed.seconds
            peak = max(report["peak_worker_bytes"], passed.peak_worker_bytes)
            report = report | {"peak_worker_bytes": peak}
        seconds["solve"] = spent - seconds.get("leave-one-out", 0.0)
        flat, parameters = moments.flat, moments.kernel.parameters()
        curve = solved.sparsity if sparse is not None and sparse.is_chosen else None
        self.report_ = report | {
            "seconds": seconds,
            "kernel": moments.kernel.name,
            "kernel_parameters": parameters,
            "length_scale": length_scale_of(moments.kernel),
            "alpha_curve": solved.size and solved.size.curve.as_dict(),
            "components_curve": sizes_as_dict(solved.sizes, flat) or None,
            "cv_rmse": None if solved.cv_rmse is None else as_stored(solved.cv_rmse, flat),
            "sparse_of": None if sparse is None else size,
            "sparse_method": None if sparse is None else sparse.method,
            "sparse_curve": None if curve is None else curve.as_dict(flat=flat),
            **facts_of(solution, solved.equations, flat),
            "note": " ".join(filter(None, notes)),
        }
        told = ("alpha", "alpha_curve", "cv_rmse", "train_rmse")
        tell_of_job("solved", seconds=seconds, **{name: self.report_[name] for name in told})
        self.equations_ = solved.equations
        self.penalty_curve_ = None if solved.size is None else solved.size.curve
        self.moments_ = given if keep_moments else None
        self.take(
            Predictor(
                feature_map,
                solution.coef,
                solution.intercept,
                precision=report["precision"],
                flat=flat,
            )
        )
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
        model.take(file.predictor)
        model.name_features(file.card.get("feature_names"))
    except (KeyError, TypeError, ValueError) as error:
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
    options = like._pass_options(like.report_.get("feature_map"), searched)  # noqa: SLF001  its own
    paired, name = options.paired, options.feature_map
    if isinstance(getattr(like.feature_map_, "inner", None), Cosines):
        # What was chosen from pairs has no pairs any more, and that of a grid no grid.
        paired, name = False, name if FAMILIES[name].has_phases else "iid"
    precision: Any = like.predictor_.precision
    options = replace(options, n_components=D, paired=paired, feature_map=name, precision=precision)
    return Pattern.of(options, like.feature_map_, kernel)
