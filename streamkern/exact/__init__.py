"""Exact kernel ridge regression, the baseline: by the n x n system, and by its eigenvalues."""

from streamkern.exact.ridge import ExactKernelRidge

__all__ = ["ExactKernelRidge"]
