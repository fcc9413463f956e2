"""Whether rows that are next to each other are alike, so that errors of single rows say little."""

import numpy as np

from streamkern.features import RandomFourierFeatures
from streamkern.kernels import Laplacian
from streamkern.runtime.threads import blas_threads
from streamkern.tune.column_pass import ColumnPass

# Rows of the sample, features and rows a feature of the small fit, and blocks that are left out.
_ROWS, _COMPONENTS, _ROWS_A_FEATURE, _BLOCKS = 2048, 512, 4, 10
_PENALTIES = np.geomspace(1e-7, 1.0, 8)  # over the largest eigenvalue
# Times the errors of rows that those of blocks are, and standard errors above them: of rows in
# random order they were up to 1.03 times.
_FAR, _SURE = 1.5, 2.0
# The share of steps against the order of rows that are sorted by their targets.
_SORTED = 0.01


def order_note(seen: ColumnPass, random_state: int) -> str:
    """Return a sentence if errors of blocks of consecutive rows are far above those of rows, or ''.

    Both are of a small fit without them, e = (I - H)^-1 r of its residuals r and their hat matrix
    H, at the penalty that is best for rows; of every block the logarithms of both are compared.
    Roberts et al. (2017), "Cross-validation strategies for data with temporal, spatial,
    hierarchical, or phylogenetic structure".
    """
    order = np.argsort(seen.sample.places[:_ROWS])
    n, y = len(order), seen.targets[:_ROWS][order]
    steps = np.diff(y, axis=0)
    against = np.minimum((steps > 0).mean(axis=0), (steps < 0).mean(axis=0))
    if n < 2 * _ROWS_A_FEATURE * _BLOCKS or (against < _SORTED).all():
        return ""
    with blas_threads(1):
        z = seen.standardizer(seen.sample.X[:_ROWS][order])
        kernel, D = Laplacian().resolved(z), min(_COMPONENTS, n // _ROWS_A_FEATURE) // 2 * 2
        drawn = RandomFourierFeatures(kernel, D, random_state=random_state).draw(z.shape[1])
        features = drawn.transform(z)
        features -= features.mean(axis=0)
        y = y - y.mean(axis=0)
        values, vectors = np.linalg.eigh(features.T @ features)
        turned = features @ vectors
        found = []
        for alpha in _PENALTIES * values[-1]:
            shrunk = 1.0 / (np.maximum(values, 0.0) + alpha)
            residuals = y - turned @ (shrunk[:, None] * (turned.T @ y))
            spare = 1.0 - 1.0 / n - np.square(turned) @ shrunk
            of_rows = np.square(residuals / spare[:, None]).mean(axis=1)
            found.append((of_rows.mean(), of_rows, residuals, shrunk))
        _, of_rows, residuals, shrunk = min(found, key=lambda each: each[0])
        errors = []
        for block in np.array_split(np.arange(n), _BLOCKS):
            hat = (turned[block] * shrunk) @ turned[block].T + 1.0 / n
            of_block = np.linalg.solve(np.eye(len(block)) - hat, residuals[block])
            errors.append((np.square(of_block).mean(), of_rows[block].mean()))
    logs = np.log(np.maximum(errors, np.finfo(float).tiny)) / 2.0
    more = logs[:, 0] - logs[:, 1]
    if more.mean() < max(np.log(_FAR), _SURE * more.std(ddof=1) / np.sqrt(_BLOCKS)):
        return ""
    return (
        f"rows next to each other are alike: errors of a small fit are {np.exp(more.mean()):.1f} "
        f"times as large where {_BLOCKS} blocks of consecutive rows are left out as where single "
        f"rows are, so the cross-validated error, and the penalty, hold only among the rows; take "
        f"fold_by 'blocks' (--fold-by blocks), or 'rows' if that is meant."
    )
