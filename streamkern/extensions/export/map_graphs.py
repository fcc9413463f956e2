"""Feature maps as graphs: what a map does in NumPy, of values of a graph."""

from collections.abc import Iterator
from functools import reduce
from typing import Any

import numpy as np

from streamkern import kernels
from streamkern._typing import Floats
from streamkern.errors import ParameterError
from streamkern.features import Cosines, FeatureMap, KernelColumns, innermost
from streamkern.features.kernel_values import LandmarkFeatures
from streamkern.features.projection import Frequencies
from streamkern.features.spectral import SpectralFeatures
from streamkern.features.standardized import Identity, Standardized
from streamkern.features.standardizer import FARTHEST, Standardizer
from streamkern.predict.predictor import Form

# Frequencies whose waves are made together, as predictions add up their products.
_PANEL = 1024


def with_merged_waves(form: Form) -> Form:
    """Return the function of one target with one cosine of every frequency, where some repeat."""
    inner = innermost(form.feature_map)
    if not isinstance(inner, Cosines) or form.coef.shape[1] > 1 or np.any(form.shift):
        return form
    frequencies, places = np.unique(inner.frequencies, axis=0, return_inverse=True)
    if len(frequencies) == len(places):
        return form
    inner, sizes = inner.as_cosines(form.coef[:, 0])
    waves = np.zeros(len(frequencies), complex)
    np.add.at(waves, places.ravel(), sizes * np.exp(1j * inner.phases))
    merged = Cosines(Frequencies(frequencies), np.angle(waves), inner.scale)
    whole = form.feature_map
    feature_map = whole.about(merged) if isinstance(whole, Standardized) else merged
    coef = np.abs(waves)[:, None].astype(form.coef.dtype)
    return form._replace(feature_map=feature_map, coef=coef)


def feature_parts(rows: Any, feature_map: FeatureMap, dtype: Any) -> Iterator[tuple[Any, slice]]:
    """Yield features phi(x) / scale of rows, in parts, with the columns that they are."""
    if isinstance(feature_map, Standardized):
        rows = _standardised(rows, feature_map.standardizer).astype(dtype)
        yield from feature_parts(rows, feature_map.inner, dtype)
    elif rows.dtype != dtype:
        yield from feature_parts(rows.astype(dtype), feature_map, dtype)
    elif isinstance(feature_map, Identity):
        yield rows, slice(None)
    elif isinstance(feature_map, (Cosines, SpectralFeatures)):
        yield from _waves(rows, feature_map)
    elif isinstance(feature_map, KernelColumns):
        yield _similarities(rows, feature_map.kernel, feature_map.landmarks), slice(None)
    elif isinstance(feature_map, LandmarkFeatures):
        ((values, _),) = feature_parts(rows, feature_map.similarities, dtype)
        yield values @ feature_map.weights, slice(None)
    else:
        what = f"the map {feature_map.name!r}"
        raise no_graph(what, "identity, or landmarks of a kernel of the Euclidean distance")


def _standardised(rows: Any, standardizer: Standardizer) -> Any:
    """Return what a standardizer makes of the columns that it keeps, with differences in double."""
    if len(standardizer.columns) < standardizer.n_features:
        rows = rows.columns(standardizer.columns)
    rows = rows.astype(np.float64) - standardizer.mean
    linear, scale = standardizer.linear, 1.0 / standardizer.deviation
    if standardizer.bends:
        rows, scale = _bent(rows * scale, standardizer), np.ones_like(scale)
    if linear is not None and linear.ndim == 1:
        scale = scale * linear
    rows = rows * scale
    return rows @ linear.T if linear is not None and linear.ndim == 2 else rows


def _bent(rows: Any, standardizer: Standardizer) -> Any:
    rows = np.where(np.isinf(rows), np.nan, rows)
    if standardizer.knots is None:
        rows = np.clip(rows, -FARTHEST, FARTHEST)
        return rows / np.sqrt((rows / standardizer.bound) ** 2 + 1.0)
    return straight(rows, *standardizer.knots) + (rows - rows)  # NaN stays


