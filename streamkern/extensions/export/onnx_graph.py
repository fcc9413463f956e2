"""ONNX graphs, a node at a time, and those of feature maps."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np

from streamkern import kernels
from streamkern._typing import Array, Floats
from streamkern._version import __version__
from streamkern.errors import OutputError, ParameterError
from streamkern.features import (
    Cosines,
    FeatureMap,
    Identity,
    KernelColumns,
    Standardized,
    Standardizer,
)
from streamkern.features.spectral import SpectralFeatures
from streamkern.features.standardizer import FARTHEST
from streamkern.runtime.memory import in_words

# What protocol buffers hold, with room for the nodes.
_MOST_BYTES = 2_000_000_000
# Operators and file format of 2021, which every runtime since then knows.
_OPERATORS, _FORMAT = 17, 8
# Frequencies whose waves are made together, as predictions add up their products.
_PANEL = 1024
# Coefficients of the polynomials in a of Matern kernels, of which exp(-a) is the other factor.
_MATERN: dict[float, tuple[float, ...]] = {0.5: (1.0,), 1.5: (1.0, 1.0), 2.5: (1.0 / 3.0, 1.0, 1.0)}


class Node(NamedTuple):
    operator: str
    inputs: Sequence[str]
    name: str  # of its value
    attributes: Mapping[str, Any]


class Graph:
    """Nodes and constants of an ONNX graph of one input, named `X`; values go by their names."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype
        self.nodes: list[Node] = []
        self.constants: dict[str, Array] = {}

    def __call__(self, operator: str, *values: str | Floats | float, **attributes: Any) -> str:
        """Add a node, of values and of arrays that become constants, and return its value."""
        name = f"{operator.lower()}_{len(self.nodes)}"
        inputs = [each if isinstance(each, str) else self.constant(each) for each in values]
        self.nodes.append(Node(operator, inputs, name, attributes))
        return name

    def constant(self, values: Any, dtype: Any = None) -> str:
        """Add an array or number, in the graph's dtype or another, and return its name."""
        array = np.ascontiguousarray(values, dtype=dtype or self.dtype)
        name = f"constant_{len(self.constants)}"
        self.constants[name] = array.reshape(np.shape(values))  # numbers stay numbers
        return name

    def cast(self, value: str, dtype: Any) -> str:
        return self("Cast", value, to=np.dtype(dtype))

    def columns(self, rows: str, places: Sequence[int] | Array) -> str:
        return self("Gather", rows, self.constant(places, np.int64), axis=1)

    def model(
        self, value: str, output: str, dtype: Any, shapes: tuple[Any, Any], facts: Mapping[str, str]
    ) -> Any:
        """Return the whole, which gives a value by the name of an output, as a checked model."""
        if sum(array.nbytes for array in self.constants.values()) > _MOST_BYTES:
            raise ParameterError(
                f"the model takes more than the {in_words(_MOST_BYTES)} that an ONNX file holds; "
                f"fit one of fewer components."
            )
        try:
            import onnx
        except ImportError as error:
            raise OutputError(
                "ONNX files need the package onnx, which is not installed; install it with pip "
                "install 'streamkern[onnx]'."
            ) from error
        helper, kind_of = onnx.helper, onnx.helper.np_dtype_to_tensor_dtype
        nodes = []
        for operator, inputs, name, given in [*self.nodes, Node("Identity", [value], output, {})]:
            attributes = {k: kind_of(v) if k == "to" else v for k, v in given.items()}
            nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        begin, end = (
            [helper.make_tensor_value_info(name, kind_of(np.dtype(dtype)), shape)]
            for name, shape in zip(("X", output), shapes, strict=True)
        )
        used = {name for node in self.nodes for name in node.inputs}  # runtimes warn of others
        held = [name for name in self.constants if name in used]
        constants = [onnx.numpy_helper.from_array(self.constants[name], name) for name in held]
        graph = helper.make_graph(nodes, "streamkern", begin, end, initializer=constants)
        made_by = {"producer_name": "streamkern", "producer_version": __version__}
        versions = {"opset_imports": [helper.make_opsetid("", _OPERATORS)], "ir_version": _FORMAT}
        model = helper.make_model(graph, **versions, **made_by)
        helper.set_model_props(model, dict(facts))
        onnx.checker.check_model(model, full_check=True)
        return model


def feature_parts(graph: Graph, feature_map: FeatureMap, rows: str) -> Iterator[tuple[str, slice]]:
    """Yield features phi(x) / scale of rows, in parts, with the columns that they are."""
    if isinstance(feature_map, Standardized):
        standardised = _standardised(graph, feature_map.standardizer, rows)
        yield from feature_parts(graph, feature_map.inner, standardised)
    elif isinstance(feature_map, Identity):
        yield rows, slice(None)
    elif isinstance(feature_map, (Cosines, SpectralFeatures)):
        yield from _waves(graph, feature_map, rows)
    elif isinstance(feature_map, KernelColumns):
        yield _similarities(graph, feature_map.kernel, feature_map.landmarks, rows), slice(None)
    else:
        raise ParameterError(
            f"the map {feature_map.name!r} is more than operators of ONNX express here; take "
            f"Fourier features, landmarks of a kernel of the Euclidean distance, or identity."
        )


