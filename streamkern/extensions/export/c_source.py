"""C export: the graph of predictions as one C99 file that needs no library but libm."""

import math
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Array
from streamkern._version import __version__
from streamkern.extensions.export.onnx import exported
from streamkern.extensions.export.onnx_graph import Graph, Node
from streamkern.storage.outputs import replacing

# Numbers that are made side by side, which compilers turn into vectors.
_AT_ONCE = 32
# Bytes of the numbers of a file, which has some ten letters of each.
_MOST_BYTES = 1 << 27
# Letters of an expression that is still not stored: compilers bound how deep it may be.
_LONGEST = 2000
_KINDS = {np.dtype("i8"): "long", np.dtype("f4"): "float", np.dtype("f8"): "double"}
_SUFFIXES = {"float": "f", "double": "", "long": ""}
_NAMED = {"inf": "INFINITY", "-inf": "-INFINITY", "nan": "NAN"}
# What operators make of numbers.  The first one stays where it is NaN.
_EACH = {
    "Add": "({} + {})", "Sub": "({} - {})", "Mul": "({} * {})", "Div": "({} / {})", "Neg": "(-{})",
    "Abs": "fabs{f}({})", "Sqrt": "sqrt{f}({})", "Exp": "exp{f}({})", "Log": "log{f}({})",
    "Pow": "pow{f}({}, {})", "Cos": "wave{f}({}, 0)", "Sin": "wave{f}({}, 0.25{f})",
    "Min": "least({}, {})", "Max": "most({}, {})", "Clip": "least(most({}, {}), {})",
    "Relu": "most({}, 0.0)", "IsInf": "isinf({})", "Greater": "({} > {})", "Less": "({} < {})",
    "Where": "({} ? {} : {})", "Cast": "({kind}){}", "Squeeze": "{}", "Identity": "{}",
}  # fmt: skip
_ENDS = """\
static inline double least(double a, double b) { return b < a ? b : a; }
static inline double most(double a, double b) { return b > a ? b : a; }
"""
_SOFTMAX = """\
static void softmax(int n, const double *a, double *shares)
{
    double largest = a[0], sum = 0.0;
    for (int k = 1; k < n; k++) largest = most(largest, a[k]);
    for (int k = 0; k < n; k++) sum += shares[k] = exp(a[k] - largest);
    for (int k = 0; k < n; k++) shares[k] /= sum;
}
"""
_DOT = """\
static double dot{f}(int n, const {kind} *a, const {kind} *w)
{{
    double sums[8] = {{0.0}};
    int j = 0;
    for (; j + 8 <= n; j += 8)
        for (int k = 0; k < 8; k++) sums[k] += (double)a[j + k] * w[j + k];
    for (; j < n; j++) sums[0] += (double)a[j] * w[j];
    for (int k = 1; k < 8; k++) sums[0] += sums[k];
    return sums[0];
}}
"""
_TIMES = """\
static void times{f}(int n, int p, const {kind} *a, const {kind} *w, {kind} *products)
{{
    for (int b = 0; b < n; b += {at_once}, w += {at_once} * p) {{
        {kind} sums[{at_once}] = {{0}};
        for (int j = 0; j < p; j++)
            for (int k = 0; k < {at_once}; k++) sums[k] += a[j] * w[{at_once} * j + k];
        for (int k = 0; k < {at_once}; k++) products[b + k] = sums[k];
    }}
}}
"""
# cos(2 pi t) = sin(2 pi (1/4 - |t|)) by its series, which compilers make into vectors as they do
# not the cosine of a library.
_WAVE = """\
static {kind} wave{f}({kind} angle, {kind} turns)
{{
    const {kind} t = angle * {turn}{f} - turns;
    const {kind} s = 0.25{f} - fabs{f}(t - rint{f}(t)), q = s * s;
    {kind} v = 0;
{steps}    return v * s;
}}
"""
# Terms of the series: what is left out is less than its rounding.
_TERMS = {"float": 7, "double": 11}


