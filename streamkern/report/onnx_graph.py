"""ONNX graphs, a node at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern._version import __version__
from streamkern.errors import OutputError, ParameterError
from streamkern.runtime.memory import in_words

if TYPE_CHECKING:
    from collections.abc import Mapping

# What protocol buffers hold, with room for the nodes.
_MOST_BYTES = 2_000_000_000
# Operators and file format of 2021, which every runtime since then knows.
_OPERATORS, _FORMAT = 17, 8


class Graph:
    """Nodes and constants of an ONNX graph of one input, named `X`.

    Values are known by their names.
    """

    def __init__(self, dtype: np.dtype[Any]) -> None:
        try:
            import onnx  # noqa: PLC0415  an extra, and slow
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

    def __call__(self, operator: str, *values: str, **attributes: Any) -> str:
        """Add a node, and return what its value is called."""
        name = f"{operator.lower()}_{len(self.nodes)}"
        node = self.onnx.helper.make_node(operator, list(values), [name], name=name, **attributes)
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
        """Add a conversion to another dtype."""
        return self("Cast", value, to=self._type(dtype))

    def _type(self, dtype: Any) -> int:
        return int(self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def model(
        self,
        output: str,
        dtype: Any,
        shapes: tuple[list[Any], list[Any]],
        facts: Mapping[str, str],
    ) -> Any:
        """Return the whole as a checked ONNX model."""
        helper, kind = self.onnx.helper, self._type(dtype)
        infos = [
            helper.make_tensor_value_info(name, kind, shape)
            for name, shape in zip(("X", output), shapes, strict=True)
        ]
        graph = helper.make_graph(
            self.nodes, "streamkern", [infos[0]], [infos[1]], initializer=self.constants
        )
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
