"""Metric section of the page: which inputs and directions matter, and how that was learnt."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streamkern.kernels import parsed_kernel
from streamkern.report.numbers import number, percent
from streamkern.report.page_facts import Bar
from streamkern.sources.preprocessing.column_names import named_inputs

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_INPUTS, _MOST_DIRECTIONS, _NAMED = 40, 12, 4
# Of a direction, inputs with a smaller part of the largest one are not named.
_MINOR = 0.2


class MetricFacts(NamedTuple):
    """What the page shows of a metric; `kept` is the place of the best round."""

    how: str
    is_plain: bool
    inputs: list[Bar]
    more_inputs: int
    directions: list[Bar]
    rounds: list[tuple[str, ...]]
    kept: int | None


def metric_facts(report: dict[str, Any]) -> MetricFacts | None:
    """Return what is shown of the metric of a fit, None where it has none."""
    metric = report.get("metric")
    if not metric:
        return None
    rounds, kept = metric.get("rounds") or [], metric.get("kept")
    names, parts = named_inputs(report, metric["columns"]), metric["importance"]
    heaviest = np.argsort(-np.array(parts), kind="stable").tolist()
    inputs = [
        Bar(names[j], percent(parts[j]), parts[j] / max(parts), number(metric["per_unit"][j]))
        for j in heaviest[:_MOST_INPUTS]
    ]
    values = metric["eigenvalues"][:_MOST_DIRECTIONS]
    composed = [_composition(direction, names) for direction in metric["directions"]]
    composed += [""] * (len(values) - len(composed))
    return MetricFacts(
        how=_how(metric),
        is_plain=kept is not None and rounds[kept]["number"] == 0,
        inputs=inputs,
        more_inputs=len(parts) - len(inputs),
        directions=[
            Bar(f"direction {k + 1}", percent(value), value / values[0], inputs_of)
            for k, (value, inputs_of) in enumerate(zip(values, composed, strict=False))
        ],
        rounds=[_round(each) for each in rounds],
        kept=kept,
    )


def _how(metric: dict[str, Any]) -> str:
    if not metric.get("rounds"):
        return "The metric was given."
    rounds = metric["rounds"]
    n_rows, kept = rounds[0]["n_rows"], rounds[metric["kept"]]
    weighs = metric["kind"].startswith("diagonal") or parsed_kernel(kept["kernel"]).along_axes
    what = "one weight for every input" if weighs else "directions"
    told = (
        f"The metric is the average outer product of the gradients of a fit, learnt as {what} on a "
        f"sample of {n_rows:,} rows in rounds: each fits in the metric of the one before. "
    )
    if kept["number"] == 0:
        return told + "Plain distances predicted the rows held out better, and were kept."
    return told + f"Round {kept['number']} predicted the rows held out best, and was kept."


def _composition(direction: Sequence[float], names: Sequence[str]) -> str:
    """Return the inputs that a direction is made of."""
    parts = np.array(direction)
    order = np.argsort(-np.abs(parts), kind="stable")[:_NAMED]
    major = [j for j in order.tolist() if abs(parts[j]) >= _MINOR * np.abs(parts).max()]
    return ", ".join(f"{parts[j]:+.2f} {names[j]}" for j in major)


def _round(tried: dict[str, Any]) -> tuple[str, ...]:
    return (
        str(tried["number"]),
        tried["kernel"],
        tried["feature_map"],
        number(tried["length_scale"]),
        f"{tried['n_components']:,}",
        f"{math.sqrt(tried['relative_mse']):.4f}",
    )