class Value(NamedTuple):
    """What a node makes of a row: numbers of a type of C, as an expression of their place k."""

    kind: str
    width: int
    text: str
    array: str = ""  # that they are in, where they are stored


def to_c(
    model: Any,
    path: str | Path,
    *,
    precision: str | None = None,
    return_std: bool = False,
    interval: float | None = None,
    force: bool = False,
) -> str:
    """Write the predictions of a fitted model, or the scores of principal components, as C99.

    The file has `void predict(const double *x, double *y)` of a row x (p,), and
    `void predict_rows(long n, const double *x, double *y)` of rows one after another, which any
    thread may call.  y is what the graph of `to_onnx` gives, side by side.  The name that is
    returned, errors, and models that can be written are as there.

    Parameters
    ----------
    model, path, precision, return_std, interval, force
        As in `to_onnx`.

    Returns
    -------
    str
    """
    how: Any = {"return_std": return_std, "interval": interval}
    graph = exported(model, ("a C file", _MOST_BYTES), precision, "double", **how)
    source = _Source(graph).text()
    with replacing(path, force=force) as temporary:
        temporary.write_text(source)
    return next(iter(graph.outputs))


class _Source:
    """A graph as C: numbers that are used once stay expressions, and others are stored."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.arrays, self.steps = graph, list[str](), list[str]()
        uses = Counter(name for node in graph.nodes for name in node.inputs)
        p = graph.inputs["X"][1][1]
        self.values = {"X": _stored_at("x", "double", p)}
        for node in graph.nodes:
            value = getattr(self, f"_{node.operator.lower()}", self._each)(node)
            if uses[node.name] > 1 or len(value.text) > _LONGEST:
                value = self._stored(value, node.name)
            self.values[node.name] = value

    def text(self) -> str:
        p, width, labels = self.values["X"].width, 0, self.graph.facts.get("classes", "")
        for made in map(self.values.__getitem__, self.graph.outputs):
            y = f"y[{width} + k]"
            set_y = f"{y} = {made.text}; if (!isfinite({y})) {y} = NAN;"
            self.steps.append(_loop(made.width, set_y))
            width += made.width
        body = "\n    ".join(self.steps)
        helpers = "\n".join(text for name, text in _helpers() if f"{name}(" in body)
        labels = f", classes {labels}".replace("*/", "*\\/").replace("/*", "/\\*") * bool(labels)
        return f"""\
/* {", ".join(self.graph.outputs)} by streamkern {__version__}{labels}
   void predict(const double *x, double *y): x has {p} numbers, and y {width}.
   void predict_rows(long n, const double *x, double *y): n rows, one after another.
   Compile with cc -O3 -march=native, and link with -lm.  y is NaN where it is not finite. */
#include <math.h>

{helpers}
{"".join(self.arrays)}
void predict(const double *x, double *y)
{{
    {body}
}}

