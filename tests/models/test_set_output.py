"""What `set_output` asks for comes lazily of what is lazy, and is never computed on the way."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import sklearn

import streamkern
from streamkern import Gaussian
from streamkern.errors import ParameterError

# Arrays have no names, which a model of a frame says.
pytestmark = [
    pytest.mark.filterwarnings("ignore:X does not have valid feature names"),
    pytest.mark.usefixtures("frames_in_this_thread"),
]
KERNEL = Gaussian(2.0)
MODELS = {
    "map": lambda: streamkern.RandomFourierFeatures(KERNEL, 8),
    "inputs": streamkern.Identity,
    "ridge": lambda: streamkern.RandomFeatureRidge(KERNEL, n_components=8, alpha=0.1),
    "classifier": lambda: streamkern.RandomFeatureClassifier(
        KERNEL, n_components=8, alpha=0.1, calibration=None
    ),
    "components": lambda: streamkern.RandomFeaturePCA(KERNEL, n_random_features=8),
}
every_model = pytest.mark.parametrize("name", list(MODELS))


class Rows:
    """A table, and how often its blocks were made."""

    def __init__(self):
        X = np.random.default_rng(0).standard_normal((90, 3))
        self.frame = pd.DataFrame(X, columns=["a", "b", "c"], index=np.arange(90) * 2 + 7)
        self.labels = (X[:, 0] > 0).astype(int)
        self.n_made = 0

    def look(self, block):
        self.n_made += 1
        return block

    def lazy(self, kind):
        if kind == "frame":
            frame = dd.from_pandas(self.frame, npartitions=3, sort=False)
            return frame.map_partitions(self.look, meta=self.frame.iloc[:0])
        array = da.from_array(self.frame.to_numpy(), chunks=(30, 2))
        return array.map_blocks(self.look, dtype=float, meta=np.empty((0, 0)))


kinds = pytest.mark.parametrize("kind", ["frame", "array"])


@every_model
@kinds
def test_a_frame_of_lazy_rows_is_lazy_and_that_of_rows_in_memory(name, kind):
    rows, model = Rows(), MODELS[name]().set_output(transform="pandas")
    model.fit(rows.frame, rows.labels)
    given = rows.lazy(kind)
    found = model.transform(given)
    assert isinstance(found, dd.DataFrame)
    expected = model.transform(rows.frame)
    assert list(found.columns) == list(expected.columns) == model.get_feature_names_out().tolist()
    assert isinstance(model.set_output(transform="default").transform(given), da.Array)
    assert rows.n_made == 0
    expected = expected if kind == "frame" else expected.reset_index(drop=True)
    pd.testing.assert_frame_equal(found.compute(), expected, rtol=1e-9, atol=1e-6)


@every_model
@kinds
def test_a_lazy_frame_is_asked_for_in_the_configuration_too_and_by_fit_transform(name, kind):
    rows, model = Rows(), MODELS[name]()
    given = rows.lazy(kind)
    with sklearn.config_context(transform_output="pandas"):
        n_made = model.fit(given, rows.labels) and rows.n_made
        assert isinstance(model.fit_transform(given, rows.labels), dd.DataFrame)
    assert rows.n_made == 2 * n_made


@every_model
def test_a_container_that_is_never_lazy_is_refused(name):
    rows = Rows()
    model = MODELS[name]().set_output(transform="polars").fit(rows.frame, rows.labels)
    with pytest.raises(ParameterError, match=r"'polars'\) would compute all rows"):
        model.transform(rows.lazy("array"))
    assert rows.n_made == 0
    assert type(model.transform(rows.frame)).__module__.startswith("polars")
