"""ONNX graphs, a node at a time, and those of feature maps."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np

from streamkern import kernels
from streamkern._typing import Array, Floats
from streamkern._version import __version__
from streamkern.errors import OutputError, ParameterError
from streamkern.extensions.export.exported import ONNX, kernel_value, refuse_map
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


class Graph:
    """Nodes and constants of an ONNX graph of one input, named `X`; values go by their names."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        try:
            import onnx
        except ImportError as error:
            raise OutputError(
                "ONNX files need the package onnx, which is not installed; install it with pip "
                "install 'streamkern[onnx]'."
            ) from error
        self.onnx: Any = onnx
        self.dtype = dtype
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.n_bytes = 0

    def __call__(self, operator: str, *values: str | Floats | float, **attributes: Any) -> str:
        """Add a node, of values and of arrays that become constants, and return its value."""
        name = f"{operator.lower()}_{len(self.nodes)}"
        inputs = [each if isinstance(each, str) else self.constant(each) for each in values]
        node = self.onnx.helper.make_node(operator, inputs, [name], name=name, **attributes)
        self.nodes.append(node)
        return name

    def constant(self, values: Any, dtype: Any = None) -> str:
        """Add an array or number, in the graph's dtype or another, and return its name."""
        array = np.ascontiguousarray(values, dtype=dtype or self.dtype)
        self.n_bytes += array.nbytes
        if self.n_bytes > _MOST_BYTES:
            raise ParameterError(
                f"the model takes more than the {in_words(_MOST_BYTES)} that an ONNX file holds; "
                f"fit one of fewer components."
            )
        name = f"constant_{len(self.constants)}"
        array = array.reshape(np.shape(values))  # numbers stay numbers
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def cast(self, value: str, dtype: Any) -> str:
        return self("Cast", value, to=self._type(dtype))

    def columns(self, rows: str, places: Sequence[int] | Array) -> str:
        return self("Gather", rows, self.constant(places, np.int64), axis=1)

    def _type(self, dtype: Any) -> int:
        return int(self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def model(
        self, value: str, output: str, dtype: Any, shapes: tuple[Any, Any], facts: Mapping[str, str]
    ) -> Any:
        """Return the whole, which gives a value by the name of an output, as a checked model."""
        helper, kind = self.onnx.helper, self._type(dtype)
        last = helper.make_node("Identity", [value], [output], name=output)
        given, found = (
            [helper.make_tensor_value_info(name, kind, shape)]
            for name, shape in zip(("X", output), shapes, strict=True)
        )
        nodes = [*self.nodes, last]
        graph = helper.make_graph(nodes, "streamkern", given, found, initializer=self.constants)
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", _OPERATORS)],
            ir_version=_FORMAT,
            producer_name="streamkern",
            producer_version=__version__,
        )
        helper.set_model_props(model, dict(facts))
        self.onnx.checker.check_model(model, full_check=True)
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
        refuse_map(feature_map, ONNX)


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
        a = graph("MatMul", rows, landmarks.T)
    elif isinstance(kernel, kernels.Laplacian):
        scales = kernel.scales(landmarks.shape[1])
        rows, about = graph("Div", rows, scales), landmarks / scales
        apart = [
            graph("Abs", graph("Sub", graph.columns(rows, [j]), about[None, :, j]))
            for j in range(len(scales))
        ]
        a = reduce(partial(graph, "Add"), apart)
    else:
        a = _squares(graph, kernel, landmarks, rows)
    value: str = kernel_value(graph, kernel, a, ONNX)
    return value


def _squares(graph: Graph, kernel: Any, landmarks: Floats, rows: str) -> str:
    """Add squared distances, |x|^2 - 2 x z + |z|^2 about the landmarks' mean, of scaled rows."""
    centre, scales = landmarks.mean(axis=0), kernel.scales(landmarks.shape[1])
    about = (landmarks - centre) / scales
    rows = graph("Div", graph("Sub", rows, centre), scales)
    axis = graph.constant([1], np.int64)
    lengths = graph("ReduceSum", graph("Mul", rows, rows), axis, keepdims=1)
    products = graph("MatMul", rows, -2.0 * about.T)
    ends = np.square(about).sum(axis=1)
    return graph("Relu", graph("Add", graph("Add", products, lengths), ends))
