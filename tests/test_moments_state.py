"""Moments in any order: read, merged, forgotten, grown, saved, stopped and resumed, and solved.

Whatever was done before, a solution is that of the dense formulas on the rows that should be in.
"""

import math
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import dask
import dask.array as da
import naive
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    multiple,
    rule,
    run_state_machine_as_test,
)
from rows_read import chunked
from scipy import sparse

import streamkern
from streamkern import Gaussian, RandomFeatureRidge
from streamkern.errors import DataError
from streamkern.features import LEVELS, bounds
from streamkern.models.data_moments import DataMoments
from streamkern.parameters import chunking
from streamkern.passes import fold_rules
from streamkern.sources.shard_reader import HDF5Reader

N, D, FOLDS = 150, 12, 3
ALPHAS = [0.1, 3.0]
# In units of the deviation of the targets: what is lost to sums in single, and to rounded features
# that one level more or less is allowed for.
TOLERANCE = {"double": 1e-8, "single": 2e-4, "int16": 2e-3, "int8": 5e-2}
rng = np.random.default_rng(0)
# Numbers of few bits: the same in single precision, and so the same rows.
X = rng.integers(-128, 128, (N, 2)) / 64
Y = np.column_stack([np.sin(X[:, 0]) + X[:, 1] / 2, 40 + X[:, 0] * X[:, 1]])
Y = np.rint(64 * (Y + 0.3 * rng.standard_normal(Y.shape))) / 64
WEIGHTS = rng.choice([0.0, 0.5, 1.0, 3.0], N, p=[0.1, 0.3, 0.3, 0.3])

some_rows = st.lists(st.integers(0, N - 1), min_size=1, max_size=40, unique=True)
many_rows = st.lists(st.integers(0, N - 1), min_size=40, max_size=40, unique=True)
# Sums of a first pass are saved from its fifth block on, those of the second from the twelfth.
stops = st.sampled_from([12, 14, 7])
places = st.lists(st.integers(0, 39), min_size=1, max_size=20)  # among the rows that are in
forms = st.sampled_from(["array", "float32", "sparse", "dask", "hdf5"])


class Held(NamedTuple):
    """Moments, and the rows that should be in them, each with its fold where that is known."""

    moments: DataMoments
    rows: tuple[tuple[int, int | None], ...]


class Stopped(KeyboardInterrupt):
    pass


