"""What all Fourier maps have in common: formula, nesting, seeds, files, short forms, gradients."""

import math
from functools import cache

import naive
import numpy as np
import pytest
from tolerances import assert_close

from streamkern.errors import ParameterError
from streamkern.features import MAPS, compress
from streamkern.features.families import FAMILIES
from streamkern.features.spectral import SpectralFeatures
from streamkern.kernels import Gaussian, Matern

P, D = 3, 44
SPECTRAL = [
    name
    for name, family in FAMILIES.items()
    if isinstance(family.map_of(Gaussian(1.0), 4), SpectralFeatures)
]
RANDOM = [name for name in SPECTRAL if name != "grid"]
FORMS = [(name, True) for name in SPECTRAL] + [(name, False) for name in RANDOM]
every_form = pytest.mark.parametrize(
    ("family", "paired"), FORMS, ids=[f"{n}-{'paired' if p else 'phase'}" for n, p in FORMS]
)


def rows(n: int = 9, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, P))


@cache
def drawn(family, paired=True, n_components=D, kernel=Matern((1.0, 2.0, 0.8)), seed=3):  # noqa: B008
    phi = FAMILIES[family].map_of(kernel, n_components, paired=paired, random_state=seed)
    return phi.draw(P, rows(50, seed=1))


def largest_angle(phi) -> float:
    return float((np.abs(rows()) @ np.abs(phi.frequencies.T)).max()) + 2 * math.pi


@every_form
def test_features_are_those_of_the_formula(family, paired):
    phi = drawn(family, paired)
    expected = []
    for x in rows():
        features = naive.fourier_features(x, phi.frequencies, None if paired else phi.phases)
        if family == "grid":  # weights of their own in the place of 1 / L
            features = [
                value * amplitude * math.sqrt(D / 2)
                for value, amplitude in zip(features, np.repeat(phi.amplitudes, 2), strict=True)
            ]
        expected.append(features)
    assert_close(phi.transform(rows()), expected, size=largest_angle(phi))


@pytest.mark.parametrize("n_components", [1, 7])
@pytest.mark.parametrize("family", SPECTRAL)
def test_the_last_of_an_odd_number_of_features_is_a_cosine_without_its_sine(family, n_components):
    phi, X = drawn(family, True, n_components), rows()
    pairs, size = n_components // 2, largest_angle(drawn(family, True, n_components))
    angles = X @ phi.frequencies.T
    waves = np.stack([np.cos(angles), np.sin(angles)], axis=2)
    waves[:, pairs, 0] = np.cos(angles[:, pairs] + phi.phases[pairs])
    waves *= np.ones(pairs + 1)[:, None] if phi.amplitudes is None else phi.amplitudes[:, None]
    expected = phi.scale * waves.reshape(len(X), -1)[:, :n_components]
    assert_close(phi.transform(X), expected, size=size)
    assert_close(phi.transform(X, np.float32), expected, dtype=np.float32, size=size)
    back = MAPS[phi.name].restore(phi.parameters(), phi.arrays())
    assert np.array_equal(back.transform(X), phi.transform(X))
    every = np.arange(n_components)[::-1]
    assert_close(phi.subset(every).transform(X), expected[:, ::-1], size=size)
    coef = np.random.default_rng(1).standard_normal((n_components, 1))
    short, weights = compress(phi, coef)
    assert short.n_components == pairs + 1
    assert_close(short.transform(X) @ weights, expected @ coef, steps=1000, size=size)
    assert phi.first(n_components).equals(phi)
    if pairs:
        even = phi.first(n_components - 1)
        assert_close(even.transform(X) / even.scale, expected[:, :-1] / phi.scale, size=size)


@every_form
def test_the_first_features_of_a_larger_map_are_the_smaller_map(family, paired):
    large = drawn(family, paired, 150)
    part = large.first(D)
    features, leading = np.empty((9, 150)), np.empty((9, D))
    large.evaluate(rows(), features)
    part.evaluate(rows(), leading)
    assert_close(features[:, :D], leading, size=largest_angle(large))
    if family != "grid":  # whose cells follow from D
        small = drawn(family, paired, D)
        assert part.equals(small) or family == "orthogonal"
        assert_close(part.transform(rows()), small.transform(rows()), size=10.0)


@pytest.mark.parametrize("family", RANDOM)
def test_the_same_seed_draws_the_same_map_and_another_one_another(family):
    one, two, other = (drawn(family, seed=seed) for seed in (5, 5, 6))
    assert one.equals(two)
    assert not np.isin(one.frequencies, other.frequencies).any()
    assert not np.isin(one.phases, other.phases).any()


@every_form
@pytest.mark.parametrize("n_components", [0, -2, D + 2])
def test_a_part_larger_than_the_whole_or_empty_is_refused(family, paired, n_components):
    with pytest.raises(ParameterError, match=f"between 1 and {D} features, not {n_components}"):
        drawn(family, paired).first(n_components)


# Without bias.
