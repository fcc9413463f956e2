"""The formulas as they are written, in plain loops, and rows cut and merged at random.

Nothing here is imported from the library but `Block`.
"""

import math
from itertools import pairwise

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from scipy.special import kv

from streamkern.sources import Block

quick = settings(max_examples=25)


def array_of(moments, name):
    """Return what an attribute holds, as one array."""
    value = getattr(moments, name)
    return value.dense() if hasattr(value, "dense") else value


# Kernels of two rows, with one length scale per input.


def gaussian(x, z, scales):
    """exp(-|x - z|^2 / (2 l^2))."""
    return math.exp(-0.5 * sum(((a - b) / s) ** 2 for a, b, s in zip(x, z, scales, strict=True)))


def matern(x, z, scales, nu):
    """2^(1-nu) / Gamma(nu) a^nu K_nu(a), a = sqrt(2 nu) r, with the Bessel function itself."""
    r = math.sqrt(sum(((a - b) / s) ** 2 for a, b, s in zip(x, z, scales, strict=True)))
    if r == 0:
        return 1.0
    a = math.sqrt(2 * nu) * r
    return 2 ** (1 - nu) / math.gamma(nu) * a**nu * float(kv(nu, a))


def rational_quadratic(x, z, scales, shape):
    """(1 + r^2 / (2 a l^2))^-a."""
    square = sum(((a - b) / s) ** 2 for a, b, s in zip(x, z, scales, strict=True))
    return (1 + square / (2 * shape)) ** -shape


def cauchy(x, z, scales):
    """prod_j 1 / (1 + (x_j - z_j)^2 / l_j^2)."""
    value = 1.0
    for a, b, s in zip(x, z, scales, strict=True):
        value /= 1 + ((a - b) / s) ** 2
    return value


def periodic(x, z, scales, periods):
    """exp(-2 sum_j sin^2(pi (x_j - z_j) / P_j) / l_j^2)."""
    inputs = zip(x, z, scales, periods, strict=True)
    return math.exp(-2 * sum((math.sin(math.pi * (a - b) / P) / s) ** 2 for a, b, s, P in inputs))


def polynomial(x, z, degree, constant):
    """(c + x^T z)^d."""
    return (constant + sum(a * b for a, b in zip(x, z, strict=True))) ** degree


def laplacian(x, z, scales):
    """exp(-sum_j |x_j - z_j| / l_j)."""
    return math.exp(-sum(abs(a - b) / s for a, b, s in zip(x, z, scales, strict=True)))


def linear(x, z, scales):
    """x^T z; there is no length scale."""
    return sum(a * b for a, b in zip(x, z, strict=True))


def kernel_matrix(kernel, X, Z, scales):
    """The kernel of every pair of rows, (n, m)."""
    values = np.empty((len(X), len(Z)))
    for i, x in enumerate(X.tolist()):
        for j, z in enumerate(Z.tolist()):
            values[i, j] = kernel(x, z, scales)
    return values


def fourier_features(x, frequencies, phases):
    """Pairs cos w^T x, sin w^T x, or sqrt(2) cos(w^T x + u) with phases; all over sqrt(L)."""
    L = len(frequencies)
    features = []
    for i, w in enumerate(frequencies):
        angle = math.fsum(a * b for a, b in zip(w, x, strict=True))
        if phases is None:
            features += [math.cos(angle) / math.sqrt(L), math.sin(angle) / math.sqrt(L)]
        else:
            features.append(math.sqrt(2 / L) * math.cos(angle + phases[i]))
    return features


def whitened(k, K):
    """Rows f with L f = k, K = L L^T: the Cholesky factor and the solution, number by number."""
    m = len(K)
    L = np.zeros((m, m))
    for i in range(m):
        for j in range(i + 1):
            rest = K[i, j] - math.fsum(L[i, t] * L[j, t] for t in range(j))
            L[i, j] = math.sqrt(rest) if i == j else rest / L[j, j]
    features = np.zeros(np.shape(k))
    for row, values in zip(features, k, strict=True):
        for i in range(m):
            row[i] = (values[i] - math.fsum(L[i, t] * row[t] for t in range(i))) / L[i, i]
    return features


