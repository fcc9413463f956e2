"""Exact kernel ridge regression against random features, on rows that both can take."""

from streamkern.comparison.sweep import compare
from streamkern.comparison.trials import Comparison, Run, Trial

__all__ = ["Comparison", "Run", "Trial", "compare"]
