"""Benchmark of random features against exact kernel ridge regression on the same rows."""

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import replace
from itertools import chain, count
from typing import Any

import numpy as np

from streamkern.errors import DataError, ParameterError, warn
from streamkern.errors.checks import check_choice, checked_integer
from streamkern.estimators.exact_kernel_ridge import ExactKernelRidge, check_memory
from streamkern.estimators.random_feature_ridge import RandomFeatureRidge
from streamkern.features import FAMILIES
from streamkern.kernels import Kernel, Linear, ShiftInvariantKernel, length_scale_of
from streamkern.parameters.parameters import Parameters, first_kernel_of
from streamkern.parameters.penalty_options import PenaltyOptions
from streamkern.parameters.plan import plan_here
from streamkern.report.comparison_trials import (
    Comparison,
    Run,
    Split,
    Trial,
    check_split,
    rmse_of,
    run_of,
    sampled_split,
)
from streamkern.runtime.events import nobody, observed, passing, tell
from streamkern.runtime.threads import blas_threads
from streamkern.solve.solution import are_below
from streamkern.sources import ArraySource, Source

COMPONENTS = (64, 128, 256, 512, 1024, 2048)
# What a comparison calls a map, and the options of a model that draw it.
COMPARED_MAPS = {
    name + form: {"feature_map": name, "paired": not form}
    for name, family in FAMILIES.items()
    if name != "identity"
    for form in ("", *(["-phase"] if family.has_phases else []))
}


def compare(
    source: Source,
    model: RandomFeatureRidge,
    *,
    n_components: Sequence[int] = COMPONENTS,
    maps: Sequence[str] = ("orthogonal", "iid"),
    n_seeds: int = 5,
    n_train: int = 4000,
    test: Source | None = None,
) -> Comparison:
    """Fit exact kernel ridge regression, linear ridge and random features to the same rows.

    Where the model chooses its alpha, so does every model here, from these rows alone: the exact
    one by leave-one-out, the others by the model's criterion.  Rows and folds are the same for all;
    only the map is drawn again for every seed.  While models are fitted, BLAS has one thread.

    Parameters
    ----------
    source : Source
        A uniform sample of its rows is used; they count by their weights, in fits and in errors.
    model : RandomFeatureRidge
        The options of all models, except for map, form, number of components, and `fold_by`: folds
        are blocks of the sampled rows, which are in random order.
    n_components : sequence of int
    maps : sequence of str
        As the option `feature_map` of a model; with '-phase' at the end, cosines with phases
        instead of pairs.
    n_seeds : int
        How often every map is drawn, with the seed of the model and those that follow it.
    n_train : int
        Rows to fit, at most; without `test`, at most 4/5 of the rows.
    test : Source, optional
        Rows to test on; otherwise sampled from `source`.

    Returns
    -------
    Comparison

    Raises
    ------
    ParameterError
        If there is nothing to compare, or an option has a value that it cannot have.
    InsufficientMemoryError
        If some model does not fit, before the first is fitted.
    DataError
        If there are fewer than ten rows, or rows that are not finite.
    """
    penalty = checked_comparison(model, n_components, maps, n_seeds)
    if not source.n_targets:
        raise DataError(
            "a comparison needs targets that are numbers, but the source has none; name a dataset "
            "of them with y."
        )
    exact = ExactKernelRidge(
        alpha=penalty.grid or ("loo" if isinstance(penalty.alpha, str) else penalty.alpha),
        standardize=False,  # the rows are, for all models
        fit_intercept=model.fit_intercept,
        leave_one_out=True,
    )
    fewest = model.n_folds if penalty.needs_folds else 2
    check_memory(check_split(source, test, n_train, fewest=fewest), exact.alpha)
    rows, kernel = _standardized(source, test, n_train, model)
    options = model.get_params(deep=False) | {"kernel": kernel, "metric": None}
    options |= {"standardize": False, "scale": "standard", "fold_by": "blocks"}
    drawn = {
        (name, D): options | COMPARED_MAPS[name] | {"n_components": D}
        for name in maps
        for D in sorted(n_components)
    }
    largest = Parameters(**drawn[maps[0], max(n_components)])
    passes = largest.passes()
    plan_here(ArraySource(rows.X, rows.y), passes, **largest.solution_by_passes(passes)).accepted()
    n, p = rows.X.shape
    linear = RandomFeatureRidge(**options | {"kernel": Linear(), "paired": True, "n_components": p})
    runs: dict[tuple[str, int], list[Run]] = {key: [] for key in drawn}
    with _single_pass((2 + len(drawn) * n_seeds) * n) as fitted, blas_threads(1):
        exact_run = run_of(exact.set_params(kernel=kernel), rows)
        linear_run = run_of(linear, rows)
        fitted(2 * n)
        for seed in range(model.random_state, model.random_state + n_seeds):
            for key, found in runs.items():
                sized = RandomFeatureRidge(**drawn[key] | {"random_state": seed})
                found.append(run_of(sized, rows, seed, kernel))
                fitted(n)
    _warn_of_rounding(list(chain.from_iterable(runs.values())))
    reference = exact_run.test_rmse
    mean = np.average(rows.y_test, axis=0, weights=rows.test_weights)
    return Comparison(
        trials=(
            Trial.of("exact", [exact_run], reference),
            Trial.of("linear", [linear_run], reference, n_components=p),
            *(
                Trial.of("random features", found, reference, n_components=D, map_name=name)
                for (name, D), found in runs.items()
            ),
        ),
        n_train=n,
        n_test=len(rows.X_test),
        kernel={"name": kernel.name, **kernel.parameters()}
        | {"length_scale": length_scale_of(kernel)},
        alpha=penalty.alpha,
        target_deviation=rmse_of(rows.y_test - mean, rows.test_weights),
    )


