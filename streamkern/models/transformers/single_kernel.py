"""Maps of one kernel or of every kernel as transformers, and the map that does nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from sklearn.base import OneToOneFeatureMixin

from streamkern import features
from streamkern.kernels import Gaussian, Laplacian, Polynomial
from streamkern.models.transformers.base import KernelTransformer, ShapeTransformer
from streamkern.models.transformers.row_based import RowsTransformer

if TYPE_CHECKING:
    from streamkern.kernels import Kernel


class Nystroem(RowsTransformer):
    """The kernel at landmarks, for every kernel: phi(x) = L^-1 (k(x, z_1), ..., k(x, z_m)).

    With K_mm = L L^T, phi(x)^T phi(x') is the Nystroem approximation of the kernel, exact where x
    or x' is a landmark, but for the jitter.

    Parameters
    ----------
    kernel : Kernel or str
        Its length scale 'median' is that of the rows that the map is fitted to.
    n_components : int
        The number of landmarks, which are chosen from a sample of eight rows for each; fewer are
        drawn where rows are fewer, or where landmarks can hardly be told apart.
    landmarks : {'kmeans', 'uniform', 'pivoted'}
        The centres of k-means, rows at random, or the pivots of a randomly pivoted Cholesky
        factorisation of the kernel.
    jitter : float
        Added to the diagonal of K_mm, as a part of the largest k(z, z).  A landmark of which less
        is left beside the others is left out.
    random_state : int
        Seed.

    Attributes
    ----------
    feature_map_, kernel_, n_features_in_, feature_names_in_
        As in `RandomFourierFeatures`.
    n_components_ : int
        m, how many landmarks there are.

    References
    ----------
    Williams and Seeger (2001), "Using the Nystroem method to speed up kernel machines".
    Chen, Epperly, Tropp and Webber (2022), "Randomly pivoted Cholesky".
    """

    makes: ClassVar[type[features.FeatureMap]] = features.Nystroem
    rows_a_feature: ClassVar[int] = 8

    def __init__(
        self,
        kernel: Kernel | str = Gaussian("median"),  # noqa: B008  immutable
        n_components: int = 2048,
        *,
        landmarks: str = "kmeans",
        jitter: float = 1e-10,
        random_state: int = 0,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.landmarks = landmarks
        self.jitter = jitter
        self.random_state = random_state


class RandomBinning(RowsTransformer):
    """Cells of random grids, hashed to signed entries, for the Laplacian kernel.

    Parameters
    ----------
    kernel : Laplacian or str
        Its length scale 'median' is that of the rows that the map is fitted to.
    n_components : int
        D.
    n_entries : int, optional
        B, the features of a grid, which divides D; the largest that divides both D and 8 by
        default.
    random_state : int
        Seed.  Nested: the first features of a larger map of as many entries are those of a smaller
        one, up to scale.

    Attributes
    ----------
    feature_map_, kernel_, n_components_, n_features_in_, feature_names_in_
        As in `RandomFourierFeatures`.

    References
    ----------
    Rahimi and Recht (2007), "Random features for large-scale kernel machines".
    Weinberger et al. (2009), "Feature hashing for large scale multitask learning", for the signs.
    """

    makes: ClassVar[type[features.FeatureMap]] = features.RandomBinning

    def __init__(
        self,
        kernel: Laplacian | str = Laplacian("median"),  # noqa: B008  immutable
        n_components: int = 2048,
        *,
        n_entries: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.n_entries = n_entries
        self.random_state = random_state


class TensorSketch(KernelTransformer, ShapeTransformer):
    """Count sketches of the products of d inputs, for the polynomial kernel (c + x^T x')^d.

    Parameters
    ----------
    kernel : Polynomial or str
    n_components : int
        D.
    random_state : int
        Seed.  A smaller map is another one, not a part of this.

    Attributes
    ----------
    feature_map_, kernel_, n_components_, n_features_in_, feature_names_in_
        As in `RandomFourierFeatures`.

    References
    ----------
    Pham and Pagh (2013), "Fast and scalable polynomial kernels via explicit feature maps".
    """

    makes: ClassVar[type[features.FeatureMap]] = features.TensorSketch

    def __init__(
        self,
        kernel: Polynomial | str = Polynomial(),  # noqa: B008  immutable
        n_components: int = 2048,
        *,
        random_state: int = 0,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.random_state = random_state


class Identity(OneToOneFeatureMixin, ShapeTransformer):  # type: ignore[misc]
    """The inputs as features, computed by someone else already: models of them are linear ridge.

    Attributes
    ----------
    feature_map_ : FeatureMap
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (p,)
        Names of the columns, where they were fitted as a data frame.
    """

    makes: ClassVar[type[features.FeatureMap]] = features.Identity
