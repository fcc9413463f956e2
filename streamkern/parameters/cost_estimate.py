"""The work of a fit, in multiply-adds and seconds, before anything is read."""

# What a D x D system at landmarks takes of any by the formula, since its sums are turned.
AT_LANDMARKS = 1.8
# A careful guess of one core's speed, for choosing only.
_FLOPS_PER_SECOND = {"single": 60e9, "double": 30e9, "int8": 60e9, "int16": 30e9}


def rough_flops_per_second(precision: str) -> float:
    """Return a careful guess of the multiply-adds that one core does."""
    return _FLOPS_PER_SECOND[precision]


def fit_flops(n_rows: int, n_features: int, n_components: int, n_folds: int) -> float:
    """Return the multiply-adds of products, and of solving K folds (1 for none) of many rows."""
    return _product_flops(n_rows, n_features, n_components) + solve_flops(n_components, n_folds)


def fit_seconds(  # noqa: PLR0917  sizes and then how
    n_rows: int, n_features: int, n_components: int, n_folds: int, precision: str, n_slots: int
) -> float:
    """Return a careful guess of what a fit takes on so many slots, of which one solves."""
    products = _product_flops(n_rows, n_features, n_components)
    solving = solve_flops(n_components, n_folds)
    if n_folds > 1:  # few rows have few directions, which are found first
        D, n = float(n_components), float(n_rows)
        solving = min(solving, (1 + n_folds) * (3.0 * D**2 * n + 5.0 * n**3))
    return (products / n_slots + solving) / rough_flops_per_second(precision)


def _product_flops(n_rows: int, n_features: int, n_components: int) -> float:
    return float(n_rows) * n_components * (n_features + n_components)


def solve_flops(n_components: int, n_folds: int) -> float:
    """Return the multiply-adds of one factorisation, or of K folds and the whole decomposed."""
    cube = float(n_components) ** 3
    return cube / 3 if n_folds == 1 else (1 + n_folds) * 5.0 * cube
