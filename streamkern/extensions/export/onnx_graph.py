"""Graphs of operators, which NumPy's functions of their values add to, and ONNX models of them."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Array
from streamkern._version import __version__
from streamkern.errors import OutputError

# Operators and file format of 2021, which every runtime since then knows.
_OPERATORS, _FORMAT = {"": 17, "ai.onnx.ml": 3}, 8
_OF_NUMPY: dict[Any, str] = {
    np.add: "Add", np.subtract: "Sub", np.multiply: "Mul", np.divide: "Div", np.negative: "Neg",
    np.absolute: "Abs", np.sqrt: "Sqrt", np.exp: "Exp", np.log: "Log", np.power: "Pow",
    np.cos: "Cos", np.sin: "Sin", np.minimum: "Min", np.maximum: "Max", np.clip: "Clip",
    np.isinf: "IsInf", np.isnan: "IsNaN", np.greater: "Greater", np.equal: "Equal", np.less: "Less",
    np.where: "Where", np.matmul: "MatMul",
}  # fmt: skip


class Node(NamedTuple):
    operator: str
    inputs: Sequence[str]
    name: str  # of its value
    attributes: Mapping[str, Any]


class Value(np.lib.mixins.NDArrayOperatorsMixin):
    """Numbers of every row, (n, ...), at a node of a graph."""

    def __init__(self, graph: "Graph", name: str, dtype: Any) -> None:
        self.graph, self.name, self.dtype = graph, name, np.dtype(dtype)

    def __array_ufunc__(self, function: Any, method: str, *values: Any, **_: Any) -> Any:
        if function is np.log1p:
            return np.log(1.0 + values[0])
        if function is np.power and np.isscalar(values[1]) and values[1] == 2:
            return values[0] * values[0]
        return self.graph(_OF_NUMPY[function], *values) if function in _OF_NUMPY else NotImplemented

    def __array_function__(self, function: Any, kinds: Any, values: Any, _: Any) -> Any:
        return self.__array_ufunc__(function, "", *values)

    def astype(self, dtype: Any) -> Any:
        return self.graph("Cast", self, dtype=np.dtype(dtype), to=np.dtype(dtype))

    def columns(self, places: Sequence[int] | Array) -> Any:
        return self.graph("Gather", self, self.graph.constant(places, np.int64), axis=1)

    def sums(self) -> Any:
        """Return the sum of every row, (n, 1)."""
        return self.graph("ReduceSum", self, self.graph.constant([1], np.int64), keepdims=1)


class Graph:
    """Nodes and constants of a graph, from its inputs to its outputs."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.constants: dict[str, Array] = {}
        self.inputs: dict[str, tuple[Any, list[Any]]] = {}  # dtypes and shapes
        self.outputs: dict[str, tuple[Any, list[Any]]] = {}
        self.facts: dict[str, str] = {}
        self.reserved: set[str] = set()  # names of inputs to come

    def __call__(self, operator: str, *values: Any, dtype: Any = None, **attributes: Any) -> Any:
        """Add a node, of values and of arrays that become constants of their dtype."""
        kind = next(each.dtype for each in values if isinstance(each, Value))
        name = self._free(f"{operator.lower()}_{len(self.nodes)}")
        self.nodes.append(Node(operator, [self._name(v, kind) for v in values], name, attributes))
        return Value(self, name, dtype or kind)

    def _free(self, name: str) -> str:
        """Return a name, or a longer one where the graph takes what is called so."""
        return self._free(f"{name}_") if name in self.reserved else name

    def _name(self, value: Any, dtype: Any) -> str:
        if isinstance(value, str):
            return value
        return value.name if isinstance(value, Value) else self.constant(value, dtype)

    def constant(self, values: Any, dtype: Any) -> str:
        array = np.ascontiguousarray(values, dtype=dtype)
        name = self._free(f"constant_{len(self.constants)}")
        self.constants[name] = array.reshape(np.shape(values))  # numbers stay numbers
        return name

    def taken(self, name: str, dtype: Any, width: int) -> Any:
        """Return what the graph takes by a name, (n, width)."""
        self.inputs[name] = dtype, ["n", width]
        return Value(self, name, dtype)

    def give(self, name: str, value: Value, width: int | None) -> None:
        """Let the graph give a value by a name, (n, width), or (n,)."""
        if width is None:
            value = self("Squeeze", value, self.constant([1], np.int64))
        self.nodes.append(Node("Identity", [value.name], name, {}))
        self.outputs[name] = value.dtype, ["n"] if width is None else ["n", width]

    def model(self) -> Any:
        """Return the checked model of the graph."""
        try:
            import onnx
        except ImportError as error:
            raise OutputError(
                "ONNX files need the package onnx, which is not installed; install it with pip "
                "install 'streamkern[onnx]'."
            ) from error
        helper, kind_of = onnx.helper, onnx.helper.np_dtype_to_tensor_dtype
        nodes = []
        for operator, inputs, name, given in self.nodes:
            attributes = {k: kind_of(v) if k == "to" else v for k, v in given.items()}
            nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        begin, end = (
            [helper.make_tensor_value_info(name, kind_of(np.dtype(kind)), shape)
             for name, (kind, shape) in each.items()]
            for each in (self.inputs, self.outputs)
        )  # fmt: skip
        used = {name for node in self.nodes for name in node.inputs}  # runtimes warn of others
        arrays = {name: array for name, array in self.constants.items() if name in used}
        held = [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()]
        graph = helper.make_graph(nodes, "streamkern", begin, end, initializer=held)
        made_by = {"producer_name": "streamkern", "producer_version": __version__}
        versions = [helper.make_opsetid(*each) for each in _OPERATORS.items()]
        model = helper.make_model(graph, opset_imports=versions, ir_version=_FORMAT, **made_by)
        helper.set_model_props(model, self.facts)
        onnx.checker.check_model(model, full_check=True)
        return model