void predict_rows(long n, const double *x, double *y)
{{
    for (long i = 0; i < n; i++) predict(x + {p} * i, y + {width} * i);
}}
"""

    def _value(self, name: str) -> Value:
        if name not in self.values:
            array = self.graph.constants[name]
            kind = _KINDS[array.dtype]
            if array.size == 1:
                self.values[name] = Value(kind, 1, f"({_decimals(array)[0]})")
            else:
                self.values[name] = _stored_at(self._held(name, array), kind, array.size)
        return self.values[name]

    def _held(self, name: str, array: Array) -> str:
        kind, held = _KINDS[array.dtype], ",\n".join(_decimals(array))
        self.arrays.append(f"static const {kind} {name}[{array.size}] = {{{held}}};\n")
        return name

    def _made(self, kind: str, width: int, name: str, step: str, room: int = 0) -> Value:
        """Store numbers that a step of C makes, with room for more."""
        self.steps += [f"{kind} {name}[{room or width}];", step]
        return _stored_at(name, kind, width)

    def _stored(self, value: Value, name: str, kind: str = "") -> Value:
        if value.array and kind in ("", value.kind):
            return value
        step = _loop(value.width, f"{name}[k] = {value.text};")
        return self._made(kind or value.kind, value.width, name, step)

    def _each(self, node: Node) -> Value:
        given = [self._value(name) for name in node.inputs]
        kind = next((value.kind for value in given if value.kind != "long"), "long")
        if node.operator in ("Cast", "IsInf", "Greater", "Less"):
            kind = _KINDS[node.attributes.get("to", np.dtype("i8"))]
        texts, suffix = [value.text for value in given], _SUFFIXES[given[0].kind]
        made = f"({' + '.join(['{}'] * len(given))})" if node.operator == "Sum" else ""
        text = (made or _EACH[node.operator]).format(*texts, f=suffix, kind=kind)
        return Value(kind, max(value.width for value in given), text)

    def _gather(self, node: Node) -> Value:
        places = self._value(node.inputs[1])
        rows = self._stored(self._value(node.inputs[0]), f"{node.name}_of")
        return Value(rows.kind, places.width, f"{rows.array}[{places.text}]")

    def _concat(self, node: Node) -> Value:
        width, steps = 0, list[str]()
        for each in map(self._value, node.inputs):
            steps.append(_loop(each.width, f"{node.name}[{width} + k] = {each.text};"))
            width += each.width
        return self._made("double", width, node.name, "\n    ".join(steps))

    def _softmax(self, node: Node) -> Value:
        rows = self._stored(self._value(node.inputs[0]), f"{node.name}_of")
        step = f"softmax({rows.width}, {rows.array}, {node.name});"
        return self._made("double", rows.width, node.name, step)

    def _reducesum(self, node: Node) -> Value:
        value, name = self._value(node.inputs[0]), node.name
        step = f"{name}[0] = 0.0; " + _loop(value.width, f"{name}[0] += {value.text};")
        return self._made("double", 1, name, step)

    def _matmul(self, node: Node) -> Value:
        matrix, name = self.graph.constants[node.inputs[1]], node.name
        (p, q), kind = matrix.shape, _KINDS[matrix.dtype]
        f, rows = _SUFFIXES[kind], self._stored(self._value(node.inputs[0]), f"{name}_of", kind)
        if q < _AT_ONCE:
            held = self._held(f"{name}_by", matrix.T)
            step = _loop(q, f"{name}[k] = dot{f}({p}, {rows.array}, {held} + {p} * k);")
            return self._made("double", q, name, step)
        room = -(-q // _AT_ONCE) * _AT_ONCE
        filled = np.pad(matrix, ((0, 0), (0, room - q))).reshape(p, -1, _AT_ONCE)
        held = self._held(f"{name}_by", filled.swapaxes(0, 1))
        step = f"times{f}({room}, {p}, {rows.array}, {held}, {name});"
        return self._made(kind, q, name, step, room)


def _decimals(array: Array) -> list[str]:
    """Return decimals that are read as the same bits again."""
    texts, suffix = array.ravel().astype(str).tolist(), _SUFFIXES[_KINDS[array.dtype]]
    return [_NAMED.get(text, text + suffix) for text in texts]


def _stored_at(name: str, kind: str, width: int) -> Value:
    return Value(kind, width, f"{name}[k]" if width > 1 else f"{name}[0]", name)


def _loop(n: int, step: str) -> str:
    return f"for (int k = 0; k < {n}; k++) {{ {step} }}"


def _helpers() -> list[tuple[str, str]]:
    """Return functions of C by name, those first that others call."""
    found = [("", _ENDS), ("softmax", _SOFTMAX)]
    for kind, n_terms in _TERMS.items():
        degrees, f = range(2 * n_terms - 1, 0, -2), _SUFFIXES[kind]
        series = ((-1) ** (d // 2) * math.tau**d / math.factorial(d) for d in degrees)
        steps = "".join(f"    v = v * q + {each!r}{f};\n" for each in series)
        how = {"kind": kind, "f": f, "at_once": _AT_ONCE, "turn": 1 / math.tau, "steps": steps}
        named = ("dot", _DOT), ("times", _TIMES), ("wave", _WAVE)
        found += [(name + f, text.format(**how)) for name, text in named]
    return found
