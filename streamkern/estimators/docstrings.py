"""Numpydoc sections of estimators: what several of them say alike is written here once."""

import re
from functools import cache
from inspect import getmembers, isdatadescriptor, signature
from textwrap import fill
from typing import Any

from sklearn.base import ClassifierMixin

from streamkern._docstrings import described, entries, joined, listed, sections

_PARAMETERS = """
kernel : Kernel or str
    A text is a name such as 'matern32' or, with parameters, 'matern(nu=2)'.  'auto', of
    regressions and classifiers, is Laplacian or Gaussian with half, once or twice the median
    length scale, as small fits to a sample predict its other rows; with the median itself
    Laplacian, unless another is better by more than a standard error.  Of fewer than 30 rows, in
    a metric, in `RandomFeatureAdaBoost` and for the map 'grid' it is Gaussian with the median,
    which is what other estimators have by default.
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
_FIT = """
X : Source, array_like, data frame or Dask collection, of shape (n, p); or path or paths
    A source, such as `open_hdf5` returns, brings its own targets and weights.  A path, pattern
    or URL is of HDF5, with the datasets X and y; or of CSV or Parquet, whose rows become inputs
    where they are read, by a recipe that the model keeps.  A pyarrow dataset of Parquet is its
    files.
y : array_like or Dask collection, of shape (n,) or (n, q), optional
    Targets, or labels (n,): text, bytes, booleans or whole numbers; NaN, None and '' are
    missing.  Needed with arrays.  With a path or data frame, the name of the dataset, or of
    columns.
sample_weight : array_like or Dask collection of shape (n,), optional
    Numbers of at least 0, or with a path or frame the name of what holds them: a row of weight
    s counts as s equal rows.  Rows are dealt to folds by their places, so cross-validation
    agrees only where folds hold the same rows.
groups, times : array_like or Dask collection of shape (n,), optional
    What folds go by, one of both: rows of a group are left out together, or parts of time are
    predicted from those before them, `gap` apart.  Of files it is what `fold_by` names.
like : DataMoments, estimator, or path of either, optional
    Whose map, standardisation and precision are taken, and the classes and their weights.
checkpoint : str or Path, optional
    A folder where sums are saved.  The same fit goes on from there after it was stopped;
    `report_["resumed_shards"]` is what it did not read again.
keep_moments : bool
    Keep the moments as `moments_`, about 4 D^2 bytes a fold: `partial_fit` adds rows to them,
    as to those of up to 64 MB that a fit keeps anyway, and `write_report` needs no pass to
    predict rows by models that have not seen them.  Of up to 8,192 features the solver 'auto'
    is 'direct' then, whatever it takes.  Of other losses no moments are kept, but what predicts
    rows without their fold, which `write_report` needs.
"""
_METHODS = """
exposure, offset : array_like or Dask collection of shape (n,), optional
    As in `fit`.
repeated_rows : bool
    Whether rows with the values of others that are in are other observations, and count too.
return_std : bool
    Whether standard deviations of new targets come, too: of the noise, and of what the
    coefficients are uncertain by.
interval : float, optional
    The share of new targets, such as 0.9, that intervals are to hold, which come, too.  They
    are locally weighted conformal ones, as wide as errors on held-out rows tell.
path : str or Path
    Of the HDF5 file that is written.
moments : DataMoments
    Of at least `n_components` features, of which the leading ones are taken.  The map, and what
    else they were made by, is theirs, whatever the parameters of this object.
target_unit : array_like of shape (q,), optional
    What targets are divided by before their outer products are added; by default 1.
n_largest : int
    How many rows are named for their leverage, and how many for their error.
compact : bool
    Leave out the normal equations, D (D + 1) / 2 numbers, without which there are no
    standard deviations and no leverages.
force : bool
    Replace a file that is there.
parameters : dict
    Values by the names that `get_params` gives.
n_features : int
    p, the number of inputs.
rows, weights : ndarray of shape (m, p) and (m,), optional
    Spread over the data and in random order, for what is made from rows; and how often each
    counts in a median length scale, and as a landmark.
transform(), fit_transform() : ndarray of shape (n, D), or what `set_output` asks for
    Of a Dask collection a Dask array or DataFrame.
support() : ndarray of shape (n,), or Dask array of a Dask collection
    The share of the rows of the fit that lie as far from the others, NaN for a row that is not
    finite.  Below 0.01 nothing like it was fitted, and errors may be of any size.