# Statistics.


def column(values, weights):
    """Weight, mean, variance and range of the finite values, and how many are not finite."""
    known = [(v, s) for v, s in zip(values, weights, strict=True) if math.isfinite(v)]
    N = math.fsum(s for _, s in known)
    mean = math.fsum(v * s for v, s in known) / N if N else 0.0
    variance = math.fsum(s * (v - mean) ** 2 for v, s in known) / N if N else 0.0
    return {
        "weight": N,
        "mean": mean,
        "variance": variance,
        "minimum": min((v for v, _ in known), default=math.inf),
        "maximum": max((v for v, _ in known), default=-math.inf),
        "n_nonfinite": len(values) - len(known),
    }


def weighted_mean(rows, weights):
    """sum s_i r_i / sum s_i, column by column."""
    N = math.fsum(weights)
    return [math.fsum(s * r for s, r in zip(weights, col, strict=True)) / N for col in rows.T]


def products(left, right, weights):
    """sum s_i l_i r_i^T, element by element."""
    sums = np.empty((left.shape[1], right.shape[1]))
    for j, a in enumerate(left.T):
        for k, b in enumerate(right.T):
            sums[j, k] = math.fsum(s * u * v for s, u, v in zip(weights, a, b, strict=True))
    return sums


def moments(Phi, y, weights, *, intercept):
    """G, C, S and the means: about the means with an intercept, about zero without."""
    phibar = np.array(weighted_mean(Phi, weights) if intercept else [0.0] * Phi.shape[1])
    ybar = np.array(weighted_mean(y, weights) if intercept else [0.0] * y.shape[1])
    return {
        "gram": products(Phi - phibar, Phi - phibar, weights),
        "cross": products(Phi - phibar, y - ybar, weights),
        "target": np.diag(products(y - ybar, y - ybar, weights)).copy(),
        "feature_mean": phibar,
        "target_mean": ybar,
    }


def scores(predicted, y, weights):
    """rmse, mae and r2 of every target."""
    N = math.fsum(weights)
    said: dict[str, list[float]] = {"rmse": [], "mae": [], "r2": []}
    for f, t in zip(predicted.T.tolist(), y.T.tolist(), strict=True):
        mean = math.fsum(s * v for s, v in zip(weights, t, strict=True)) / N
        squared = math.fsum(s * (v - g) ** 2 for s, v, g in zip(weights, t, f, strict=True))
        spread = math.fsum(s * (v - mean) ** 2 for s, v in zip(weights, t, strict=True))
        said["rmse"].append(math.sqrt(squared / N))
        said["mae"].append(
            math.fsum(s * abs(v - g) for s, v, g in zip(weights, t, f, strict=True)) / N
        )
        said["r2"].append(1 - squared / spread)
    return said


def split_mix(place, seed):
    """The SplitMix64 hash of a place."""
    mask = (1 << 64) - 1
    key = int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])
    return split_mixed((place * 0x9E3779B97F4A7C15 + key) & mask)


def split_mixed(z):
    """The mixer of SplitMix64, of a word of 64 bits."""
    mask = (1 << 64) - 1
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


def smallest_hashes(places, k, seed):
    """The k places whose hashes are smallest, in the order of their hashes."""
    return sorted(places, key=lambda place: split_mix(place, seed))[:k]


