"""Pictures, drawn with matplotlib where it is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamkern.errors import ParameterError
from streamkern.storage import replacing

if TYPE_CHECKING:
    from pathlib import Path

    from streamkern.comparison import Comparison

# Okabe and Ito's colours, which readers of every colour vision can tell apart.
_BLUE, _ORANGE, _GREY = "#0072B2", "#D55E00", "#666666"


def pyplot() -> Any:
    """Return matplotlib's pyplot, drawing to files only.

    Raises
    ------
    ParameterError
        If matplotlib is not installed.
    """
    try:
        import matplotlib as mpl  # noqa: PLC0415  optional
    except ImportError as error:
        raise ParameterError(
            "a picture needs matplotlib, which is not installed; install streamkern[plot]."
        ) from error
    mpl.use("Agg")
    from matplotlib import pyplot as module  # noqa: PLC0415  optional

    return module


def plot_comparison(comparison: Comparison, path: str | Path, *, force: bool = False) -> None:
    """Draw test error against the number of random features, beside exact and linear ridge.

    Parameters
    ----------
    comparison : Comparison
    path : path
        Ends in .png, .svg or .pdf.
    force : bool
        Replace an existing file.

    Raises
    ------
    ParameterError
        If matplotlib is not installed.
    OutputError
        If the file cannot be written.
    """
    plt = pyplot()
    exact, linear, *features = comparison.trials
    counts = [trial.n_components for trial in features]
    figure, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    axes.plot(counts, [t.test_rmse for t in features], "o-", color=_BLUE, label="random features")
    axes.axhline(
        exact.test_rmse, color=_ORANGE, label=f"exact kernel ridge, n = {comparison.n_train:,}"
    )
    axes.axhline(linear.test_rmse, color=_GREY, linestyle="--", label="linear ridge")
    axes.set_xscale("log", base=2)
    axes.set_xticks(counts, [f"{count:,}" for count in counts])
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.set_xlabel("number of random features $D$")
    axes.set_ylabel("test RMSE")
    kernel = comparison.kernel
    scale = kernel["length_scale"]
    shown = f"{scale:.3g}" if isinstance(scale, float) else f"{len(scale)} values"
    axes.set_title(
        f"{kernel['name'].capitalize()} kernel, length scale {shown}, "
        rf"$\alpha$ = {comparison.alpha:g}, {comparison.n_test:,} test rows",
        fontsize="medium",
        loc="left",
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    with replacing(path, force=force) as temporary:
        figure.savefig(temporary, dpi=200, format=str(path).rsplit(".", 1)[-1])
    plt.close(figure)