gradient_outer_product() : ndarray of shape (p, p)
    0 for inputs that are left out.
score() : float
moments() : DataMoments
draw() : FeatureMap
normal_equations() : NormalEquations
predict_proba(), predict_log_proba() : ndarray of shape (n, K), or Dask array of a Dask collection
    Columns are in the order of `classes_`.
predict_to_hdf5(), transform_to_hdf5() : int
    How many rows are NaN, or have no class, because `on_bad_rows` is 'skip'.
Self() : self
"""
_ERRORS = """
NotFittedError : predict, predict_proba, predict_log_proba, predict_sets, predict_grid, score
    Before a fit.
NotFittedError : decision_function, transform, evaluate, staged_evaluate, diagnose, support, save
    Before a fit.
NotFittedError : gradient_outer_product, normal_equations, update, forget, calibrate
    Before a fit.
NotFittedError : predict_to_hdf5, transform_to_hdf5
    Before a fit.
ParameterError : fit, fit_transform, tune, moments, solve, partial_fit, calibrate, draw
    If an option has a value that it cannot have.
ParameterError : predict_sets, predict_to_hdf5, diagnose, set_params
    If an option has a value that it cannot have.
ParameterError : update, forget
    If the model does not keep what rows can come to, or leave.
ValueError : set_params
    If there is no parameter of a name.
DataError : fit, fit_transform, tune, moments, partial_fit, calibrate
    If rows or targets cannot be used.
DataError : predict, predict_proba, predict_log_proba, predict_sets, decision_function, transform
    For rows of other columns than the fit's.
DataError : evaluate, staged_evaluate, score, diagnose, support, gradient_outer_product
    For rows of other columns than the fit's, or other targets where these are needed.
DataError : predict_to_hdf5, transform_to_hdf5
    For rows of other columns than the fit's.
ModelFileError : predict_to_hdf5, diagnose, normal_equations
    If the model was saved without what this needs.
OutputError : save, predict_to_hdf5, transform_to_hdf5
    If the file exists and `force` is not given, or cannot be written.
"""
_ERRORS_OF_PASSES = """
CheckpointError : fit, tune, moments
    If the folder is in use, or belongs to a job that differs.
OutputError : fit, tune, moments
    If the folder cannot be made.
InsufficientMemoryError : fit, tune, moments
    Before the first read, if the job has no room.
SingularSystemError : fit, tune, solve
    If `alpha` is 0 and the features are not independent.
"""
_INDENT: Any = {"initial_indent": "    ", "subsequent_indent": "    "}
_ATTRIBUTES = """
n_features_in_ : int
    Columns of the rows, before a recipe makes inputs of them.
feature_names_in_ : ndarray of shape (n_features_in_,)
    Their names, if they have any.  Predictions ask a data frame for the same.
"""


@cache
def _describe(cls: type) -> None:
    fit = _FIT
    if "loss" in signature(cls).parameters or issubclass(cls, ClassifierMixin):
        fit = fit.replace(" or (n, q)", "").replace("Targets, or labels (n,)", "Labels")
    as_in_fit = re.sub(r"(?m)^(\S.*\n)(    .*\n)+", r"\1    As in `fit`.\n", fit)
    errors = _ERRORS + _ERRORS_OF_PASSES * hasattr(cls, "save")
    described(as_in_fit + _METHODS, errors, fit=fit)(cls)


def documented(cls: type) -> type:
    """Complete the docstrings of an estimator's class, and of its methods.

    A class describes parameters and fitted attributes that it has alone, or means otherwise, and so
    do methods.  The rest is taken from the tables of this module and, for attributes, from the
    docstrings of properties.
    """
    title, parts = sections(cls.__doc__ or "")
    parts.pop("Raises", None)  # of a map; an estimator checks its parameters in `fit`
    known = entries(_PARAMETERS) | entries(parts.pop("Parameters", ""))
    properties = {
        name: f"\n{fill(value.__doc__ or '', 96, **_INDENT)}"
        for name, value in getmembers(cls, isdatadescriptor)
        if name.endswith("_") and not name.startswith("_")
    }
    attributes = properties | entries(_ATTRIBUTES + parts.pop("Attributes", ""))
    taken, shown = listed(known, signature(cls).parameters), listed(attributes, sorted(attributes))
    cls.__doc__ = joined(title, {"Parameters": taken, "Attributes": shown} | parts)
    for base in cls.__mro__:
        if base.__module__.startswith("streamkern."):
            _describe(base)
    return cls
