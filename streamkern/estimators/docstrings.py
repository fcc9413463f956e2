"""Numpydoc sections of estimators: what several of them say alike is written here once."""

import re
from inspect import cleandoc, getmembers, isdatadescriptor, signature
from textwrap import fill
from typing import Any

_PARAMETERS = """
kernel : Kernel or str
    A text is a name such as 'matern32' or, with parameters, 'matern(nu=2)'.  'auto', of
    regressions and classifiers, is Laplacian or
    Gaussian with half, once or twice the median length scale, as small fits to a sample predict its
    other rows; with the median itself Laplacian, unless another is better by more than a standard
    error.  Of fewer than 30 rows, in a metric, in `RandomFeatureAdaBoost` and for the map 'grid' it
    is Gaussian with the median, which is what other estimators have by default.
n_components : int or 'auto'
    D, the number of features.  'auto' makes up to 4,096, and keeps the smallest of 64, 128, ...
    whose cross-validated error is within one standard error of the best.
alpha : float, sequence of float, or {'cv', 'guarded', 'gcv', 'evidence', 'loo'}
    The penalty, in units of the sum of squares, not divided by n.  Or penalties to choose from
    by cross-validation.  Or how to choose: cross-validation; generalised cross-validation among
    penalties that are no worse than the mean on the folds ('guarded'), or robust and alone;
    the evidence; or exact leave-one-out, which takes one more pass.  With
    several targets, errors are divided by the targets' variances and averaged; with 'loo' they
    are taken as they are, as in `sklearn.linear_model.RidgeCV`.
alphas : sequence of float, optional
    What to choose from if `alpha` says how; by default 30 penalties from the precision floor to
    the largest eigenvalue of G.
n_folds : int
    K of cross-validation.
fold_by : {'auto', 'shards', 'rows', 'blocks', 'space', 'column:NAME', 'time:NAME'}
    How rows are dealt to folds: whole shards in a seeded shuffle, which takes no memory while
    rows are read; single rows by a seeded rule; contiguous blocks, for rows in the order of
    time; regions of the inputs; or the rows of one value in a dataset of the files, as in
    `sklearn.model_selection.GroupKFold`.  By time, K + 1 equal parts of the rows in its order
    are predicted from those before them, as in `TimeSeriesSplit`.  'auto' is shards if there
    are 3 a fold, else rows; where these crowd along tracks or in time it is blocks or regions,
    which guard the penalty, and a kernel and map that are open become landmarks of a rough
    kernel.
gap : float or str
    By time, how long before each part rows are left out of what predicts it: in the units of the
    times, or of dates '7d' or '12h'.
per_target : bool
    Choose one penalty for every target, instead of one for all.
one_standard_error : bool
    Choose the largest penalty whose error is within one standard error of the least.
sparse : int or 'auto', optional
    K, how many of the D features to keep.  'auto' keeps the fewest of 1, 2, 3, 4, 6, 8, ... D
    whose cross-validated error is within one standard error of the best.
sparse_method : {'forward', 'lasso'}
    How they are chosen: forward selection, or the path of the lasso.  The coefficients are
    those of ridge.
solver : {'auto', 'direct', 'cg'}
    'direct' sums the D x D system in one pass.  'cg' are block conjugate gradients, preconditioned
    by a sketch: a pass an iteration, for the systems of all folds and penalties at once, and memory
    that grows with D.  They end where solutions move predictions of the rows by less than 1e-5
    deviations of the targets; moments are then those of the combinations of features that were
    needed.  'auto' takes them for more than 8,192 features, and in single precision for more than
    4,096, of at least as many rows, where they cost less by the plan.
feature_map : str
    Random Fourier features, 'orthogonal' or independent ('iid'); by fast transforms for
    hundreds of inputs ('sorf'); quasi-Monte Carlo ('qmc'); on a 'grid' for one to three
    inputs.  The kernel at landmarks: 'nystroem'.  The inputs as features: 'identity'.
    'auto' is 'nystroem' of up to 8,192 features, and 'orthogonal' of sparse
    rows, a metric, sparse models, integers, and rows that others follow; `tune` chooses.
paired : bool
    Cosine and sine of every frequency, or cosines with random phases.
metric : str, or ndarray of shape (p, p), optional
    M: the kernel takes (x - x')^T M (x - x') of standardised rows for the squared distance.
    'learn' takes the average gradient outer product of a fit on a sample as the metric of the
    next fit, in up to four rounds ('learn:ROUNDS'), and keeps the round that predicts held-out
    rows best.  'diagonal' learns one weight for each input, and 'auto' takes whichever of the two
    predicts better in every round.  The Laplacian kernel, and Matern of nu up to 1, have no mean
    square gradient: that of the features of the fit is taken all the same, which was seen to help
    on tables, and counts only where held-out rows are predicted better.
trend : str or sequence of int or str, optional
    Of the map 'grid', columns by name or number whose effect is a straight line beside the field,
    which is then of the others; 'linear' and 'quadratic' are polynomials of its coordinates.  Their
    prior is nearly flat, as in universal kriging; `report_['trend']` has the slopes.
scale : {'auto', 'standard', 'robust', 'common', 'grouped', 'robust-grouped', ...}, optional
    How inputs are scaled; by default 'auto' where the kernel is chosen and rows are not sparse, and
    else 'standard'.  'robust' takes them less their medians, in units of their quartiles, and
    brings values far out nearer, z / sqrt(1 + (z / B)^2) with B three times what is between the
    quartiles, so that none is more than B away.  'common' takes them less their means, over one
    deviation, that of them all together: for inputs of one unit, such as pixels.  'grouped' divides
    neighbours that are 0 or 1, of which no row of a sample has two, by the deviation of all of them
    together, so that a category counts as a number does; 'robust-grouped' is both.  'quantile'
    makes inputs normal, by the ranks of their values in a sample, straight between 32 knots; an
    input of two values stays as in 'robust', and none goes on for more than a deviation beyond the
    sample.  'auto' takes that of these but 'quantile' in which small fits to a sample predict its
    other rows best, 'standard' unless another is better by more than a standard error, and 'common'
    only where most neighbours have half of their range in common.  'none' is `standardize` False.
standardize : bool
    Take inputs less their means, over their standard deviations.  If fewer than a tenth of the
    rows depart from a column's usual value, its deviation is what it would be if a tenth did.
fit_intercept : bool
    Whether the model has an intercept, which is not penalised.
precision : {'single', 'double', 'int8', 'int16', 'auto'}
    Of features and products, which are summed in double.  In 'int8' and 'int16' features are
    rounded to integers of one byte or two, and sums are exact; for maps whose features have a
    bound.  'auto' takes 'int8', reads the rows again in 'int16', and then in 'double', while
    rounding is more than 0.2% of the squared error, and takes 'single' for other maps.
on_bad_rows : {'error', 'skip'}
    What to do about rows with values that are not finite, or without a label.
target_range : tuple of float or None, optional
    The least and the largest target that there can be, None for no such end: predictions and ends
    of intervals are clipped to it, and targets outside are refused.  Errors that moments tell, such
    as the cross-validated one, are of predictions before.
random_state : int
    Seed.
class_weight : 'balanced', or mapping of label to float, optional
    What weights of rows are multiplied by.  'balanced' is N / (K N_k) for a class of weight
    N_k, so that all classes weigh the same.  Probabilities are then those of rows so weighted.
"""
_INDENT: Any = {"initial_indent": "    ", "subsequent_indent": "    "}
_ATTRIBUTES = """
n_features_in_ : int
    Columns of the rows, before a recipe makes inputs of them.
feature_names_in_ : ndarray of shape (n_features_in_,)
    Their names, if they have any.  Predictions ask a data frame for the same.
"""


