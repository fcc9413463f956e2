"""C export: predictions as one C99 file that needs no library but libm."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from streamkern import kernels
from streamkern._typing import Floats
from streamkern._version import __version__
from streamkern.errors import ParameterError
from streamkern.extensions.export.exported import (
    C,
    exported,
    exported_form,
    kernel_value,
    refuse_map,
)
from streamkern.features import Cosines, Identity, KernelColumns, Standardized, Standardizer
from streamkern.features.spectral import SpectralFeatures
from streamkern.features.standardizer import FARTHEST
from streamkern.predict.predictor import Predictor
from streamkern.storage.outputs import replacing

# Features that are made side by side, which compilers turn into vectors.
_AT_ONCE = 32
# Terms of the sine's series, by the type: what is left out is less than its rounding.
_TERMS = {"float": 7, "double": 11}
_OPERATIONS = {
    "Add": "({} + {})",
    "Mul": "({} * {})",
    "Neg": "(-{})",
    "Pow": "pow({}, {})",
    "Exp": "exp({})",
    "Sqrt": "sqrt({})",
}
_TYPES: dict[str, Any] = {"int": np.int64, "float": np.float32, "double": np.float64}


class Part(NamedTuple):
    """The function sum_k coef_k g(start_k + sum_j step(v_j, z_kj)) of scaled inputs v."""

    step: str
    value: str  # g of a
    points: Floats  # z (K, p)
    coef: Floats  # (K, q)
    columns: Any  # of the standardised inputs (p,)
    scales: Any = 1.0  # of these
    starts: Any = 0.0


def to_c(model: Any, path: str | Path, *, precision: str | None = None, force: bool = False) -> str:
    """Write the predictions of a fitted regression, or the scores of principal components, as C99.

    The file has `void predict(const double *x, double *y)` of a row x (p,), whose y (q,) is as of
    `predict`, and `void predict_rows(long n, const double *x, double *y)` of rows one after
    another.  Any thread may call them.  Parameters and features are those of `to_onnx`.

    Returns
    -------
    str
        The name of what the functions give.

    Raises
    ------
    ParameterError
        If the model is a classifier, or its features have no such form.
    OutputError
        If the file exists and `force` is not given, or cannot be written.
    """
    predictor, output, rule = exported(model, "a C file", precision)
    if rule is not None:
        raise ParameterError(
            "a C file is of a regression or of principal components, not of a classifier; write "
            "an ONNX file (--out MODEL.onnx)."
        )
    source = _source(predictor, output)
    with replacing(path, force=force) as temporary:
        temporary.write_text(source)
    return output


def _source(predictor: Predictor, output: str) -> str:
    form, q, p = exported_form(predictor), predictor.n_targets, predictor.feature_map.n_features
    inner: Any = form.feature_map
    standardizer = Standardizer(np.arange(p), np.zeros(p), np.ones(p), p)
    if isinstance(inner, Standardized):
        inner, standardizer = inner.inner, inner.standardizer
    real = "float" if form.dtype == np.float32 else "double"
    parts = list(_parts(inner, form.coef.astype(float)))
    start = form.constant - np.broadcast_to(form.shift, len(form.coef)) @ form.coef.astype(float)
    calls = "".join(f"    part_{i}(u, y);\n" for i in range(len(parts)))
    ends = predictor.limits or (-math.inf, math.inf)
    least, most = (repr(end).replace("inf", "INFINITY") for end in ends)
    waves = _wave(real) if isinstance(inner, (Cosines, SpectralFeatures)) else ""
    functions = "".join(_function(i, part, real) for i, part in enumerate(parts))
    return f"""\
/* {output} of {p} inputs, by streamkern {__version__}.

   void predict(const double *x, double *y): x has {p} numbers, and y {q}.
   void predict_rows(long n, const double *x, double *y): n rows, one after another.

   y is NaN where an input that counts is not finite.  Compile with cc -O3 -march=native, and link
   with -lm. */

#include <math.h>

typedef {real} real;

