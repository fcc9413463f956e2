"""What a metric says in a report: which inputs and directions matter, and how it was learnt."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streamkern.kernels import parsed_kernel
from streamkern.report.numbers import number, percent
from streamkern.sources.preprocessing.column_names import named_inputs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamkern.models.ridge_model import RidgeModel

_MOST_INPUTS, _MOST_DIRECTIONS, _NAMED = 40, 12, 4
# Of a direction, inputs with a smaller part of the largest one are not named.
_MINOR = 0.2


class Weight(NamedTuple):
    """How much an input or a direction weighs, as a part of the whole and of the heaviest."""

    name: str
    of_whole: str
    detail: str
    share: float


class MetricFacts(NamedTuple):
    """What the section on inputs shows of a metric."""

    how: str
    is_plain: bool
    inputs: list[Weight]
    more_inputs: int
    directions: list[Weight]
    rounds: list[tuple[str, ...]]
    kept: int | None


def metric_facts(model: RidgeModel) -> MetricFacts | None:
    """Return what is shown of the metric, None where the model has none."""
    metric = model.report_.get("metric")
    if not metric:
        return None
    rounds, kept = metric.get("rounds") or [], metric.get("kept")
    metric = metric | {"names": named_inputs(model.report_, metric["columns"])}
    inputs = _inputs(metric)
    return MetricFacts(
        how=_how(metric),
        is_plain=kept is not None and rounds[kept]["number"] == 0,
        inputs=inputs[:_MOST_INPUTS],
        more_inputs=max(len(inputs) - _MOST_INPUTS, 0),
        directions=_directions(metric),
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


def _inputs(metric: dict[str, Any]) -> list[Weight]:
    """Return the inputs, the heaviest first."""
    parts = metric["importance"]
    order = np.argsort(-np.array(parts), kind="stable").tolist()
    return [
        Weight(
            metric["names"][j],
            percent(parts[j]),
            number(metric["per_unit"][j]),
            parts[j] / parts[order[0]],
        )
        for j in order
    ]


def _directions(metric: dict[str, Any]) -> list[Weight]:
    """Return the eigenvalues, and of the first what inputs their directions are made of."""
    values = metric["eigenvalues"][:_MOST_DIRECTIONS]
    named = [_made_of(direction, metric["names"]) for direction in metric["directions"]]
    named += [""] * (len(values) - len(named))
    return [
        Weight(f"direction {k + 1}", percent(value), detail, value / values[0])
        for k, (value, detail) in enumerate(zip(values, named, strict=False))
    ]


def _made_of(direction: Sequence[float], names: Sequence[str]) -> str:
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
