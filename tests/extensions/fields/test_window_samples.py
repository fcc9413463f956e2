"""Windows sample the rows in their boxes, however rows were cut."""

import numpy as np
import pytest
from dask.tokenize import tokenize

from streamkern.extensions.fields.field_kernel import WindowSamples
from streamkern.features.base import stream
from streamkern.sources import Block
from streamkern.statistics import RowSample

CENTRES = np.array([[0.0, 0.0], [0.5, -0.5], [9.0, 9.0]])
HALVES = np.array([[np.inf, np.inf], [0.2, 0.4], [0.1, 0.1]])


def doubled(X):
    return 2.0 * X


@pytest.mark.parametrize("cuts", [(), (7, 300, 301)])
def test_windows_sample_the_rows_in_boxes(cuts):
    X = stream(0).standard_normal((500, 2))
    y, weights = X[:, :1] + 1.0, stream(1).integers(1, 4, 500).astype(float)
    empty = WindowSamples(doubled, CENTRES, HALVES, 40, random_state=3)
    found = empty.zero()
    pieces = np.split(np.arange(500), cuts)
    for piece in pieces[::-1]:
        part = empty.zero()
        part.update([Block(X[piece], y[piece], int(piece[0]), weights[piece])])
        found = found.merge(empty.attached(part.detached()))
    for sample, centre, half in zip(found.samples, CENTRES, HALVES, strict=True):
        inside = (np.abs(2.0 * X - centre) <= half).all(axis=1)
        expected = RowSample(40, 3)
        expected.update([Block(X, y, 0, weights).where(inside)])
        assert np.array_equal(sample.places, expected.places)
        assert np.array_equal(sample.X, expected.X)
        assert np.array_equal(sample.weights, expected.weights)
    assert len(found.samples[0].places) == 40 > len(found.samples[1].places) > 5
    assert not len(found.samples[2].places)


def test_other_boxes_are_another_statistic():
    one, other = (WindowSamples(doubled, CENTRES, HALVES * k, 40) for k in (1.0, 2.0))
    assert tokenize(one) == tokenize(one.zero())
    assert tokenize(one) != tokenize(other)
