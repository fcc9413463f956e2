"""ONNX export of feature maps."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from streamkern.errors import ParameterError
from streamkern.features import Cosines, Identity, Similarities, Standardized
from streamkern.features.spectral import SpectralFeatures
from streamkern.kernels import (
    Gaussian,
    InverseMultiquadric,
    Linear,
    Matern,
    Polynomial,
    RadialKernel,
    RationalQuadratic,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamkern._typing import Floats
    from streamkern.features import FeatureMap, Standardizer
    from streamkern.kernels import Kernel
    from streamkern.report.onnx_graph import Graph

# Frequencies whose waves are made together, as predictions add up their products.
_PANEL = 1024
# Coefficients of the polynomials in a of Matern kernels, of which exp(-a) is the other factor.
_MATERN: dict[float, tuple[float, ...]] = {
    0.5: (1.0,),
    1.5: (1.0, 1.0),
    2.5: (1.0 / 3.0, 1.0, 1.0),
}


def feature_parts(graph: Graph, feature_map: FeatureMap, rows: str) -> Iterator[tuple[str, slice]]:
    """Yield features phi(x) / scale of rows, in parts, with the columns that they are."""
    if isinstance(feature_map, Standardized):
        standardised = _standardised(graph, feature_map.standardizer, rows)
        yield from feature_parts(graph, feature_map.inner, standardised)
    elif isinstance(feature_map, Identity):
        yield rows, slice(None)
    elif isinstance(feature_map, (Cosines, SpectralFeatures)):
        yield from _waves(graph, feature_map, rows)
    elif isinstance(feature_map, Similarities):
        yield _similarities(graph, feature_map.kernel, feature_map.landmarks, rows), slice(None)
    else:
        raise ParameterError(
            f"the map {feature_map.name!r} is more than operators of ONNX express here; take "
            f"Fourier features, landmarks of a kernel of the Euclidean distance, or identity."
        )


def is_of_landmarks(feature_map: FeatureMap) -> bool:
    """Say whether features are values of a kernel at landmarks."""
    if isinstance(feature_map, Standardized):
        return is_of_landmarks(feature_map.inner)
    return isinstance(feature_map, Similarities)


def _standardised(graph: Graph, standardizer: Standardizer, rows: str) -> str:
    """Add A (x - mean) / deviation of the columns that are kept, with differences in double."""
    if len(standardizer.columns) < standardizer.n_features:
        rows = graph("Gather", rows, graph.constant(standardizer.columns, np.int64), axis=1)
    rows = graph.cast(rows, np.float64)
    rows = graph("Sub", rows, graph.constant(standardizer.mean, np.float64))
    linear, scale = standardizer.linear, 1.0 / standardizer.deviation
    if linear is not None and linear.ndim == 1:
        scale = scale * linear
    rows = graph("Mul", rows, graph.constant(scale, np.float64))
    rows = graph.cast(rows, graph.dtype)
    if linear is not None and linear.ndim == 2:
        rows = graph("MatMul", rows, graph.constant(linear.T))
    return rows


def _waves(
    graph: Graph, feature_map: Cosines | SpectralFeatures, rows: str
) -> Iterator[tuple[str, slice]]:
    """Add cosines of angles, or cosines and sines that the map has side by side."""
    paired = isinstance(feature_map, SpectralFeatures) and feature_map.paired
    if paired and feature_map.n_components % 2:  # the last has no sine
        paired, feature_map = False, feature_map.subset(np.arange(feature_map.n_components))
    frequencies, amplitudes = feature_map.frequencies, feature_map.amplitudes
    for start in range(0, len(frequencies), _PANEL):
        draws = slice(start, min(start + _PANEL, len(frequencies)))
        angles = graph("MatMul", rows, graph.constant(frequencies[draws].T))
        if not paired:
            angles = graph("Add", angles, graph.constant(feature_map.phases[draws]))
        for place, wave in enumerate(("Cos", "Sin") if paired else ("Cos",)):
            features = graph(wave, angles)
            # Amplitudes of the phase form are for pairs alone.
            if amplitudes is not None and (paired or isinstance(feature_map, Cosines)):
                features = graph("Mul", features, graph.constant(amplitudes[draws]))
            step = 2 if paired else 1
            yield features, slice(step * draws.start + place, step * draws.stop, step)


def _similarities(graph: Graph, kernel: Kernel, landmarks: Floats, rows: str) -> str:
    """Add the values of a kernel at landmarks."""
    if isinstance(kernel, (Linear, Polynomial)):
        products = graph("MatMul", rows, graph.constant(landmarks.T))
        if isinstance(kernel, Linear):
            return products
        shifted = graph("Add", products, graph.constant(kernel.constant))
        return graph("Pow", shifted, graph.constant(kernel.degree))
    if isinstance(kernel, Gaussian):
        squares = _squares(graph, kernel, landmarks, rows)
        return graph("Exp", graph("Mul", squares, graph.constant(-0.5)))
    if isinstance(kernel, (RationalQuadratic, InverseMultiquadric)):
        squares = _squares(graph, kernel, landmarks, rows)
        over = graph("Mul", squares, graph.constant(0.5 / kernel.shape))
        base = graph("Add", over, graph.constant(1.0))
        return graph("Pow", base, graph.constant(-kernel.shape))
    if isinstance(kernel, Matern) and kernel.nu in _MATERN:
        distances = graph("Sqrt", _squares(graph, kernel, landmarks, rows))
        a = graph("Mul", distances, graph.constant(math.sqrt(2.0 * kernel.nu)))
        first, *others = _MATERN[kernel.nu]
        polynomial = graph.constant(first)
        for coefficient in others:  # by Horner's rule
            polynomial = graph("Add", graph("Mul", polynomial, a), graph.constant(coefficient))
        return graph("Mul", graph("Exp", graph("Neg", a)), polynomial)
    raise ParameterError(
        f"the kernel {kernel.name!r} at landmarks is more than operators of ONNX express here; "
        f"take Fourier features, or landmarks of a kernel of the Euclidean distance."
    )


def _squares(graph: Graph, kernel: RadialKernel, landmarks: Floats, rows: str) -> str:
    """Add squared distances, |x|^2 - 2 x z + |z|^2 about the landmarks' mean, of scaled rows."""
    centre, scales = landmarks.mean(axis=0), kernel.scales(landmarks.shape[1])
    about = (landmarks - centre) / scales
    rows = graph("Sub", rows, graph.constant(centre))
    rows = graph("Div", rows, graph.constant(scales))
    axis = graph.constant([1], np.int64)
    lengths = graph("ReduceSum", graph("Mul", rows, rows), axis, keepdims=1)
    products = graph("MatMul", rows, graph.constant(-2.0 * about.T))
    ends = graph.constant(np.square(about).sum(axis=1))
    return graph("Relu", graph("Add", graph("Add", products, lengths), ends))