def _standardised(graph: Graph, standardizer: Standardizer, rows: str) -> str:
    """Add what a standardizer makes of the columns that it keeps, with differences in double."""
    if len(standardizer.columns) < standardizer.n_features:
        rows = graph.columns(rows, standardizer.columns)
    rows = graph.cast(rows, np.float64)
    rows = graph("Sub", rows, graph.constant(standardizer.mean, np.float64))
    linear, scale = standardizer.linear, 1.0 / standardizer.deviation
    if standardizer.bends:
        rows = graph("Mul", rows, graph.constant(scale, np.float64))
        rows, scale = _bent(graph, standardizer, rows), np.ones_like(scale)
    if linear is not None and linear.ndim == 1:
        scale = scale * linear
    rows = graph("Mul", rows, graph.constant(scale, np.float64))
    rows = graph.cast(rows, graph.dtype)
    if linear is not None and linear.ndim == 2:
        rows = graph("MatMul", rows, linear.T)
    return rows


def _bent(graph: Graph, standardizer: Standardizer, rows: str) -> str:
    numbers = 0.0, 1.0, np.nan, -FARTHEST, FARTHEST
    zero, one, nan, *ends = (graph.constant(each, np.float64) for each in numbers)
    rows = graph("Where", graph("IsInf", rows), nan, rows)
    if standardizer.knots is None:
        rows = graph("Clip", rows, *ends)
        share = graph("Div", rows, graph.constant(standardizer.bound, np.float64))
        more = graph("Add", graph("Mul", share, share), one)
        return graph("Div", rows, graph("Sqrt", more))
    places, values = standardizer.knots.transpose(0, 2, 1)
    bent = graph.constant(values[0], np.float64)
    # Between two knots b rises by as much of their difference as rows are on the way.
    for k in range(len(places) - 1):
        width, rise = places[k + 1] - places[k], values[k + 1] - values[k]
        way = graph("Sub", rows, graph.constant(places[k], np.float64))
        way = graph("Clip", graph("Div", way, graph.constant(width, np.float64)), zero, one)
        bent = graph("Add", bent, graph("Mul", way, graph.constant(rise, np.float64)))
    return bent


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
        angles = graph("MatMul", rows, frequencies[draws].T)
        if not paired:
            angles = graph("Add", angles, feature_map.phases[draws])
        for place, wave in enumerate(("Cos", "Sin") if paired else ("Cos",)):
            features = graph(wave, angles)
            # Amplitudes of the phase form are for pairs alone.
            if amplitudes is not None and (paired or isinstance(feature_map, Cosines)):
                features = graph("Mul", features, amplitudes[draws])
            step = 2 if paired else 1
            yield features, slice(step * draws.start + place, step * draws.stop, step)


def _similarities(graph: Graph, kernel: kernels.Kernel, landmarks: Floats, rows: str) -> str:
    """Add the values of a kernel of rows and landmarks."""
    if isinstance(kernel, kernels.Sum):
        terms = [
            graph("Mul", _similarities(graph, part, landmarks[:, c], graph.columns(rows, c)), share)
            for share, part, c in kernel.scaled_parts
        ]
        return reduce(partial(graph, "Add"), terms)
    if isinstance(kernel, (kernels.Linear, kernels.Polynomial)):
        products = graph("MatMul", rows, landmarks.T)
        if isinstance(kernel, kernels.Linear):
            return products
        return graph("Pow", graph("Add", products, kernel.constant), kernel.degree)
    if isinstance(kernel, kernels.Laplacian):
        scales = kernel.scales(landmarks.shape[1])
        rows, about = graph("Div", rows, scales), landmarks / scales
        apart = [
            graph("Abs", graph("Sub", graph.columns(rows, [j]), about[None, :, j]))
            for j in range(len(scales))
        ]
        return graph("Exp", graph("Neg", reduce(partial(graph, "Add"), apart)))
    return _radial(graph, kernel, landmarks, rows)


def _radial(graph: Graph, kernel: kernels.Kernel, landmarks: Floats, rows: str) -> str:
    if isinstance(kernel, kernels.Gaussian):
        return graph("Exp", graph("Mul", _squares(graph, kernel, landmarks, rows), -0.5))
    if isinstance(kernel, (kernels.RationalQuadratic, kernels.InverseMultiquadric)):
        over = graph("Mul", _squares(graph, kernel, landmarks, rows), 0.5 / kernel.shape)
        return graph("Pow", graph("Add", over, 1.0), -kernel.shape)
    if isinstance(kernel, kernels.Matern) and kernel.nu in _MATERN:
        distances = graph("Sqrt", _squares(graph, kernel, landmarks, rows))
        a = graph("Mul", distances, math.sqrt(2.0 * kernel.nu))
        first, *others = _MATERN[kernel.nu]
        polynomial = graph.constant(first)
        for coefficient in others:  # by Horner's rule
            polynomial = graph("Add", graph("Mul", polynomial, a), coefficient)
        return graph("Mul", graph("Exp", graph("Neg", a)), polynomial)
    raise ParameterError(
        f"the kernel {kernel.name!r} at landmarks is more than operators of ONNX express here; "
        f"take Fourier features, or the Gaussian or Laplacian kernel."
    )


def _squares(graph: Graph, kernel: kernels.RadialKernel, landmarks: Floats, rows: str) -> str:
    """Add squared distances, |x|^2 - 2 x z + |z|^2 about the landmarks' mean, of scaled rows."""
    centre, scales = landmarks.mean(axis=0), kernel.scales(landmarks.shape[1])
    about = (landmarks - centre) / scales
    rows = graph("Div", graph("Sub", rows, centre), scales)
    axis = graph.constant([1], np.int64)
    lengths = graph("ReduceSum", graph("Mul", rows, rows), axis, keepdims=1)
    products = graph("MatMul", rows, -2.0 * about.T)
    ends = np.square(about).sum(axis=1)
    return graph("Relu", graph("Add", graph("Add", products, lengths), ends))