@contextmanager
def _single_pass(n_rows: int) -> Iterator[Callable[[int], None]]:
    """Report all models as one pass, without the passes inside; yield what to call for each."""
    number, shards, listening = uuid.uuid4().hex, count(), copy_context()

    def fitted(n: int) -> None:
        facts: Any = {"pass": number, "shard": next(shards), "rows": n, "worker": ""}
        listening.run(tell, "shard done", **facts)

    with passing(number, "models", rows=n_rows), observed(nobody):
        yield fitted


def checked_comparison(
    model: RandomFeatureRidge, n_components: Sequence[int], maps: Sequence[str], n_seeds: Any
) -> PenaltyOptions:
    """Return how alpha is chosen, or raise ParameterError; parameters are those of `compare`."""
    if not isinstance(model, RandomFeatureRidge):
        raise ParameterError(
            f"a comparison is of a RandomFeatureRidge, not of {type(model).__name__}; compare the "
            f"regression on labels that are numbers, such as 1 and -1."
        )
    kernel = first_kernel_of(model.kernel)
    if not isinstance(kernel, ShiftInvariantKernel) or model.feature_map == "identity":
        name = kernel.name if model.feature_map != "identity" else "linear"
        raise ParameterError(f"the {name} kernel has no random features; compare another kernel.")
    if model.per_target or model.one_standard_error:
        raise ParameterError(
            "a comparison takes the one alpha of least error for all targets; leave per_target and "
            "one_standard_error out."
        )
    sentence = (
        "n_seeds must be a whole number of at least 1, not {!r}; give how often to draw every map."
    )
    checked_integer(n_seeds, sentence, 1)
    for what, values in (("n_components", list(n_components)), ("maps", list(maps))):
        if not values:
            raise ParameterError(f"{what} must name at least one; name some.")
        if len(set(values)) < len(values):
            raise ParameterError(f"{what} must name each once, not {values}; leave the others out.")
    for name in maps:
        check_choice("maps", name, COMPARED_MAPS)
        for D in n_components:
            options = model.get_params(deep=False) | COMPARED_MAPS[name] | {"n_components": D}
            parameters = Parameters(**options)
            parameters.passes()
    return parameters.penalty


def _standardized(
    source: Source, test: Source | None, n_train: int, model: RandomFeatureRidge
) -> tuple[Split, Kernel]:
    """Return rows in the units that all models share, and the kernel with its length scale."""
    skip = model.on_bad_rows == "skip"
    raw = sampled_split(source, test, n_train, random_state=model.random_state, skip_bad_rows=skip)
    given: dict[str, Any] = {"n_components": 2, "alpha": 1.0, "alphas": None}
    given["kernel"] = first_kernel_of(model.kernel)
    smallest = RandomFeatureRidge(**model.get_params(deep=False) | given)
    smallest.fit(raw.X, raw.y, raw.weights)
    standardizer = smallest.feature_map_.standardizer
    rows = replace(raw, X=standardizer(raw.X), X_test=standardizer(raw.X_test))
    return rows, smallest.kernel_


def _warn_of_rounding(runs: Sequence[Run]) -> None:
    lost = [run.precision_floor for run in runs if are_below(run.precision_floor or 0.0, run.alpha)]
    if lost:
        warn(
            f"{len(lost)} of {len(runs)} models with random features have an alpha below the "
            f"precision floor of their sums, up to {max(filter(None, lost)):.3g}, and leave out "
            f"what lies below it; a larger alpha or double precision keeps it."
        )
