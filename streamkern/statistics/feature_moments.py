"""Moments of features and targets: all that ridge regression needs to know of the rows."""

from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np

from streamkern._typing import Array, Block, Floats
from streamkern.errors import ParameterError
from streamkern.features import FeatureMap, innermost, solve_map, trended
from streamkern.runtime.scratch import Scratch
from streamkern.runtime.timing import timed
from streamkern.statistics.centred_moments import CentredMoments, precision_of_features
from streamkern.statistics.declared_sums import total
from streamkern.statistics.feature_sums import FeatureSums, overflowed
from streamkern.statistics.triangle import Triangle, turn_pairs
from streamkern.statistics.work import Work

# Rows of features that are multiplied at once, for every column that they are multiplied with.
_ROWS_A_TARGET = 16


class Moments(FeatureSums):
    """Weighted sums of phi phi^T, phi y^T, y^2, phi, y and 1 over rows.

    Products are made in the precision asked for and summed in double.  Everything is accumulated
    about a fixed shift, which keeps the subtraction of the means from losing digits; two moments
    merge only if their maps are the same, and shifts that differ are reconciled.
    """

    precisions: ClassVar = ("single", "double")
    merges_plainly = True

    cross: Floats = total("feature_map.n_components", "n_factors")
    target: Floats = total("n_targets")
    target_sum: Floats = total("n_targets")

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the features and products."""
        return np.dtype(np.float32 if self.precision == "single" else np.float64)

    @property
    def work(self) -> Work:
        """The products of features with each other, or a strip of them, and with targets."""
        return Work(self.product_flops, self.feature_map.n_components, self.dtype.str)

    @np.errstate(over="ignore", invalid="ignore")  # looked for in the sums
    def update(self, blocks: Iterable[Block]) -> None:
        """Add rows: features, their products with targets while in cache, one rank-k update.

        Raises
        ------
        OverflowedError
            If sums are not finite any more.
        """
        D, scratch = self.feature_map.n_components, self.scratch or Scratch()
        product = scratch.array("product", (Triangle.product_size(D),), self.dtype)
        if self.gram is None:
            self.gram = Triangle(D, first_row=self.first_row)
        for block in blocks:
            self._check(block)
            features = scratch.array("features", (len(block), D), self.dtype)
            roots = None if block.weights is None else np.sqrt(block.weights)[:, None]
            targets = self._targets(block, roots, scratch)
            with timed("features"):
                self._fill(features, block, roots, targets, scratch)
            with timed("products"):
                self.gram.add_products(features, product)
            values, ones = targets[:, :-1], targets[:, -1]
            self.target += np.einsum("nq,nq->q", values, values)
            self.target_sum += ones @ values
            self.weight += float(ones @ ones)
            self.n_rows += len(block)
            self._check_sums(block)

    def _fill(
        self, features: Array, block: Block, roots: Floats | None, targets: Floats, scratch: Scratch
    ) -> None:
        """Write the features of a block, and add their products with targets while in cache."""
        shift = self.feature_shift.astype(self.dtype)
        narrow = scratch.array("narrow", targets.shape, self.dtype)
        np.copyto(narrow, targets, casting="same_kind")
        cross = scratch.array("cross", self.cross.shape, self.dtype)
        begun = 0
        for rows in self.feature_map.evaluated(block.X, features, shift, scratch):
            if roots is not None:
                features[rows] *= roots[rows].astype(self.dtype)
            # Wide targets need more rows at a time, or adding up would cost more than products.
            if rows.stop - begun >= _ROWS_A_TARGET * targets.shape[1] or rows.stop == len(block):
                done = slice(begun, rows.stop)
                self.cross += np.matmul(features[done].T, narrow[done], out=cross)
                begun = rows.stop

    def _targets(self, block: Block, roots: Floats | None, scratch: Scratch) -> Floats:
        """Return targets as they enter the products, and a column of ones, times root weights."""
        targets = scratch.array("targets", (len(block), self.n_factors), np.float64)
        np.subtract(block.y, self.target_shift, out=targets[:, :-1])
        targets[:, :-1] /= self.target_unit
        targets[:, -1] = 1.0
        if roots is not None:
            targets *= roots
        return targets

    def _check_sums(self, block: Block) -> None:
        sums = (self.cross, self.target, self.gram.diagonal() if self.gram else self.weight)
        if all(np.isfinite(values).all() for values in sums):
            return
        raise overflowed(
            block,
            f"sums of features or targets of {{rows}} overflowed in {self.precision} precision; "
            f"standardise or rescale the inputs.",
        )

    def compatible(self, other: "Moments") -> "Moments":
        if (self.precision, self.n_targets) != (other.precision, other.n_targets) or not (
            self.feature_map.equals(other.feature_map)
        ):
            raise ParameterError(
                "moments go together only when map, precision and targets are the same; compute "
                "both with the same options and seed, and the standardisation of the first."
            )
        if type(other) is not type(self):
            other = other.with_gram()
        return other.about(self.feature_shift, self.target_shift, self.target_unit)

    def about(self, feature_shift: Floats, target_shift: Floats, target_unit: Floats) -> "Moments":
        """Return the same moments, summed about another shift and in other units of the targets.

        Sums that a subclass adds stay as they are.
        """
        shifts = {"feature_shift": feature_shift, "target_shift": target_shift}
        shifts["target_unit"] = target_unit
        if all(np.array_equal(getattr(self, name), value) for name, value in shifts.items()):
            return self
        moved = self._with({**shifts, "first_row": 0})
        # Features become f - d and targets a t + b.
        N, sums, d = self.weight, self.cross[:, -1], feature_shift - self.feature_shift
        a, b = self.target_unit / target_unit, (self.target_shift - target_shift) / target_unit
        if self.gram is not None:
            moved.gram = self.gram.astype(np.float64)
            moved.gram.add_outer(d, sums, -1.0)
            moved.gram.add_outer(sums, d, -1.0)
            moved.gram.add_outer(d, d, N)
        centred = sums - N * d
        cross = self.cross[:, :-1] - np.outer(d, self.target_sum)
        moved.cross = np.column_stack([cross * a + np.outer(centred, b), centred])
        scaled = a * self.target_sum
        moved.target = a**2 * self.target + 2.0 * b * scaled + N * b**2
        moved.target_sum = scaled + N * b
        return moved

    def of_map(self, feature_map: FeatureMap, turns: Floats) -> "Moments":
        """Return the moments of a map whose pairs of features are ahead by angles."""
        ahead = np.cos(turns), np.sin(turns)
        shift, cross = (each.copy() for each in (self.feature_shift, self.cross))
        for values in (shift, cross):
            turn_pairs(values, *ahead)
        turned = self.of_features(feature_map, shift, cross)
        if self.gram is not None:
            turned.gram = self.gram.astype(np.float64)
            turned.gram.turn_pairs(*ahead)
        return turned

    def is_finite(self) -> bool:
        gram = self.gram.panels if self.gram else []
        sums = (*gram, self.cross, self.target, self.target_sum, self.weight)
        return all(np.isfinite(values).all() for values in sums)

    def solvable(self, n_components: int | None = None) -> "Moments":
        """Return the moments of the map whose features are solved for, or of its first D'.

        That is `leading`, but for a map whose sums are to be turned: there they become
        R^T G R and R^T C, in double.

        Raises
        ------
        ParameterError
            If the map has no such part.
        """
        feature_map, turning = solve_map(self.feature_map, n_components)
        if turning is None:
            return self.leading(feature_map.n_components)
        made = self.of_features(feature_map, turning.T @ self.feature_shift, turning.T @ self.cross)
        made.gram = None if self.gram is None else self.gram.turned(turning)
        return made

    def centred(self, *, intercept: bool = True) -> CentredMoments:
        """Return the moments about the means, or about zero where there is no intercept.

        Raises
        ------
        ParameterError
            If no row of positive weight was added.
        """
        if self.gram is None or not self.weight > 0:
            raise ParameterError("moments of no rows cannot be centred; add rows first.")
        N, unit, scale = self.weight, self.target_unit, self.feature_map.scale
        features, targets = self.cross[:, -1] / N, self.target_sum / N
        gram, cross = self.gram.astype(np.float64), self.cross[:, :-1].copy()
        target = self.target.copy()
        # Means about zero, and what sums about them differ by from sums about the shift.
        feature_mean = self.feature_shift + features
        target_mean = self.target_shift / unit + targets
        corrections = [(-N, features, targets)]
        if not intercept:
            corrections.append((N, feature_mean, target_mean))
            feature_mean, target_mean = np.zeros_like(feature_mean), np.zeros_like(target_mean)
        for factor, left, right in corrections:
            gram.add_outer(left, left, factor)
            cross += factor * np.outer(left, right)
            target += factor * right**2
        gram.scale(scale**2)
        return CentredMoments(
            gram,
            cross * (scale * unit),
            target * unit**2,
            N,
            scale * feature_mean,
            unit * target_mean,
            precision_of_features(self.precision),
            intercept,
            min(1.0, N / self.n_rows),
            innermost(self.feature_map).left_out * N / self.n_rows,
            N if trended(self.feature_map) else np.inf,
        )