{waves}{functions}void predict(const double *x, double *y)
{{
    {_array("start", start)}
    double wrong = 0.0; /* NaN where an input is not finite */
{_standardised(standardizer)}
    for (int t = 0; t < {q}; t++) y[t] = start[t] + wrong;
{calls}    for (int t = 0; t < {q}; t++) {{
        if (!isfinite(y[t])) y[t] = NAN;
        if (y[t] < {least}) y[t] = {least};
        if (y[t] > {most}) y[t] = {most};
    }}
}}

void predict_rows(long n, const double *x, double *y)
{{
    for (long i = 0; i < n; i++) predict(x + i * {p}, y + i * {q});
}}
"""


def _parts(feature_map: Any, coef: Floats) -> Iterator[Part]:
    """Yield the parts whose sum is the function of features phi(x) / scale with coefficients."""
    columns = np.arange(feature_map.n_features)
    if isinstance(feature_map, Identity):
        yield Part("v[j] * z", "a", coef.T, np.eye(coef.shape[1]), columns)
    elif isinstance(feature_map, KernelColumns):
        yield from _at_landmarks(feature_map.kernel, feature_map.landmarks, coef, columns)
    elif isinstance(feature_map, (Cosines, SpectralFeatures)):
        if isinstance(feature_map, SpectralFeatures) and feature_map.paired:
            feature_map = feature_map.subset(np.arange(feature_map.n_components))
        if isinstance(feature_map, Cosines) and feature_map.amplitudes is not None:
            coef = coef * feature_map.amplitudes[:, None]
        turns, starts = feature_map.frequencies / math.tau, feature_map.phases / math.tau % 1.0
        yield Part("v[j] * z", "wave(a)", turns, coef, columns, starts=starts)
    else:
        refuse_map(feature_map, C)


def _at_landmarks(kernel: Any, landmarks: Floats, coef: Floats, columns: Any) -> Iterator[Part]:
    if isinstance(kernel, kernels.Sum):
        for share, part, some in kernel.scaled_parts:
            yield from _at_landmarks(part, landmarks[:, some], share * coef, columns[some])
        return
    step, scales = "(v[j] - z) * (v[j] - z)", np.ones(len(columns))
    if isinstance(kernel, (kernels.Linear, kernels.Polynomial)):
        step = "v[j] * z"
    else:
        scales = 1.0 / kernel.scales(len(columns))
        step = "fabs(v[j] - z)" if isinstance(kernel, kernels.Laplacian) else step
    value = kernel_value(_operation, kernel, "a", C)
    yield Part(step, value, landmarks * scales, coef, columns, scales)


def _operation(name: str, *values: Any) -> str:
    return _OPERATIONS[name].format(*(v if isinstance(v, str) else repr(float(v)) for v in values))


def _wave(real: str) -> str:
    """Return the cosine of an angle in turns, cos(2 pi t) = sin(2 pi (1/4 - |t|)) by its series.

    Compilers make it of many angles at a time, which they do not with the cosine of a library.
    """
    f, degrees = "f" * (real == "float"), range(1, 2 * _TERMS[real], 2)
    *series, last = ((-1) ** (d // 2) * math.tau**d / math.factorial(d) for d in degrees)
    steps = "".join(f"    v = v * q + {c!r}{f};\n" for c in reversed(series))
    return f"""\
static real wave(real t) /* cos(2 pi t) */
{{
    const real s = 0.25{f} - fabs{f}(t - rint{f}(t)), q = s * s;
    real v = {last!r}{f};
{steps}    return v * s;
}}

"""


def _function(i: int, part: Part, real: str) -> str:
    """Return what adds a part to predictions, some of its points at a time."""
    (K, p), q, m = part.points.shape, part.coef.shape[1], _AT_ONCE
    n = -(-K // m)

    def blocks(values: Floats) -> Floats:  # (n, numbers a point, m)
        filled = np.pad(values, ((0, n * m - K), (0, 0)))
        return filled.reshape(n, m, -1).swapaxes(1, 2)

    starts = np.broadcast_to(part.starts, K)[:, None]
    return f"""\
