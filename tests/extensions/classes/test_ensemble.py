"""Errors of rounds are those of all rows, in whatever blocks they come."""

import numpy as np
import pytest

from streamkern.extensions.classes.ensemble import Ensemble, RoundErrors, StagedErrors, Step
from streamkern.features import Identity
from streamkern.predict.evaluation import Evaluation
from streamkern.predict.predictor import Predictor
from streamkern.sources import Block

N, P, K = 40, 3, 3


def rows():
    rng = np.random.default_rng(0)
    X, codes = rng.standard_normal((N, P)), rng.integers(0, K, N)
    return Block(X, np.where(codes[:, None] == range(K), 1.0, -1.0), 0, rng.uniform(0, 2, N)), codes


def predictor(seed):
    coef = np.random.default_rng(seed).standard_normal((P, K))
    return Predictor(Identity().draw(P), coef, np.zeros(K), precision="double")


def ensemble(algorithm="gentle"):
    whole = Ensemble(algorithm, K)
    for seed, size in ((1, 0.5), (2, 0.7)):
        whole = whole.grown(predictor(seed), Step(size, 0.9))
    return whole


def parts(statistic, block):
    """The statistic of three parts of the rows, merged the wrong way round."""
    found = []
    for cut in (slice(0, 7), slice(7, 8), slice(8, N)):
        one = statistic.zero()
        one.update([Block(block.X[cut], block.y[cut], cut.start, block.weights[cut])])
        found.append(one)
    return found[2].merge(found[0]).merge(found[1])


@pytest.mark.parametrize("algorithm", ["gentle", "discrete"])
def test_errors_after_every_round_are_those_of_a_loop(algorithm):
    (block, codes), whole = rows(), ensemble(algorithm)
    found = parts(StagedErrors(whole), block)
    wrong = np.zeros(2)
    for x, code, weight in zip(block.X, codes, block.weights, strict=True):
        votes = np.zeros(K)
        for i, each in enumerate(whole.rounds):
            scores = x @ each.predictor.coef
            chosen = np.eye(K)[scores.argmax()] if algorithm == "discrete" else scores
            votes = votes + each.step * (chosen - chosen.mean())
            wrong[i] += weight * (votes.argmax() != code)
    np.testing.assert_allclose(found.errors, wrong / block.weights.sum())


def test_a_new_round_is_judged_on_the_weights_of_the_ones_before():
    (block, codes), whole = rows(), ensemble()
    new = predictor(3)
    found = parts(Evaluation(new, RoundErrors(whole, 0.5)), block).measures[0]
    weights = after = wrong = 0.0
    for x, code, weight in zip(block.X, codes, block.weights, strict=True):
        mine = weight * np.exp(-whole.votes(x[None])[0, code]) / 0.9**2
        scores = x @ new.coef
        weights += mine
        after += mine * np.exp(-0.5 * (scores[code] - scores.mean()))
        wrong += mine * (scores.argmax() != code)
    np.testing.assert_allclose([found.weight, found.after, found.wrong], [weights, after, wrong])


def test_rows_far_out_that_weigh_nothing_change_nothing():
    block, _ = rows()
    far = Block(1e6 * block.X, block.y, 0, 0.0 * block.weights)
    for statistic in (
        StagedErrors(ensemble()),
        Evaluation(predictor(3), RoundErrors(ensemble(), 0.5)),
    ):
        expected, found = statistic.zero(), statistic.zero()
        expected.update([block])
        found.update([block, far])
        np.testing.assert_equal(found.detached(), expected.detached())
