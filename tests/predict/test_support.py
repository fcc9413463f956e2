"""Support: against the formula, by the rows it marks, and where models keep it."""

from pathlib import Path

import dask.array as da
import h5py
import numpy as np
import pytest
from commandline import invoke, streamkern, write
from real import load as data
from real import needs_data

from streamkern import Gaussian, Laplacian, RandomFeatureClassifier, RandomFeatureRidge, Sum, load
from streamkern.errors import ModelFileError

SUM = Sum(kernels=(Gaussian(1.0), Gaussian(3.0)), weights=(1.0, 1.0), columns=((0, 1, 2),) * 2)


def drawn(n=600, p=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    return X, np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(n)


def fitted(X, y, **options):
    options = {"kernel": "gaussian", "n_components": 64, "alpha": 1.0} | options
    return RandomFeatureRidge(**options).fit(X, y)


def scores(kernel, own, others):
    """The distance to the nearest of some rows, and how far inputs lie beyond their ends."""
    order = 1 if isinstance(kernel, Laplacian) else 2
    scale = 1.0 if kernel is SUM else kernel.length_scale
    gaps = np.linalg.norm(own - others, order, axis=1) / scale
    ends = others.min(axis=0) - own, own - others.max(axis=0)
    return gaps.min(), max(0.0, *np.ravel(ends))


@pytest.mark.parametrize("kernel", [Laplacian(3.0), Gaussian(1.0), SUM])
def test_support_is_the_share_of_rows_that_lie_as_far_from_the_others(kernel):
    (X, y), (new, _) = drawn(150), drawn(40, seed=1)
    new[::4] *= 2.0
    model = fitted(X, y, kernel=kernel)
    z, u = ((each - X.mean(axis=0)) / X.std(axis=0) for each in (X, new))
    own = np.array([scores(kernel, z[i], np.delete(z, i, axis=0)) for i in range(len(z))])
    unit = np.quantile(own[:, 0], 0.99)
    own_scores, expected = own[:, 0] / unit + own[:, 1], []
    for row in u:
        gap, e = scores(kernel, row, z)
        share = (1 + np.sum(own_scores >= gap / unit + e)) / (1 + len(z))
        is_near = kernel is not SUM and kernel.profile(np.array([gap]))[0] >= 0.95 and e <= 0.1
        expected.append(1.0 if is_near else share)
    np.testing.assert_allclose(model.support(new), expected, atol=1.5 / 151)
    assert (np.abs(model.support(new) - expected) < 1e-12).mean() > 0.9


def test_of_rows_like_those_of_the_fit_about_one_in_a_hundred_is_outside():
    for p in (1, 3, 20, 90):
        X, y = drawn(6000, p)
        outside = (fitted(X[:4000], y[:4000]).support(X[4000:]) < 0.01).mean()
        assert 0.0 <= outside < 0.02


def test_rows_in_gaps_and_beyond_the_ends_are_outside_and_those_among_others_are_not():
    rng = np.random.default_rng(0)
    t = np.sort(rng.uniform(0, 75, 8000))
    t = t[t % 25 < 19][:, None]
    model = fitted(t, np.sin(t[:, 0]), kernel=Gaussian(0.05))
    assert (model.support(np.array([[21.0], [22.0], [47.0], [80.0], [-9.0]])) < 0.01).all()
    assert (model.support(t[::7] + 0.003) > 0.05).mean() > 0.9
    X, y = drawn(5000, 30)  # where one input of thirty hardly counts among distances
    model = fitted(X, y, scale="quantile")
    far = X[:50].copy()
    far[:, 7] = X[:, 7].max() + 2.0
    assert (model.support(far) < 0.01).all()


def test_a_field_with_a_trend_has_support_in_all_inputs(tmp_path):
    X, y = drawn()
    model = fitted(X, y, kernel=Gaussian((1.0, 2.0)), feature_map="grid", trend=[2])
    model.save(tmp_path / "m.h5")
    found = model.support(X)
    np.testing.assert_array_equal(load(tmp_path / "m.h5").support(X), found)
    assert found.mean() > 0.3
    X[:, 2] += 20.0
    assert (model.support(X) < 0.01).all()


def test_rows_close_to_rows_that_are_closer_to_each_other_are_covered():
    X = np.linspace(0.0, 1.0, 2001)[:, None]
    model = fitted(X, X[:, 0], kernel=Gaussian(1.0))
    assert (model.support(np.array([[1.01], [0.50025]])) == 1.0).all()
    assert model.support(np.array([[2.0]])) < 0.01


def test_files_arrays_and_dask_have_the_same_support_and_bad_rows_none(tmp_path):
    X, y = drawn()
    model, (new, _) = fitted(X, y), drawn(50, seed=1)
    expected = model.support(new)
    model.save(tmp_path / "m.h5")
    for each in (load(tmp_path / "m.h5"), model):
        np.testing.assert_array_equal(each.support(new), expected)
    lazy = model.support(da.from_array(new, chunks=(20, 3)))
    np.testing.assert_array_equal(lazy.compute(), expected)
    model.set_params(on_bad_rows="skip")
    new[3, 1], new[5, 0] = np.nan, 1e300
    found = model.support(new)
    assert np.isnan(found[3])
    assert found[5] == 1 / 601
    labels = RandomFeatureClassifier(n_components=32).fit(X, X[:, 0] > 0)
    assert labels.support(X).shape == (600,)


def test_models_without_a_sample_say_to_fit_again(tmp_path):
    X, y = drawn()
    model = fitted(X, y)
    model.save(tmp_path / "m.h5")
    with h5py.File(tmp_path / "m.h5", "r+") as file:
        del file["support"]
    old, grown = load(tmp_path / "m.h5"), fitted(X, y).partial_fit(*drawn(seed=1))
    for each in (old, grown):
        with pytest.raises(ModelFileError, match=r"sampled rows, .* fit it again"):
            each.support(X)
    assert "by_support" not in old.evaluate(X, y)


def test_commands_write_support_tell_errors_by_it_and_say_where_many_rows_are_outside(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (X, y), (new, truth) = drawn(), drawn(400, seed=1)
    far = new.copy()
    far[:40, 0] += 9.0
    write("data.h5", X, y)
    write("new.h5", new, truth)
    write("far.h5", far, truth)
    fit = ("--components", 64, "--kernel", "gaussian", "--quiet")
    streamkern("fit", "data.h5", "--out", "m.h5", *fit)
    predict = ("predict", "m.h5", "far.h5", "--quiet", "--force", "--out")
    assert "11% of the rows lie where no rows were fitted" in streamkern(*predict, "p.h5").stderr
    likes = streamkern("predict", "m.h5", "new.h5", "--quiet", "--out", "q.h5")
    assert likes.stderr == ""
    streamkern(*predict, "p.h5", "--support")
    support = load("m.h5").support(far)
    with h5py.File("p.h5") as file:
        np.testing.assert_array_equal(file["support"][:], support)
    streamkern(*predict, "p.csv", "--support")
    assert Path("p.csv").read_text().startswith('"y_pred","support"\n')
    found = load("m.h5").evaluate(far, truth)["by_support"]
    errors = load("m.h5").predict(far) - truth
    for each in found:
        low, high = each["support"]
        inside = (support >= low) & ((support < high) | (high == 1.0))
        assert each["rows"] == inside.sum()
        if inside.any():
            np.testing.assert_allclose(
                each["rmse"], np.sqrt(np.mean(errors[inside] ** 2)), rtol=1e-6
            )
    shown = streamkern("evaluate", "m.h5", "far.h5", "--quiet").stdout
    assert f"{(support < 0.01).mean():.2%}, of rmse" in shown
    grid = invoke("predict", "m.h5", "--grid", "3,3,3", "--out", "g.h5", "--support")
    assert "--support is for rows" in grid.stderr


@needs_data
def test_held_out_rows_of_real_sets_are_inside_and_those_outside_have_larger_errors():
    found = data("uci_kin40k")
    X, y = found["X"][:12_000], found["y"][:12_000]
    model = fitted(X[:10_000], y[:10_000], n_components=256)
    support = model.support(X[10_000:])
    squares = np.square(model.predict(X[10_000:]) - y[10_000:])
    assert (support < 0.01).mean() < 0.03
    assert squares[support < 0.1].mean() > squares[support >= 0.1].mean()
