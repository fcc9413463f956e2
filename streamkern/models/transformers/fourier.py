"""Fourier features as transformers: by frequencies at random, evenly spread, or on a grid."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from streamkern import features
from streamkern.kernels import Gaussian
from streamkern.models.transformers.row_based import RowsTransformer

if TYPE_CHECKING:
    from streamkern.kernels import ShiftInvariantKernel


class RandomFourierFeatures(RowsTransformer):
    """Random Fourier features of a shift-invariant kernel.

    One draw of a frequency w gives either the pair (cos w^T x, sin w^T x) or, in the phase form,
    sqrt(2) cos(w^T x + u) with u uniform on [0, 2 pi].  L draws side by side, over sqrt(L), have
    phi(x)^T phi(x') = k(x, x') in expectation.

    Parameters
    ----------
    kernel : ShiftInvariantKernel or str
        Its length scale 'median' is that of the rows that the map is fitted to.
    n_components : int
        D; of an odd D the last frequency has a cosine alone, at a random phase.
    orthogonal : bool
        Draw frequencies in blocks of p orthogonal directions, their lengths redrawn, which lowers
        the variance; otherwise independently.
    paired : bool
        Pairs (b = 2, L = D / 2) or the phase form (b = 1, L = D).
    random_state : int
        Seed.  Nested: the first features of a larger map are those of a smaller one with the same
        seed, up to scale (and the rounding of an orthogonalisation).

    Attributes
    ----------
    feature_map_ : FeatureMap
    kernel_ : ShiftInvariantKernel
        With its length scale resolved.
    n_components_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (p,)
        Names of the columns, where they were fitted as a data frame.

    References
    ----------
    Rahimi and Recht (2007), "Random features for large-scale kernel machines".
    Yu, Suresh, Choromanski, Holtmann-Rice and Kumar (2016), "Orthogonal random features".
    Sutherland and Schneider (2015), "On the error of random Fourier features".

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from streamkern import Matern, RandomFourierFeatures
    >>> model = make_pipeline(StandardScaler(), RandomFourierFeatures(Matern(2.0)), Ridge())
    """

    makes: ClassVar[type[features.FeatureMap]] = features.RandomFourierFeatures

    def __init__(
        self,
        kernel: ShiftInvariantKernel | str = Gaussian("median"),  # noqa: B008  immutable
        n_components: int = 2048,
        *,
        orthogonal: bool = True,
        paired: bool = True,
        random_state: int = 0,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.orthogonal = orthogonal
        self.paired = paired
        self.random_state = random_state


class QuasiRandomFourierFeatures(RowsTransformer):
    """Fourier features at the points of a scrambled low-discrepancy sequence.

    Every point alone is uniform, so there is no bias, and points together are more even than random
    ones: the error is lower in few dimensions, most at powers of 2.

    Parameters
    ----------
    kernel : ShiftInvariantKernel or str
        Its length scale 'median' is that of the rows that the map is fitted to.
    n_components : int
        D; of an odd D the last frequency has a cosine alone, at a random phase.
    sequence : {'sobol', 'halton'}
    paired : bool
        As in `RandomFourierFeatures`.
    random_state : int
        Seed of the scrambling.  Nested: fewer points are the first of more.

    Attributes
    ----------
    feature_map_, kernel_, n_components_, n_features_in_, feature_names_in_
        As in `RandomFourierFeatures`.

    References
    ----------
    Avron, Sindhwani, Yang and Mahoney (2016), "Quasi-Monte Carlo feature maps for shift-invariant
    kernels"; Owen (1998), "Scrambling Sobol' and Niederreiter-Xing points".
    """

    makes: ClassVar[type[features.FeatureMap]] = features.QuasiRandomFourierFeatures

    def __init__(
        self,
        kernel: ShiftInvariantKernel | str = Gaussian("median"),  # noqa: B008  immutable
        n_components: int = 2048,
        *,
        sequence: str = "sobol",
        paired: bool = True,
        random_state: int = 0,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.sequence = sequence
        self.paired = paired
        self.random_state = random_state


class StructuredFourierFeatures(RowsTransformer):
    """Random Fourier features whose directions are made by signs and Hadamard transforms.

    It takes O(D log p) a row where other maps take O(D p), and memory for O(D + p) numbers.
    Directions are only nearly uniform, with a bias of order 1 / max(p, 64).

    Parameters
    ----------
    kernel : RadialKernel or str
        A kernel of the Euclidean distance.  Its length scale 'median' is that of the rows that the
        map is fitted to.
    n_components : int
        D; of an odd D the last frequency has a cosine alone, at a random phase.
    paired : bool
        As in `RandomFourierFeatures`.
    random_state : int
        Seed.  Nested, as in `RandomFourierFeatures`.

    Attributes
    ----------
    feature_map_, kernel_, n_components_, n_features_in_, feature_names_in_
        As in `RandomFourierFeatures`.

    References
    ----------
    Yu, Suresh, Choromanski, Holtmann-Rice and Kumar (2016), "Orthogonal random features".
    """

    makes: ClassVar[type[features.FeatureMap]] = features.StructuredFourierFeatures

    def __init__(
        self,
        kernel: ShiftInvariantKernel | str = Gaussian("median"),  # noqa: B008  immutable
        n_components: int = 2048,
        *,
        paired: bool = True,
        random_state: int = 0,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.paired = paired
        self.random_state = random_state


class GridFourierFeatures(RowsTransformer):
    """Pairs of waves on an equispaced grid of frequencies, for one to three inputs.

    The kernel is an integral over frequencies, here a sum over the D / 2 of largest spectral
    density on a grid.  Its cells follow from the range of the rows that the map is fitted to; rows
    far beyond it are predicted from the other end.  Nothing is random, but the sample whose range
    is taken.

    Parameters
    ----------
    kernel : ShiftInvariantKernel or str
        With a spectral density.  Its length scale 'median' is that of the rows that the map is
        fitted to.
    n_components : int
        D; of an odd D the last frequency has a cosine alone.  Nested: the first features are the
        same grid with a smaller extent.

    Attributes
    ----------
    feature_map_, kernel_, n_components_, n_features_in_, feature_names_in_
        As in `RandomFourierFeatures`.

    References
    ----------
    Mutny and Krause (2018), "Efficient high dimensional Bayesian optimization with additivity and
    quadrature Fourier features"; Greengard, Rachh and Barnett (2022), "Equispaced Fourier
    representations for efficient Gaussian process regression from a billion data points".
    """

    makes: ClassVar[type[features.FeatureMap]] = features.GridFourierFeatures
    rows_a_feature: ClassVar[int] = 1

    def __init__(
        self,
        kernel: ShiftInvariantKernel | str = Gaussian("median"),  # noqa: B008  immutable
        n_components: int = 2048,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
