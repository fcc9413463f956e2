"""Feature selection from G and C alone: forward selection, or the lasso path.

Features are chosen for the ridge objective.  With G + alpha I in the place of G, least squares on
some features is ridge regression on them, and the lasso is the elastic net: it is as if rows
sqrt(alpha) I with targets 0 stood below the others.  So that neither features nor targets count by
their size, G + alpha I is scaled to a unit diagonal, and targets to unit variance.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Self

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.engine.scheduler import compute, compute_all, delayed
from streamkern.errors import ParameterError
from streamkern.errors.checks import check_choice, checked_integer
from streamkern.features.base import NO_CHOICE_BESIDE_TREND
from streamkern.parameters.parameters import AUTO, Parameters
from streamkern.solve import NormalEquations, RidgeSolution, solve_each
from streamkern.solve.cross_validation import HeldOut, squared_errors
from streamkern.solve.penalty_curve import PenaltyCurve
from streamkern.solvers.fold_solution import Solved
from streamkern.solvers.held_out_models import total_and_splits
from streamkern.solvers.penalty_search import Size
from streamkern.statistics import CentredMoments, FeatureSums, Split


def checked_size(n_components: Any, available: int | None = None) -> int:
    """Return K, or raise ParameterError unless it is a whole number from 1 to what there is."""
    sentence = (
        "the features of a sparse model must be a whole number, not {!r}; give how many to keep."
    )
    K = checked_integer(n_components, sentence)
    K = checked_integer(
        K, "a sparse model has at least 1 feature, not {}; give how many to keep.", 1
    )
    if available is not None and available < K:
        raise ParameterError(
            f"a sparse model has no more features than the {available:,} that it is chosen from, "
            f"not {K:,}; keep fewer, or fit more components."
        )
    return K


def check_parameters(parameters: Parameters, available: int | None) -> None:
    """Raise ParameterError unless a sparse model of so many features can be as asked for."""
    K, unknown = parameters.sparse, parameters.n_components == AUTO
    if parameters.trend is not None:
        raise ParameterError(NO_CHOICE_BESIDE_TREND)
    if K != AUTO:
        checked_size(K, None if unknown else available)
        if unknown:
            raise ParameterError(
                f"sparse {K} of n_components 'auto' is not known to be fewer; give the number of "
                f"components, or take sparse 'auto'."
            )
    elif not parameters.penalty.needs_folds:
        raise ParameterError(
            "sparse 'auto' is chosen by cross-validation; take alpha 'cv' or a grid of "
            "penalties, or give the number."
        )


def checked_method(method: Any) -> str:
    check_choice("the method of a sparse model", method, METHODS)
    return str(method)


@dataclass(frozen=True)
class Sparsifier:
    """How the features of a sparse model are chosen, and its coefficients solved for."""

    method: str  # one of `METHODS`
    alpha: float | Floats  # one penalty for all targets, or one for each (q,)
    floor: float  # features are chosen for no penalty below it, where the noise of G decides

    def supports(self, moments: CentredMoments, sizes: Sequence[int]) -> list[Array]:
        """Return the features that targets share, ascending, for every size.

        They are chosen for the smallest penalty where there are several, which is positive unless G
        has full rank.
        """
        alpha, D = max(float(np.min(self.alpha)), self.floor), moments.gram.order
        smaller = [size for size in sizes if size < D]
        found = {D: np.arange(D)}
        if smaller:
            found |= METHODS[self.method](*_scaled(moments, alpha), smaller)
        return [np.sort(found[size]) for size in sizes]

    def solve(
        self, moments: CentredMoments, support: Array
    ) -> tuple[RidgeSolution, NormalEquations]:
        part = moments.subset(support)
        solution = solve_each(part, self.alpha)
        return solution, NormalEquations.of(part, solution)

    def chosen(
        self, moments: CentredMoments, n_components: int
    ) -> tuple[Array, RidgeSolution, NormalEquations]:
        """Return K features, ascending, with the solution on them and its equations."""
        (support,) = self.supports(moments, [n_components])
        return support, *self.solve(moments, support)


def _scaled(moments: CentredMoments, alpha: float) -> tuple[Floats, Floats]:
    gram = moments.gram.dense()
    gram[np.diag_indices(len(gram))] += alpha
    lengths, spreads = np.sqrt(np.diagonal(gram)), np.sqrt(moments.target)
    lengths, spreads = np.where(lengths > 0, lengths, 1.0), np.where(spreads > 0, spreads, 1.0)
    gram /= lengths
    gram /= lengths[:, None]
    return gram, moments.cross / np.outer(lengths, spreads)


def forward_selection(
    gram: Floats, cross: Floats, n_components: int, begun: Sequence[int] | Array = ()
) -> Array:
    """Add the feature that lowers the residual sum of squares most, until there are K.

    The part of feature i that the chosen features do not explain has a squared length d_i and
    products r_i with the targets: G_ii and C_i at first.  Adding it lowers the sum of squares of
    all targets by sum r_i^2 / d_i.  With its row t = G_i / sqrt(d_i), minus the parts of the rows
    before it, the others then have d - t^2 and r - t r_i / sqrt(d_i).  That takes K^2 D / 2
    multiply-adds.  G is positive definite, and `begun` are features that are chosen already.

    Chen, Billings and Luo (1989), "Orthogonal least squares methods and their application to
    non-linear system identification".
    Chen, Chng and Alkadhimi (1996), "Regularized orthogonal least squares algorithm for
    constructing radial basis function networks", with alpha on the diagonal.
    """
    D = len(gram)
    order, rows = np.empty(n_components, dtype=np.int64), np.empty((n_components, D))
    chosen = np.zeros(D, dtype=bool)
    lengths, products = np.diagonal(gram).copy(), cross.copy()
    smallest = np.finfo(float).eps * lengths
    for k in range(n_components):
        if k < len(begun):
            i = begun[k]
        else:
            gains = np.einsum("dq,dq->d", products, products) / lengths
            gains[chosen] = -1.0
            i = int(gains.argmax())
        order[k], chosen[i] = i, True
        length = np.sqrt(lengths[i])
        rows[k] = (gram[i] - rows[:k, i] @ rows[:k]) / length
        products -= np.outer(rows[k], products[i] / length)
        lengths = np.maximum(lengths - rows[k] ** 2, smallest)
    return order


def _nested(gram: Floats, cross: Floats, sizes: Sequence[int]) -> dict[int, Array]:
    order = forward_selection(gram, cross, max(sizes))
    return {size: order[:size] for size in sizes}


def _on_paths(gram: Floats, cross: Floats, sizes: Sequence[int]) -> dict[int, Array]:
    """Follow the paths of all targets in turns, until they have as many features as every size.

    A step brings at most one feature.  Where all paths end early, because the other features
    explain nothing but rounding, forward selection goes on.
    """
    paths = [_lasso_path(gram, column, max(sizes)).T for column in cross.T if column.any()]
    users = np.zeros(len(gram), dtype=np.int64)
    now = [np.zeros(len(gram), dtype=bool) for _ in paths]
    found: dict[int, Array] = {0: np.empty(0, dtype=np.int64)}
    for steps in zip_longest(*paths):
        for target, step in enumerate(steps):
            if step is not None:
                users += step
                users -= now[target]
                now[target] = step
                used = np.flatnonzero(users)
                found.setdefault(len(used), used)
    for size in sizes:
        if size not in found:
            begun = found[max(fewer for fewer in found if fewer < size)]
            found[size] = forward_selection(gram, cross, size, begun)
    return found


def _lasso_path(gram: Floats, column: Floats, n_components: int) -> Array:
    """Return which features the lasso has at every knot of its path until there are K, (D, steps).

    Efron, Hastie, Johnstone and Tibshirani (2004), "Least angle regression".
    Zou and Hastie (2005), "Regularization and variable selection via the elastic net".
    """
    from sklearn.linear_model import lars_path_gram

    column = column / np.abs(column).max()
    # Features leave the path too, so that K of them take more than K steps.
    most = 2 * n_components
    while True:
        _, _, coef = lars_path_gram(column, gram, n_samples=1, method="lasso", max_iter=most)
        used: Array = coef != 0
        if used.sum(axis=0).max() >= n_components or coef.shape[1] <= most:
            return used
        most *= 2


METHODS: dict[str, Callable[[Floats, Floats, Sequence[int]], dict[int, Array]]] = {
    "forward": _nested,
    "lasso": _on_paths,
}


def sparse_sizes(n_components: int) -> list[int]:
    """Return 1, 2, 3, 4, 6, 8, 11, 16 and so on to D, each about sqrt(2) times the last."""
    halvings = np.arange(2 * np.log2(n_components) + 1)
    return np.unique(np.rint(n_components / np.sqrt(2.0) ** halvings)).astype(int).tolist()


def sparse_errors(
    total: FeatureSums, split: Split, sizes: Sequence[int], sparsifier: Sparsifier, intercept: bool
) -> HeldOut:
    """Score sparse models without what is predicted, one for every number of features."""
    training = split.training(total).centred(intercept=intercept)
    chosen = sparsifier.supports(training, sizes)
    held, sse = split.held_out.centred(), np.empty((len(sizes), training.cross.shape[1]))
    for i, support in enumerate(chosen):
        solution, _ = sparsifier.solve(training, support)
        sse[i] = squared_errors(held.subset(support), solution)
    return HeldOut(held.weight, sse)


@dataclass(frozen=True)
class SparsityCurve:
    """The held-out error of sparse models, over their numbers of features."""

    sizes: tuple[int, ...]  # ascending
    curve: PenaltyCurve  # of the sizes, descending: fewer are as a larger penalty

    @classmethod
    def of_folds(cls, sizes: Sequence[int], folds: Sequence[HeldOut], scale: Floats) -> Self:
        descending = [fold._replace(sse=fold.sse[::-1]) for fold in folds]
        return cls(tuple(sizes), PenaltyCurve.of_folds(-np.array(sizes[::-1]), descending, scale))

    @property
    def rmse(self) -> Floats:
        return np.sqrt(self.curve.scores[::-1])

    def choose(self) -> int:
        """Return the index of the fewest features within one standard error of the best."""
        return len(self.sizes) - 1 - int(self.curve.choose(one_standard_error=True)[0])

    def as_dict(self, *, flat: bool) -> dict[str, Any]:
        each = [self.curve.combined(np.array([a])) for a in range(len(self.sizes))][::-1]
        return {
            "n_components": list(self.sizes),
            "cv_rmse": (self.rmse[:, 0] if flat else self.rmse).tolist(),
            "relative_mse": [score for score, _ in each],
            "standard_errors": [error for _, error in each],
        }


def solve_sparse(folds: Any, solved: Solved, parameters: Parameters) -> Solved:
    """Keep the best features of a solution, and solve again on them, at its penalty.

    Where there are folds, the cross-validated error is found for K features; or for 1, 2, 3, 4, 6,
    8, 11 and so on, of which the fewest within one standard error of the best are taken.  If
    none are, the solution stays as it is.
    """
    D, K, intercept = len(solved.solution.coef), parameters.sparse, parameters.fit_intercept
    sizes = sparse_sizes(D) if K == AUTO else [checked_size(K, D)]
    sparsifier = Sparsifier(parameters.sparse_method, solved.solution.alpha, solved.solution.floor)
    total, without = total_and_splits(folds, D)
    curve = None
    if solved.size is not None and solved.size.curve.fold_scores is not None:
        arguments = [size for size in sizes if size < D], sparsifier, intercept
        held_out = [
            delayed(sparse_errors, total, split, *arguments, name=f"sparse-{k}")
            for k, split in without.items()
        ]
        curve = _curve(sizes, compute_all(held_out), solved.size)
    K = sizes[0] if curve is None else sizes[curve.choose()]
    if K < D:
        chosen = delayed(_chosen, total, K, sparsifier, intercept, name="solve-sparse")
        support, solution, equations = compute(chosen)
        solved = replace(solved, solution=solution, equations=equations, support=support)
    return replace(solved, sparsity=curve)


def _curve(sizes: Sequence[int], held_out: Sequence[HeldOut], full: Size) -> SparsityCurve:
    """Return the curve, with the errors that all features make, where they are among the sizes."""
    scores, q = full.curve.fold_scores, full.curve.scores.shape[1]
    if scores is not None and full.n_components in sizes:
        held_out = [
            HeldOut(fold.weight, np.vstack([fold.sse, fold.weight * errors]))
            for fold, errors in zip(held_out, scores[:, full.chosen, np.arange(q)], strict=True)
        ]
    return SparsityCurve.of_folds(sizes, held_out, full.curve.scale)


def _chosen(
    total: FeatureSums, K: int, sparsifier: Sparsifier, intercept: bool
) -> tuple[Array, RidgeSolution, NormalEquations]:
    return sparsifier.chosen(total.centred(intercept=intercept), K)