def documented(cls: type) -> type:
    """Complete the parameters and fitted attributes in the docstring of an estimator's class.

    A class describes what it has alone, or means otherwise.  The rest is taken from the tables of
    this module and, for attributes, from the docstrings of properties.
    """
    title, *parts = re.split(r"(?m)^(\w+)\n-+\n", cleandoc(cls.__doc__ or ""))
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    sections.pop("Raises", None)  # of a map; an estimator checks its parameters in `fit`
    described = _paragraphs(_PARAMETERS) | _paragraphs(sections.pop("Parameters", ""))
    parameters = [described[name] for name in signature(cls).parameters]
    properties = {
        name: f"{name}\n{fill(value.__doc__ or '', 96, **_INDENT)}"
        for name, value in getmembers(cls, isdatadescriptor)
        if name.endswith("_") and not name.startswith("_")
    }
    attributes = properties | _paragraphs(_ATTRIBUTES + sections.pop("Attributes", ""))
    sections = {
        "Parameters": "\n".join(parameters),
        "Attributes": "\n".join(attributes[name] for name in sorted(attributes)),
    } | sections
    texts = [f"{name}\n{'-' * len(name)}\n{text.strip()}" for name, text in sections.items()]
    cls.__doc__ = "\n\n".join([title.strip(), *texts]) + "\n"
    return cls


def _paragraphs(text: str) -> dict[str, str]:
    return {each.split()[0]: each for each in re.split(r"\n(?=\S)", text.strip()) if each}
