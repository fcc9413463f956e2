"""Products in strips of the triangle, where a worker cannot hold the whole with its partials."""

import naive
import numpy as np
import pytest

import streamkern
from streamkern.errors import InsufficientMemoryError, ParameterError
from streamkern.features import Identity, RandomFourierFeatures
from streamkern.kernels import Gaussian
from streamkern.parameters import planning
from streamkern.parameters.planning import plan_system
from streamkern.passes import fit_context
from streamkern.runtime.resources import Resources
from streamkern.sources import ArraySource
from streamkern.statistics import Moments, joined_moments, moment_strips

D = 2400
# Of many shards sums wait, which are smaller of strips.
MANY, THREE_SHARDS = 600_000, 17_000
TOLERANCE = {
    "single": {"rtol": 1e-5, "atol": 1e-3},
    "double": {"rtol": 1e-12, "atol": 1e-10},
    "int16": {"rtol": 0},
}


def rows(n=700, p=4):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n, p))
    return X, np.sin(X).sum(axis=1) + 0.1 * rng.standard_normal(n)


@pytest.mark.parametrize(
    ("n_strips", "D", "precision"), [(2, 1536, "single"), (3, 1535, "double"), (3, 1535, "int16")]
)
def test_moments_of_strips_joined_are_the_moments_of_the_whole(n_strips, D, precision):
    X, y = rows()
    cut = naive.blocks(X, y[:, None], [300])
    phi = RandomFourierFeatures(Gaussian(2.0), D).draw(4)
    options = {"feature_shift": np.linspace(-0.1, 0.1, D)}
    if precision == "int16":
        options = {"target_unit": np.full(1, 2.0**-20)}
    kind = streamkern.IntegerMoments if precision == "int16" else Moments
    empty = kind(phi, 1, precision=precision, **options)
    whole = naive.accumulated(empty, cut)
    strips = [naive.accumulated(strip, cut) for strip in moment_strips(empty, n_strips)]
    assert 2 <= len(strips) <= n_strips
    joined = joined_moments(strips)
    np.testing.assert_allclose(joined.gram.dense(), whole.gram.dense(), **TOLERANCE[precision])
    np.testing.assert_array_equal(joined.cross, whole.cross)
    np.testing.assert_array_equal(joined.target, whole.target)
    assert joined.n_rows == whole.n_rows
    left, right = joined.merge(whole).centred(), whole.merge(whole).centred()
    np.testing.assert_allclose(left.gram.dense(), right.gram.dense(), **TOLERANCE[precision])


def test_strips_of_different_rows_and_of_maps_without_leading_parts_are_refused():
    X, y = rows()
    one, two = moment_strips(Moments(RandomFourierFeatures(Gaussian(2.0), 1200).draw(4), 1), 2)
    one.update(naive.blocks(X, y[:, None]))
    two.update(naive.blocks(X[:-1], y[:-1, None]))
    with pytest.raises(ParameterError, match="700, 699 rows"):
        joined_moments([one, two])
    empty = Moments(Identity().draw(1024), 1)
    assert len(moment_strips(empty, 1)) == 1
    with pytest.raises(ParameterError, match="identity map has no part"):
        moment_strips(empty, 2)


def plan_of(source, allowed_bytes, **options):
    given = {"fixed_alpha": True, "can_strip": True, "n_workers": 0, "n_threads": 1} | options
    return plan_system(source, D, precision="double", allowed_bytes=allowed_bytes, **given)


def room_for(source, n_strips):
    """The least memory with which a plan needs no more than so many strips."""
    room, plan = 1 << 40, plan_of(source, 1 << 40)
    while plan.n_strips <= n_strips and plan.worker_bytes < room:
        room = plan.worker_bytes
        plan = plan_of(source, room - 1)
    return room


def test_less_memory_takes_more_strips_and_too_little_is_refused():
    source = ArraySource(*rows(MANY))
    rooms = [room_for(source, n) for n in (1, 2, 100)]
    assert rooms[0] > rooms[1] > rooms[2]
    for room in rooms:
        plan_of(source, room).check()
    with pytest.raises(InsufficientMemoryError, match=r"need .* in a worker, but .* may be used"):
        plan_of(source, rooms[2] - 1).check()


@pytest.mark.parametrize("options", [{"n_folds": 5}, {"can_strip": False}, {"indexed": True}])
def test_what_cannot_be_cut_is_refused(options):
    source = ArraySource(*rows(MANY))
    plan = plan_of(source, room_for(source, 2), **options)
    assert plan.n_strips == 1
    with pytest.raises(InsufficientMemoryError):
        plan.check()


def test_a_fit_in_strips_is_the_fit(monkeypatch):
    X, y = rows(THREE_SHARDS)
    options = {"n_components": D, "alpha": 0.1, "precision": "double"}
    model = streamkern.RandomFeatureRidge("gaussian", **options)
    whole = model.fit(X, y).predict(X)
    room, labels, accumulate = room_for(ArraySource(X, y), 100), [], fit_context.accumulate
    n_strips = plan_of(ArraySource(X, y), room).n_strips
    assert n_strips > 1

    def noted(*arguments, label, **options):
        labels.append(label)
        return accumulate(*arguments, label=label, **options)

    monkeypatch.setattr(fit_context, "accumulate", noted)
    monkeypatch.setattr(planning, "current_resources", lambda: Resources(0, 1, room))
    strips = model.fit(X, y)
    n_read = len(labels) - 1
    assert 1 < n_read <= n_strips
    assert labels == ["columns", *(f"moments-{i + 1}-of-{n_read}" for i in range(n_read))]
    np.testing.assert_allclose(strips.predict(X), whole, rtol=1e-9)
    assert strips.report_["rows"] == len(X)