class MomentsMachine(RuleBasedStateMachine):
    held = Bundle("held")
    resumed = 0  # shards whose sums were found, of all runs

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.files, self.left = 0, math.inf
        usual = HDF5Reader.blocks

        def blocks(reader, n_rows):
            self.left -= 1
            if self.left < 0:
                raise Stopped
            yield from usual(reader, n_rows)

        self.patches = [
            patch.object(HDF5Reader, "blocks", blocks),
            patch.multiple(chunking, SHARD_ROWS=(10, 10), _BLOCK_ROWS=(5, 5)),
            patch.object(chunking, "_COLUMN_BLOCK_ROWS", 5),
            patch.object(fold_rules, "_FEW", 0),  # or folds of few rows follow from what they hold
            dask.config.set(scheduler="synchronous"),
        ]
        for each in self.patches:
            each.__enter__()

    def teardown(self):
        for each in reversed(self.patches):
            each.__exit__(None, None, None)
        self.folder.cleanup()

    @initialize(
        target=held,
        precision=st.sampled_from(list(TOLERANCE)),
        q=st.sampled_from([None, 2]),
        weighted=st.booleans(),
        standardize=st.booleans(),
        fold_by=st.sampled_from(["rows", "blocks"]),
        feature_map=st.sampled_from(["orthogonal", "nystroem", "identity"]),
    )
    def begin(self, precision, q, weighted, standardize, fold_by, feature_map):  # noqa: PLR0917
        if precision in LEVELS:
            feature_map = "orthogonal"
        self.precision, self.fold_by = precision, fold_by
        self.y = Y[:, 0] if q is None else Y
        self.weights = WEIGHTS if weighted else np.ones(N)
        self.weighted = weighted
        kernel = "linear" if feature_map == "identity" else Gaussian(1.5)
        self.options = {
            "kernel": kernel, "precision": precision, "standardize": standardize,
            "fold_by": fold_by, "n_folds": FOLDS, "feature_map": feature_map, "solver": "direct",
            "n_components": D,
        }  # fmt: skip
        first = list(range(40))  # of two inputs that differ
        self.base = self.model().moments(*self.given(first, "array"))
        return Held(self.base, self.dealt(first))

    # What rows are, and what they should make.

    def model(self, **options):
        return RandomFeatureRidge(**(self.options | {"alpha": 1.0} | options))

    def given(self, rows, form):
        """Rows, targets and weights in a form."""
        x, y = X[rows], self.y[rows]
        s = self.weights[rows] if self.weighted else None
        if form == "float32":
            x, y = x.astype(np.float32), y.astype(np.float32)
        elif form == "sparse":
            x = sparse.csr_array(x)
        elif form == "dask":
            x, y = da.from_array(x, chunks=(7, -1)), da.from_array(y, chunks=7)
        elif form == "hdf5":
            return (self.source(x, y, s),)
        return (x, y) if s is None else (x, y, s)

    def source(self, x, y, s):
        self.files += 1
        named = {} if s is None else {"s": s}
        path = chunked(Path(self.folder.name) / f"{self.files}.h5", 5, X=x, y=y, **named)
        return streamkern.open_hdf5(path, weights=None if s is None else "s")

    def counting(self, rows):
        return [row for row in rows if self.weights[row] > 0]

    def dealt(self, rows):
        """The rows that count, with their folds in one reading."""
        folds = [
            naive.fold_of_row(place, FOLDS, 0)
            if self.fold_by == "rows"
            else naive.fold_of_block(place, len(rows), FOLDS)
            for place in range(len(rows))
        ]
        return tuple(
            (row, fold) for row, fold in zip(rows, folds, strict=True) if self.weights[row] > 0
        )

    def rows_at(self, held, places):
        return list(dict.fromkeys(held.rows[place % len(held.rows)][0] for place in places))

    def kept(self, moments, rows):
        """Moments that were made, once their solution is seen to be that of the rows."""
        self.check(self.model().solve(moments), rows, intercept=True)
        return Held(moments, rows)

    def without(self, held, rows):
        """The rows that are left: folds are unknown where one of equal rows went."""
        gone, times = set(rows), Counter(row for row, _ in held)
        left = [(row, fold) for row, fold in held if row not in gone]
        for row in gone:
            left += [(row, None)] * (times[row] - 1)
        return tuple(left)

    def may_go(self, gone, left):
        """Whether enough rows stay: of rounded ones, targets that vary; in single, two rows."""
        fewest = {"double": 1, "single": 2}.get(self.precision, 4)
        return bool(gone) and len({row for row, _ in left}) >= fewest

    def read(self, rows, form, **options):
        return self.model().moments(*self.given(rows, form), like=self.base, **options)

    # Reading.

    @rule(target=held, rows=some_rows, form=forms)
    def read_rows(self, rows, form):
        if not self.counting(rows):
            with pytest.raises(DataError):
                self.read(rows, form)
            return multiple()
        return self.kept(self.read(rows, form), self.dealt(rows))

    @rule(target=held, rows=many_rows, after=stops)
    def read_rows_in_two_goes(self, rows, after):
        (source,) = self.given(rows, "hdf5")
        folder = Path(self.folder.name) / f"saved-{self.files}"
        self.left = after
        with pytest.raises(Stopped):
            self.model().moments(source, like=self.base, checkpoint=folder)
        self.left = math.inf
        moments = self.model().moments(source, like=self.base, checkpoint=folder)
        MomentsMachine.resumed += moments.report["resumed_shards"]
        return self.kept(moments, self.dealt(rows))

    # What becomes of moments.

    @rule(target=held, one=held, other=held, repeated=st.booleans())
    def merge(self, one, other, repeated):
        shared = {row for row, _ in one.rows} & {row for row, _ in other.rows}
        if shared and not repeated:
            with pytest.raises(DataError, match="are in already"):
                one.moments.merge(other.moments)
            return multiple()
        merged = one.moments.merge(other.moments, repeated_rows=repeated)
        return self.kept(merged, one.rows + other.rows)

    @rule(target=held, one=held, chosen=places, form=forms)
    def forget(self, one, chosen, form):
        gone = self.rows_at(one, chosen)
        left = self.without(one.rows, gone)
        if not self.may_go(gone, left):
            return multiple()
        return self.kept(one.moments.forget(*self.given(gone, form)), left)

    @rule(one=held, rows=some_rows)
    def forget_rows_that_were_never_in(self, one, rows):
        there = {row for row, _ in one.rows}
        if any(row not in there for row in self.counting(rows)):
            with pytest.raises(DataError, match="never in"):
                one.moments.forget(*self.given(rows, "array"))

    @rule(target=held, one=held)
    def save_and_load(self, one):
        path = Path(self.folder.name) / "moments.h5"
        one.moments.save(path, force=True)
        return self.kept(streamkern.load_moments(path), one.rows)

    @rule(target=held, one=held, rows=some_rows, form=forms, repeated=st.booleans())
    def grow(self, one, rows, form, repeated):
        model = self.model().solve(one.moments, keep_moments=True)
        if not self.counting(rows):
            return multiple()
        if repeated:
            model.partial_fit(*self.given(rows, form))
        elif {row for row, _ in one.rows} & set(self.counting(rows)):
            with pytest.raises(DataError, match="are in already"):
                model.update(*self.given(rows, form))
            return multiple()
        else:
            model.update(*self.given(rows, form))
        grown = one.rows + self.dealt(rows)
        self.check(model, grown, intercept=True)
        return Held(model.moments_, grown)

    @rule(target=held, one=held, chosen=places, form=forms)
    def shrink(self, one, chosen, form):
        gone = self.rows_at(one, chosen)
        left = self.without(one.rows, gone)
        if not self.may_go(gone, left):
            return multiple()
        model = self.model().solve(one.moments, keep_moments=True)
        model.forget(*self.given(gone, form))
        self.check(model, left, intercept=True)
        return Held(model.moments_, left)

    # What they say.

    @rule(
        one=held,
        alpha=st.sampled_from([0.1, 10.0, ALPHAS, "cv", "gcv", "evidence"]),
        fit_intercept=st.booleans(),
        n_components=st.sampled_from([D, D - 4]),
        n_sparse=st.sampled_from([None, None, 5]),
    )
    def solve(self, one, alpha, fit_intercept, n_components, n_sparse):
        if n_sparse and self.options["feature_map"] == "identity":
            n_sparse = 1  # of the two that there are
        options = {"alpha": alpha, "fit_intercept": fit_intercept, "sparse": n_sparse}
        if isinstance(alpha, str):
            options["alphas"] = ALPHAS
        if self.options["feature_map"] == "orthogonal":
            options["n_components"] = n_components
        choosing = not isinstance(alpha, float)
        folds = {fold for _, fold in one.rows}
        total = sum(self.weights[row] for row, _ in one.rows)
        if choosing and (None in folds or len(folds) < 2 or total < 5):
            return
        model = self.model(**options).solve(one.moments)
        self.check(model, one.rows, intercept=fit_intercept)
        if alpha in (ALPHAS, "cv") and self.y.ndim == 1 and n_sparse is None:
            self.check_curve(model, one.rows, intercept=fit_intercept)

    @rule(rows=some_rows, form=forms)
    def fit(self, rows, form):
        if self.counting(rows):
            rows = rows if len(self.counting(rows)) > 1 else [*rows, *range(40)]
            rows = list(dict.fromkeys(rows))
            model = self.model().fit(*self.given(rows, form), like=self.base)
            self.check(model, self.dealt(rows), intercept=True)

    # Against the formulas.

    def features(self, model):
        """The features of all rows, exact and as they were summed."""
        Phi = model.transform(X)
        if self.precision not in LEVELS:
            return Phi, Phi
        unit = model.feature_map_.scale * bounds(model.feature_map_)
        unit = unit / LEVELS[self.precision]
        return Phi, np.rint(Phi / unit) * unit

    def check(self, model, held, *, intercept):
        rows = [row for row, _ in held]
        assert model.report_["rows"] == len(rows)
        Phi, summed = self.features(model)
        y, s = self.y.reshape(N, -1)[rows], self.weights[rows]
        w, mu = naive.weighted_ridge(summed[rows], y, s, model.alpha_, intercept=intercept)
        expected = (Phi @ w + mu).reshape(N, *self.y.shape[1:])
        apart = np.abs(model.predict(X) - expected) / np.abs(self.y).max(axis=0)
        assert apart.max() <= TOLERANCE[self.precision], f"apart by {apart.max():.3g}"

    def check_curve(self, model, held, *, intercept):
        rows, folds = np.array(held).T
        summed = self.features(model)[1][rows]
        y, s = self.y[rows, None], self.weights[rows]
        for alpha, found in zip(ALPHAS, model.report_["alpha_curve"]["values"], strict=True):
            errors = [
                naive.error_without(summed, y, s, alpha, folds == fold, intercept=intercept)
                for fold in set(folds)
            ]
            expected = np.sqrt(np.sum(errors) / s.sum())
            assert abs(found - expected) <= TOLERANCE[self.precision] * np.abs(y).max()


usual = settings(
    database=None,
    phases=[Phase.generate],  # to shrink what fails takes longer than a test may
    suppress_health_check=list(HealthCheck),
)


# Of a row or two nothing is left over.
@pytest.mark.filterwarnings("ignore:residuals are smaller than the rounding")
@pytest.mark.parametrize(
    ("n_examples", "n_steps"), [(12, 12), pytest.param(30, 40, marks=pytest.mark.slow)]
)
def test_any_order_leaves_the_sums_of_the_rows_that_are_in(n_examples, n_steps):
    how = settings(usual, max_examples=n_examples, stateful_step_count=n_steps)
    MomentsMachine.resumed = 0
    run_state_machine_as_test(MomentsMachine, settings=how)
    assert MomentsMachine.resumed, "no sums were found in a checkpoint, so this is of no others"