def fold_of_row(place, K, seed):
    """The place modulo K, turned by the hash of which K rows it is among."""
    return (place + split_mix(place // K, seed) % K) % K


def folds_of_shards(sizes, K, seed):
    """The fold of every shard: the largest first, then by their hashes, each to the emptiest."""
    folds, held = [0] * len(sizes), [0] * K
    shuffled = smallest_hashes(range(len(sizes)), len(sizes), seed)
    for shard in sorted(shuffled, key=lambda shard: -sizes[shard]):
        folds[shard] = held.index(min(held))
        held[folds[shard]] += sizes[shard]
    return folds


def fold_of_block(place, n_rows, K):
    """Which of K parts of n rows a place is in, of which the first may have one row more."""
    sizes = [n_rows // K + (k < n_rows % K) for k in range(K)]
    return next(k for k in range(K) if place < sum(sizes[: k + 1]))


def median_distance(distance, rows):
    """The median distance over pairs of rows that differ."""
    pairs = []
    for i, x in enumerate(rows.tolist()):
        for z in rows.tolist()[:i]:
            if x != z:
                pairs.append(distance(x, z))  # noqa: PERF401  a plain loop
    pairs.sort()
    middle = len(pairs) // 2
    return pairs[middle] if len(pairs) % 2 else (pairs[middle - 1] + pairs[middle]) / 2


# Ridge regressions, as the optimum of the objective.


def ridge(Phi, y, alpha):
    """The least squares solution of [Phi; sqrt(alpha) I] w = [y; 0], of least norm."""
    D, q = Phi.shape[1], y.shape[1]
    rows = np.vstack([Phi, math.sqrt(alpha) * np.eye(D)])
    return np.linalg.lstsq(rows, np.vstack([y, np.zeros((D, q))]), rcond=None)[0]


def kernel_ridge(K, y, alpha, *, intercept):
    """Dual coefficients and mu of (K + alpha I) a + mu = y, sum a = 0, as one bordered system."""
    n, q = y.shape
    if not intercept:
        return np.linalg.solve(K + alpha * np.eye(n), y), np.zeros(q)
    border = np.ones((n, 1))
    system = np.block([[K + alpha * np.eye(n), border], [border.T, np.zeros((1, 1))]])
    solution = np.linalg.solve(system, np.vstack([y, np.zeros((1, q))]))
    return solution[:n], solution[n]


def weighted_ridge(Phi, y, s, alpha, *, intercept):
    """w (D, q) and mu (q,) of the weighted objective."""
    level = np.array(weighted_mean(y, s)) if intercept else np.zeros(y.shape[1])
    centre = np.array(weighted_mean(Phi, s)) if intercept else np.zeros(Phi.shape[1])
    roots = np.sqrt(s)[:, None]
    w = ridge(roots * (Phi - centre), roots * (y - level), alpha)
    return w, level - centre @ w


def leverages(Phi, rows, s, alpha, *, intercept):
    """1/N + c^T (G + alpha I)^-1 c of every row, c about the mean; without an intercept, no 1/N."""
    base = 1.0 / math.fsum(s) if intercept else 0.0
    centre = np.array(weighted_mean(Phi, s)) if intercept else np.zeros(Phi.shape[1])
    system = products(Phi - centre, Phi - centre, s) + alpha * np.eye(len(centre))
    values = []
    for row in rows:
        c = row - centre
        values.append(base + c @ np.linalg.solve(system, c))
    return np.array(values)


def left_out_errors(Phi, y, s, alpha, *, intercept):
    """The error (n, q) of every row, from a fit to all the others."""
    errors = np.empty_like(y)
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        w, mu = weighted_ridge(Phi[others], y[others], s[others], alpha, intercept=intercept)
        errors[i] = y[i] - mu - Phi[i] @ w
    return errors


def kernel_left_out_errors(K, y, alpha, *, intercept):
    """The error (n, q) of every row, from a fit in dual variables to all the others."""
    errors = np.empty_like(y)
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        dual, mu = kernel_ridge(K[np.ix_(others, others)], y[others], alpha, intercept=intercept)
        errors[i] = y[i] - (K[i, others] @ dual + mu)
    return errors


def error_without(Phi, y, s, alpha, held, *, intercept):
    """The sum of squared errors on rows that are held out (n,), bool, of every target."""
    w, mu = weighted_ridge(Phi[~held], y[~held], s[~held], alpha, intercept=intercept)
    return (s[held, None] * (y[held] - mu - Phi[held] @ w) ** 2).sum(axis=0)


def hat_matrix(Phi, alpha, *, intercept):
    """The matrix (n, n) that takes targets to fitted values: 1 1^T / n + K (K + alpha I)^-1."""
    n = len(Phi)
    level = np.full((n, n), 1.0 / n) if intercept else np.zeros((n, n))
    about = Phi - level @ Phi
    K = about @ about.T
    return level + np.linalg.solve(K + alpha * np.eye(n), K)


def generalised_cross_validation(Phi, y, alpha, *, intercept):
    """n |(I - H) y|^2 / tr(I - H)^2 of every target."""
    n = len(Phi)
    residual = np.eye(n) - hat_matrix(Phi, alpha, intercept=intercept)
    return n * ((residual @ y) ** 2).sum(axis=0) / np.trace(residual) ** 2


def marginal_likelihood(Phi, y, alpha, variance, *, intercept):
    """log N(y; 0, s2 (I + K / alpha)), of the n - 1 contrasts of the rows with an intercept."""
    n = len(Phi)
    if intercept:
        # An orthonormal basis of what is left when the mean is taken away.
        contrasts = np.linalg.svd(np.eye(n) - np.full((n, n), 1.0 / n))[0][:, : n - 1]
        Phi, y = contrasts.T @ Phi, contrasts.T @ y
    covariance = variance * (np.eye(len(Phi)) + Phi @ Phi.T / alpha)
    _, volume = np.linalg.slogdet(2.0 * math.pi * covariance)
    return float(-0.5 * volume - 0.5 * y @ np.linalg.solve(covariance, y))


def noise_variance(Phi, y, alpha, *, intercept):
    """The s2 that makes the marginal likelihood largest: y^T (I + K / alpha)^-1 y / m."""
    n = len(Phi)
    about, left = (Phi - Phi.mean(axis=0), y - y.mean()) if intercept else (Phi, y)
    shape = np.eye(n) + about @ about.T / alpha
    return float(left @ np.linalg.solve(shape, left) / (n - intercept))


def objective(Phi, y, alpha):
    """|y - Phi w|^2 + alpha |w|^2 of every target, at the w that makes it least."""
    w = ridge(Phi, y, alpha)
    return ((y - Phi @ w) ** 2).sum(axis=0) + alpha * (w**2).sum(axis=0)


def forward_selection(Phi, y, alpha, n_components):
    """The feature that lowers the objective most, again and again, each tried by a new fit."""
    spread, order = (y**2).sum(axis=0), []
    for _ in range(n_components):
        others = [i for i in range(Phi.shape[1]) if i not in order]
        left = [(objective(Phi[:, [*order, i]], y, alpha) / spread).sum() for i in others]
        order.append(others[int(np.argmin(left))])
    return order


# Rows cut into blocks, and statistics merged, in any way.


def cuts(n_rows):
    """Where n rows may be cut: repeated places make empty blocks, neighbours blocks of one row."""
    return st.lists(st.integers(0, n_rows), max_size=8).map(sorted)


def blocks(X, y, cuts=(), weights=None):
    """Rows 0 to n, cut at the given places."""
    ends = [0, *cuts, len(X)]
    return [
        Block(X[a:b], y[a:b], a, None if weights is None else weights[a:b])
        for a, b in pairwise(ends)
    ]


def overwritten(rows):
    """Yield blocks whose inputs are destroyed once the next one is asked for."""
    for block in rows:
        X = block.X.copy()
        yield Block(X, block.y, block.start, block.weights, block.rows)
        X[:] = -77


def accumulated(zero, rows):
    """One statistic of all blocks."""
    statistic = zero.zero()
    statistic.update(rows)
    return statistic


def merged(zero, rows, chance):
    """One statistic per block, merged two at a time, any two, in any order."""
    parts = [accumulated(zero, [block]) for block in rows]
    while len(parts) > 1:
        left = parts.pop(chance.randrange(len(parts)))
        right = parts.pop(chance.randrange(len(parts)))
        parts.append(left.merge(right))
    return parts[0]


def differences(function, X, step=1e-5):
    """Slopes (n, p) of a function of rows, by symmetric differences along every input."""
    slopes = np.empty(X.shape)
    for j, beside in enumerate(step * np.eye(X.shape[1])):
        slopes[:, j] = function(X + beside) - function(X - beside)
    return slopes / (2 * step)
