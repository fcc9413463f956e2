"""The picture of a comparison of random features with exact kernel ridge."""

from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from streamkern.estimators.comparison import Comparison
from streamkern.extensions.report.numbers import number
from streamkern.extensions.report.pictures import GUIDE, UNDATED, drawing_style
from streamkern.storage.outputs import replacing


def plot_comparison(comparison: Comparison, path: str | Path, *, force: bool = False) -> None:
    """Draw the test error and the kernel's error against the number of random features.

    Lines are means over the seeds, bands the intervals of the trials; exact kernel ridge is a
    horizontal line beside the test errors.
    """
    exact, *features = comparison.trials
    form = str(path).rsplit(".", 1)[-1].lower()
    scale = number(comparison.kernel["length_scale"])
    caption = (
        f"{comparison.kernel['name'].capitalize()} kernel, length scale {scale}; "
        f"{comparison.n_train:,} rows were fitted and {comparison.n_test:,} tested. Lines are "
        f"means over {len(features[0].seeds)} draws, bands 95% intervals of the mean."
    )
    with drawing_style() as canvas:
        figure = canvas(figsize=(7.2, 3.5), layout="constrained")
        left, right = figure.subplots(1, 2)
        left.axhline(exact.test_rmse, label=f"exact {exact.test_rmse:.4g}", **GUIDE)
        for axes, measure in ((left, "test_rmse"), (right, "kernel_error")):
            for name, trials in groupby(features, attrgetter("map")):
                _draw_line(axes, str(name), list(trials), measure)
            axes.set_xscale("log", base=2)
            axes.xaxis.set_major_formatter("{x:,.0f}")
            axes.set_xlabel("number of random features D")
        left.set(title="Test error", ylabel="test RMSE, in units of the target")
        right.set(title="Error of the kernel", ylabel="mean |φ(x)ᵀφ(x′) − k(x, x′)|")
        right.set_yscale("log")
        left.legend()
        figure.supxlabel(caption, x=0.01, ha="left", fontsize=7, wrap=True)
        with replacing(path, force=force) as temporary:
            figure.savefig(temporary, dpi=300, format=form, metadata=UNDATED.get(form))


def _draw_line(axes: Any, name: str, trials: list[Any], measure: str) -> None:
    sizes, means = [each.n_components for each in trials], [getattr(t, measure) for t in trials]
    ends = [each.interval[measure] or (getattr(each, measure),) * 2 for each in trials]
    (line,) = axes.plot(sizes, means, marker="o", label=name)
    axes.fill_between(sizes, *zip(*ends, strict=True), color=line.get_color(), alpha=0.2)
