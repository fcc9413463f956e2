"""The progress bar: on standard error, and nowhere else."""

from __future__ import annotations

import importlib
import time

import numpy as np
import pytest

from streamkern import RandomFeatureRidge, progress
from streamkern.mapping import map_shards
from streamkern.sources.arrays import ArraySource


@pytest.fixture
def every_bar_stays(monkeypatch):
    """Let passes that nobody had to wait for leave their bars too."""
    module = importlib.import_module("streamkern.monitor.progress")
    monkeypatch.setattr(module, "_SECONDS_WORTH_A_BAR", 0.0)


def rows(n=20_000):
    X = np.random.default_rng(0).standard_normal((n, 2))
    return X, X[:, 0]


def fit():
    return RandomFeatureRidge(n_components=8).fit(*rows())


@pytest.mark.usefixtures("every_bar_stays")
def test_the_bars_of_a_fit_are_on_standard_error_only(capfd):
    with progress():
        fit()
    said = capfd.readouterr()
    assert said.out == ""
    columns, moments = said.err.strip().splitlines()
    assert "columns" in columns
    assert "moments" in moments
    assert "20000/20000 rows" in columns
    assert "20000/20000 rows" in moments


@pytest.mark.usefixtures("every_bar_stays")
def test_prediction_has_a_bar_too(capfd):
    model = fit()
    with progress():
        model.predict(ArraySource(rows()[0]))
    said = capfd.readouterr()
    assert said.out == ""
    assert "predict" in said.err
    assert "20000/20000 rows" in said.err


def test_without_the_context_nothing_is_said(capfd):
    with progress():
        pass
    capfd.readouterr()
    fit()
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("every_bar_stays")
def test_an_unfinished_pass_leaves_an_unfinished_bar(capfd):
    def broken(blocks, n_rows, _):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), progress():
        list(
            map_shards(ArraySource(*rows()), broken, shard_rows=100, block_rows=100, label="broken")
        )
    assert "0/20000 rows" in capfd.readouterr().err


def test_a_pass_that_takes_a_while_leaves_its_bar_and_a_short_one_does_not(capfd):
    def slow(blocks, n_rows, _):
        assert sum(map(len, blocks)) == n_rows
        time.sleep(1.1)

    source = ArraySource(*rows())
    with progress():
        fit()
        list(map_shards(source, slow, shard_rows=20_000, block_rows=20_000, label="slow"))
    said = capfd.readouterr()
    assert said.out == ""
    assert "slow" in said.err
    assert "20000/20000 rows" in said.err
    assert "moments" not in said.err
