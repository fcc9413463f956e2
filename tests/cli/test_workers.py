"""Commands on workers give what they give in this process."""

from pathlib import Path

import h5py
import numpy as np
import pytest
from commandline import report_of, rows, streamkern, write

from streamkern import connect, load


@pytest.mark.cluster
@pytest.mark.usefixtures("folder")
def test_workers_fit_judge_and_predict_as_this_process_does():
    X, y = rows(40_000)
    write("data.h5", X, y)
    fit = ("fit", "data.h5", "--components", 32, "--quiet", "--out")
    streamkern(*fit, "model.h5")
    streamkern(*fit, "there.h5", "--report", "there.html", "--workers", 2)
    model = load("model.h5")
    assert np.array_equal(load("there.h5").coef_, model.coef_)
    assert "fitted without its fold" in Path("there.html").read_text(encoding="utf-8")
    evaluate = ("evaluate", "model.h5", "data.h5")
    judging = [(*evaluate, "--leave-one-out", 5), evaluate]
    here = [report_of(*words) for words in judging]
    with connect(n_workers=2) as client:
        place = ("--scheduler", client.scheduler.address, "--quiet")
        assert [report_of(*words, *place) for words in judging] == here
        streamkern("predict", "model.h5", "data.h5", "--out", "p.h5", "--std", *place)
    with h5py.File("p.h5") as file:
        deviations = model.predict(X, return_std=True)[1]
        assert np.abs(file["y_std"][:] - deviations).max() < 1e-5
