"""Metrics as options: what is one, what is not, and what it says of the inputs."""

import numpy as np
import pytest
from tolerances import assert_close

from streamkern.errors import ParameterError
from streamkern.features import Identity, Standardizer
from streamkern.features.metric import (
    GivenMetric,
    Learning,
    checked_metric,
    described_metric,
    learning_of,
    metric_facts,
    metric_of,
    metric_of_map,
    root_of,
)


def positive(p=3, rank=None, seed=0):
    half = np.random.default_rng(seed).standard_normal((rank or p, p))
    return half.T @ half


@pytest.mark.parametrize(
    ("text", "learning"),
    [
        ("learn", Learning(4)),
        ("learn:2", Learning(2)),
        ("diagonal", Learning(4, diagonal=True)),
        ("diagonal:1", Learning(1, diagonal=True)),
    ],
)
def test_a_text_says_how_a_metric_is_learnt(text, learning):
    assert checked_metric(text) == text == described_metric(text)
    assert learning_of(text) == learning


@pytest.mark.parametrize(
    "text", ["", "Learn", "learn:", "learn:0", "learn:-1", "learn:1.5", "learn:99", "full", "given"]
)
def test_another_text_is_refused(text):
    with pytest.raises(ParameterError, match="'learn:ROUNDS'"):
        checked_metric(text)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (3.0, "a matrix \\(p, p\\), not 3.0"),
        (np.ones(3), "not an array of shape \\(3,\\)"),
        (np.ones((2, 3)), "not an array of shape \\(2, 3\\)"),
        (np.ones((0, 0)), "not an array of shape \\(0, 0\\)"),
        ([["a"]], "a matrix \\(p, p\\)"),
        ([[1.0, 2.0], [0.0, 1.0]], "symmetric and finite"),
        ([[np.nan]], "symmetric and finite"),
        ([[1.0, 2.0], [2.0, 1.0]], "positive semi-definite and not 0"),
        ([[0.0]], "positive semi-definite and not 0"),
    ],
)
def test_what_is_no_metric_is_refused(value, words):
    with pytest.raises(ParameterError, match=words):
        checked_metric(value)


def test_rounding_does_not_make_a_metric_asymmetric():
    vectors = np.linalg.qr(np.random.default_rng(0).standard_normal((6, 6)))[0]
    vectors[:3, 3:] *= 1e-17
    matrix = (vectors * np.arange(1.0, 7.0)) @ vectors.T
    matrix[0, 5] += 1e-18
    assert isinstance(checked_metric(matrix), GivenMetric)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_a_root_squared_is_the_metric(rank):
    metric = positive(rank=rank)
    A = root_of(metric)
    assert A.shape == (3, 3)
    assert_close(A.T @ A, metric)


def test_the_root_of_a_diagonal_is_one():
    A = root_of(np.diag([4.0, 0.0, 9.0]))
    assert A.tolist() == [2.0, 0.0, 3.0]


def test_a_given_metric_is_checked_once_and_told_apart_from_others():
    one, same, other = (checked_metric(positive(seed=seed)) for seed in (0, 0, 1))
    assert checked_metric(one) is one
    assert one.parameters() == same.parameters() != other.parameters()
    assert described_metric(one) == described_metric(positive()) == one.name == "given"
    assert checked_metric(None) is described_metric(None) is learning_of(one) is None


def test_inputs_that_are_left_out_have_no_part_in_it():
    metric, kept = positive(4), np.array([0, 3])
    A = GivenMetric(metric).linear(kept)
    whole = metric_of(A, kept, 4)
    assert_close(whole[np.ix_(kept, kept)], metric[np.ix_(kept, kept)])
    assert not whole[[1, 2]].any()
    assert not whole[:, [1, 2]].any()


def test_without_a_metric_inputs_count_alike():
    assert np.array_equal(metric_of(None, np.array([0, 2]), 3), np.diag([1.0, 0.0, 1.0]))


def test_facts_name_inputs_directions_and_their_parts():
    A = np.array([[3.0, 0.0], [0.0, 1.0]])
    turn = np.array([[0.6, 0.8], [-0.8, 0.6]])
    standardizer = Standardizer(np.array([1, 4]), np.zeros(2), np.array([2.0, 10.0]), 5, A @ turn)
    facts = metric_facts(standardizer, "learn")
    assert facts["kind"] == "learn"
    assert facts["columns"] == [1, 4]
    # M = turn^T diag(9, 1) turn = [[3.88, 3.84], [3.84, 6.12]].
    weights = np.sqrt([3.88, 6.12])
    assert_close(facts["importance"], weights / weights.sum())
    assert_close(facts["per_unit"], [np.sqrt(3.88) / 2.0, np.sqrt(6.12) / 10.0])
    assert_close(facts["eigenvalues"], [0.9, 0.1])
    assert_close(facts["directions"], [[0.6, 0.8], [0.8, -0.6]])
    assert metric_facts(Standardizer(np.arange(1), np.zeros(1), np.ones(1), 1), None) is None


def test_a_bare_map_has_no_metric():
    with pytest.raises(ParameterError, match="'identity' is not one of standardised rows"):
        metric_of_map(Identity().draw(2))
