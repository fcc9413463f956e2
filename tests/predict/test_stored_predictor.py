"""What predicts comes from a file alone, in a process without what only fits need."""

import subprocess
import sys

import numpy as np
import pytest
from harvests import classifier, labelled_rows, ridge, smooth_rows

import streamkern
from streamkern.errors import ModelFileError

ALONE = """
import sys
import numpy as np
import streamkern
np.save("said.npy", streamkern.load_predictor("model.h5").predict(np.load("rows.npy")))
print(*sorted({*sys.argv[1:]} & sys.modules.keys()))
"""
SLOW = "dask distributed pandas psutil scipy sklearn streamkern.statistics threadpoolctl tlz"


def test_a_process_that_predicts_imports_nothing_that_it_does_not_need(tmp_path):
    X, y = smooth_rows()
    model = ridge(target_range=(None, 1.0)).fit(X, np.minimum(y, 1.0))
    model.save(tmp_path / "model.h5", compact=True)
    np.save(tmp_path / "rows.npy", X)
    command = [sys.executable, "-c", ALONE, *SLOW.split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
    said = np.load(tmp_path / "said.npy")
    assert said.max() == 1.0
    assert np.array_equal(said, model.predict(X))


@pytest.mark.parametrize("options", [{"feature_map": "nystroem"}, {"feature_map": "grid"}])
def test_a_predictor_of_a_file_is_that_of_the_model(options, tmp_path):
    X, y = smooth_rows(q=2)
    model = ridge(**options).fit(X, y)
    model.save(tmp_path / "model.h5")
    predictor = streamkern.load_predictor(tmp_path / "model.h5")
    assert np.array_equal(predictor.predict(X), model.predict(X))


def test_what_is_no_regression_is_refused(tmp_path):
    X, labels = labelled_rows()
    classifier().fit(X, labels).save(tmp_path / "model.h5")
    with pytest.raises(ModelFileError, match="is of a RandomFeatureClassifier; load it"):
        streamkern.load_predictor(tmp_path / "model.h5")
    with pytest.raises(ModelFileError, match="nothing"):
        streamkern.load_predictor(tmp_path / "nothing.h5")