def _waves(rows: Any, feature_map: Cosines | SpectralFeatures) -> Iterator[tuple[Any, slice]]:
    """Yield cosines of angles, or cosines and sines that the map has side by side."""
    paired = isinstance(feature_map, SpectralFeatures) and feature_map.paired
    if paired and feature_map.n_components % 2:  # the last has no sine
        paired, feature_map = False, feature_map.subset(np.arange(feature_map.n_components))
    amplitudes, step = feature_map.amplitudes, 1 + paired
    if not paired and isinstance(feature_map, SpectralFeatures):
        amplitudes = None  # those of the phase form are for pairs alone
    for start in range(0, len(feature_map.frequencies), _PANEL):
        draws = slice(start, start + _PANEL)
        angles = rows @ feature_map.frequencies[draws].T
        if not paired:
            angles = angles + feature_map.phases[draws]
        for place, wave in enumerate((np.cos, np.sin)[:step]):
            features = wave(angles) if amplitudes is None else wave(angles) * amplitudes[draws]
            yield features, slice(step * start + place, step * draws.stop, step)


def _similarities(rows: Any, kernel: Any, landmarks: Floats) -> Any:
    """Return the values of a kernel of rows and landmarks."""
    try:
        if isinstance(kernel, kernels.Sum):
            parts = (
                _similarities(rows.columns(c), part, landmarks[:, c]) * share
                for share, part, c in kernel.scaled_parts
            )
            return reduce(np.add, parts)
        if isinstance(kernel, kernels.Linear):
            return rows @ landmarks.T
        if isinstance(kernel, kernels.Polynomial):
            return (rows @ landmarks.T + kernel.constant) ** kernel.degree
        scales = kernel.scales(landmarks.shape[1])
        rows, about = rows / scales, landmarks / scales
        if isinstance(kernel, kernels.Laplacian):
            apart = (abs(rows.columns([j]) - z) for j, z in enumerate(about.T))
            return kernel.profile(reduce(np.add, apart))
        # |x|^2 - 2 x z + |z|^2 about the landmarks' mean.
        centre = about.mean(axis=0)
        rows, about = rows - centre, about - centre
        squares = rows @ (-2.0 * about.T) + (rows * rows).sums() + np.square(about).sum(axis=1)
        return kernel.profile_of_squares(rows.graph("Relu", squares))
    except (AttributeError, TypeError) as error:
        what = f"the kernel {kernel.name!r} at landmarks"
        raise no_graph(what, "or the Gaussian or Laplacian kernel") from error


def no_graph(what: str, instead: str) -> ParameterError:
    return ParameterError(
        f"{what} is more than operators of ONNX express here; take Fourier features, {instead}."
    )


def straight(scores: Any, points: Any, values: Any, *, goes_on: bool = False) -> Any:
    """Return functions (n, q) of columns: straight between points, and level outside or goes on."""
    each = enumerate(zip(points, values, strict=True))
    found = (_straight(scores.columns([j]), *pair, goes_on=goes_on) for j, pair in each)
    return scores.graph("Concat", *found, axis=1)


def _straight(score: Any, points: Floats, values: Floats, *, goes_on: bool) -> Any:
    if not goes_on or len(points) == 1:
        points = np.append(points, 2.0 * abs(points[-1]) + 1.0)
        values = np.append(values, values[-1])
    points, first = np.unique(points, return_index=True)
    last = np.append(first[1:], len(values)) - 1
    low, high, most = points[:-1].copy(), points[1:].copy(), np.finfo(np.float64).max
    if goes_on:
        low[0], high[-1] = -most, most
    rises = (values[first[1:]] - values[last[:-1]]) / np.diff(points)
    passed = np.minimum(np.maximum(score, low), high) - points[:-1]
    found = passed @ rises[:, None] + values[0]
    if (jumps := values[last] - values[first]).any():
        found = found + (score > np.nextafter(points, -most)).astype(np.float64) @ jumps[:, None]
    return found
