"""Fits tell scikit-learn's callbacks what they do, as far as it has any."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from streamkern import Gaussian, RandomFeatureClassifier, RandomFeatureRidge
from streamkern.runtime.events import observed

pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from 1.9 on")

X = np.random.default_rng(0).standard_normal((20_000, 2)).astype(np.float32)
Y = X[:, 0].astype(float)


class Recorder:
    """A callback that writes down what it is told."""

    max_propagation_depth = None

    def __init__(self, fails_at=None):
        self.begun, self.ended, self.last = [], [], None
        self.is_torn_down = False
        self.fails_at = fails_at

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):  # noqa: ARG002  scikit-learn's signature
        self.is_torn_down = True

    def on_fit_task_begin(self, estimator, context):  # noqa: ARG002
        self.begun.append((context.task_name, context.max_subtasks))
        if context.task_name == self.fails_at:
            raise RuntimeError("the callback is broken")

    def on_fit_task_end(
        self,
        estimator,  # noqa: ARG002
        context,
        *,
        y=None,
        metadata=None,
        fitted_estimator=None,
    ):
        self.ended.append(context.task_name)
        self.last = (context.task_name, y, metadata, fitted_estimator)


def model(**options):
    return RandomFeatureRidge(Gaussian(1.0), n_components=8, alpha=0.1, **options)


def test_a_fit_is_a_task_with_a_pass_below_it_and_a_shard_below_that():
    told = Recorder()
    fitted = model().set_callbacks(told).fit(X, Y, np.ones(len(X)))
    tasks = dict(told.begun)
    assert list(tasks)[:2] == ["fit", "columns"]
    assert tasks["fit"] is None
    assert tasks["moments"] == Counter(told.ended)["shard"] - tasks["columns"]
    assert sorted(told.ended) == sorted(name for name, _ in told.begun)
    name, y, metadata, ready = told.last
    assert (name, metadata["sample_weight"].sum()) == ("fit", len(X))
    assert y is Y
    assert np.array_equal(ready.predict(X), fitted.predict(X))
    assert told.is_torn_down


def test_a_classifier_tells_of_its_passes_too():
    told = Recorder()
    options = {"n_components": 8, "alpha": 0.1}
    RandomFeatureClassifier(Gaussian(1.0), **options).set_callbacks(told).fit(X, Y > 0)
    assert list(dict(told.begun))[:2] == ["fit", "columns"]
    assert {"moments", "calibration"} < set(told.ended)
    assert told.last[0] == "fit"


def test_callbacks_change_no_bits_and_leave_no_trace():
    plain, told = model().fit(X, Y), model().set_callbacks(Recorder()).fit(X, Y)
    assert np.array_equal(plain.coef_, told.coef_)
    assert not [name for name in vars(told) if "callback_fit" in name]
    assert clone(told)._skl_callbacks == told._skl_callbacks


def test_a_search_is_a_fit_too():
    told = Recorder()
    model().set_callbacks(told).tune(X[:300], Y[:300])
    assert "moments" in told.ended
    assert told.ended[-1] == "fit"


def test_a_pipeline_hands_its_callbacks_on():
    told = Recorder()
    make_pipeline(StandardScaler(), model()).set_callbacks(told).fit(X, Y)
    assert {"columns", "moments", "shard"} <= set(told.ended)


def test_who_observes_hears_as_much_as_without_callbacks():
    heard = []
    with observed(heard.append):
        model().fit(X, Y)
    kinds = Counter(event["kind"] for event in heard)
    heard.clear()
    with observed(heard.append):
        model().set_callbacks(Recorder()).fit(X, Y)
    assert Counter(event["kind"] for event in heard) == kinds


@pytest.mark.parametrize("task", ["fit", "columns", "shard"])
def test_the_error_of_a_callback_is_not_lost(task):
    told = Recorder(fails_at=task)
    with pytest.raises(RuntimeError, match="the callback is broken"):
        model().set_callbacks(told).fit(X, Y)
    assert told.is_torn_down
    assert model().set_callbacks(Recorder()).fit(X, Y).score(X, Y) > 0.5


def test_a_fit_that_fails_tears_callbacks_down():
    told = Recorder()
    with pytest.raises(ValueError, match="every y equals"):
        model().set_callbacks(told).fit(X, np.zeros(len(X)))
    assert told.is_torn_down
    assert told.ended[-1] == "columns"