static real value_{i}(real a) {{ return {part.value}; }}

static void part_{i}(const real *u, double *y)
{{
    {_array("points", blocks(part.points), real)}
    {_array("starts", blocks(starts)[:, 0], real)}
    {_array("coef", blocks(part.coef))}
    {_array("columns", part.columns, "int")}
    {_array("scales", np.broadcast_to(part.scales, p), real)}
    real v[{p}];
    for (int j = 0; j < {p}; j++) v[j] = u[columns[j]] * scales[j];
    for (int b = 0; b < {n}; b++) {{
        real a[{m}];
        for (int k = 0; k < {m}; k++) a[k] = starts[b][k];
        for (int j = 0; j < {p}; j++)
            for (int k = 0; k < {m}; k++) {{
                const real z = points[b][j][k];
                a[k] += {part.step};
            }}
        for (int k = 0; k < {m}; k++) a[k] = value_{i}(a[k]);
        for (int t = 0; t < {q}; t++) {{
            double sums[{m}];
            for (int k = 0; k < {m}; k++) sums[k] = coef[b][t][k] * a[k];
            for (int half = {m // 2}; half; half /= 2)
                for (int k = 0; k < half; k++) sums[k] += sums[k + half];
            y[t] += sums[0];
        }}
    }}
}}

"""


def _standardised(standardizer: Standardizer) -> str:
    """Return what makes standardised inputs u of x, with differences in double."""
    linear, bound, knots = standardizer.linear, standardizer.bound, standardizer.knots
    n, held = len(standardizer.columns), [_array("columns", standardizer.columns, "int")]
    held += [_array("mean", standardizer.mean), _array("scales", 1.0 / standardizer.deviation)]
    bend = ""
    if bound is not None:
        bend = f"""
        if (fabs(v[j]) > {FARTHEST!r}) v[j] = copysign({FARTHEST!r}, v[j]);
        v[j] /= sqrt(1.0 + (v[j] / {bound!r}) * (v[j] / {bound!r}));"""
    if knots is not None:
        held += [_array("places", knots[0]), _array("values", knots[1])]
        bend += f"""
        double bent = values[j][0];
        for (int i = 1; i < {knots.shape[2]}; i++) {{ /* straight from one knot to the next */
            double way = (v[j] - places[j][i - 1]) / (places[j][i] - places[j][i - 1]);
            way = way < 0.0 ? 0.0 : way > 1.0 ? 1.0 : way;
            bent += way * (values[j][i] - values[j][i - 1]);
        }}
        v[j] = bent;"""
    if linear is not None and linear.ndim == 2:
        held.append(_array("metric", linear.T))
        made = f"""real u[{len(linear)}] = {{0}};
    for (int j = 0; j < {n}; j++)
        for (int i = 0; i < {len(linear)}; i++) u[i] += metric[j][i] * v[j];"""
    else:
        held.append(_array("metric", np.ones(n) if linear is None else linear))
        made = f"real u[{n}];\n    for (int j = 0; j < {n}; j++) u[j] = metric[j] * v[j];"
    arrays = "\n    ".join(held)
    return f"""\
    {arrays}
    double v[{n}];
    for (int j = 0; j < {n}; j++) {{
        v[j] = (x[columns[j]] - mean[j]) * scales[j];
        wrong += 0.0 * v[j];{bend}
    }}
    {made}"""


def _array(name: str, values: Any, kind: str = "double") -> str:
    """Return a constant array of C, in decimals that are read as the same bits again."""
    array = np.asarray(values, _TYPES[kind])
    texts = np.char.add(array.astype(str), "f" * (kind == "float")).tolist()
    sizes = "".join(f"[{size}]" for size in array.shape)
    return f"static const {kind} {name}{sizes} = {_braced(texts)};"


def _braced(values: Any) -> str:
    return values if isinstance(values, str) else "{" + ",\n".join(map(_braced, values)) + "}"
