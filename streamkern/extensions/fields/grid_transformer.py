"""The scikit-learn transformer of the grid of frequencies."""

from streamkern.estimators.transformers import KernelTransformer
from streamkern.extensions.fields import frequency_grid


class GridFourierFeatures(KernelTransformer, makes=frequency_grid.GridFourierFeatures):
    rows_a_feature = 1
