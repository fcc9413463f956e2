"""The parameters of a fit: one frozen value, from which everything that a fit does follows.

A parameter is one field: its default, its help, and how the command line takes it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from streamkern._typing import Source
from streamkern.errors import ParameterError
from streamkern.errors.checks import check_choice, checked_range
from streamkern.features import FAMILIES, LEVELS, Identity
from streamkern.features.metric import checked_metric
from streamkern.kernels import KERNELS, Gaussian, Kernel, Linear, as_kernel
from streamkern.parameters.fit_options import CHOICES, DIRECT_COMPONENTS, GIVEN, FitOptions
from streamkern.parameters.penalty_options import PenaltyOptions
from streamkern.registry import check_map, extension, installed

if TYPE_CHECKING:
    from streamkern.parameters.template import Template


class Option(NamedTuple):
    """How the command line takes a parameter: text of a form, a choice, a number, or a flag.

    A flag turns its field around: one whose default is True is named by what it takes away.
    """

    help: str
    name: str | None = None  # without dashes, where the field has another
    form: str | None = None  # alternatives: words as they are, others in capitals
    choices: Collection[str] = ()  # beside which there may be a form
    least: int | None = None
    listed: Callable[[], str] | None = None  # the values, where the help goes on with them
    extension: str | None = None  # without which the option is not there


def option(default: Any, *args: Any, **named: Any) -> Any:
    """Return a field that is an option of commands too."""
    return field(default=default, metadata={"option": Option(*args, **named)})


DEFAULT_KERNEL = Gaussian("median")
AUTO = "auto"
AUTO_COMPONENTS = 4096
# The map unless another is given.
DEFAULT_MAP = "orthogonal"
# How the features of a sparse model are chosen.
SPARSE_METHODS = ("forward", "lasso")
# Of fewer rows no kernel is chosen.
FEWEST_ROWS = 30


def first_kernel_of(kernel: Kernel | str) -> Kernel:
    """Return a kernel that is given; of 'auto', the one where nothing is chosen."""
    return DEFAULT_KERNEL if kernel == AUTO else as_kernel(kernel)


def _kernels() -> str:
    return f"{', '.join(KERNELS)}; with parameters, as matern(nu=2)."


def _maps() -> str:
    each = "; ".join(f"{name}: {family.help}" for name, family in FAMILIES.items())
    return f"{each}; auto: nystroem where it can be, or orthogonal; `tune` chooses by their errors."


@dataclass(frozen=True)
class Parameters:
    """What a fit is told; the fields are documented in `RandomFeatureRidge`.

    `keeps_folds` is no parameter of a user's: rows are dealt to folds even where the penalty is not
    chosen by them, as for a calibration.
    """

    kernel: Kernel | str = option(
        AUTO,
        "How similar two rows are, or auto: gaussian or laplacian with its length scale, and the "
        "scale of the inputs, as small fits predict held-out rows (gaussian of few rows, and where "
        "a metric is learnt)",
        form="KERNEL|auto",
        listed=_kernels,
    )
    n_components: int | str = option(
        2048,
        "D, counting all outputs; auto: the smallest that is good enough, of up to 4,096.",
        name="components",
        form="D|auto",
    )
    alpha: Any = option(
        "cv",
        "The penalty, in units of the sum of squares; several: choose among them.  loo leaves out "
        "every row in turn, which takes one more reading.",
        form="cv|guarded|gcv|evidence|loo|FLOAT[,FLOAT...]",
    )
    alphas: Any = option(
        None,
        "What a criterion of --alpha chooses from; by default 30 penalties that follow from the "
        "features.",
        form="FLOAT[,FLOAT...]",
    )
    n_folds: int = option(5, "K of cross-validation.", name="folds")
    fold_by: str = option(
        "auto",
        "What is left out together: shards, rows spread evenly, contiguous blocks, regions of "
        "the space of the inputs, or rows of one value in a column; parts of time are predicted "
        "from those before them; auto: shards of many rows, or rows, and where these crowd along "
        "tracks or in time blocks or regions, with a penalty that they guard.",
        form="auto|shards|rows|blocks|space|column:NAME|time:NAME",
    )
    gap: float | str = option(
        0,
        "How long before each part of time:NAME rows are left out of what predicts it: a number, "
        "or of dates such as 7d.",
        form="FLOAT|TIME",
    )
    per_target: bool = option(False, "Choose one alpha for every target.")
    one_standard_error: bool = option(
        False, "Take the largest alpha within one standard error of the best."
    )
    sparse: int | str | None = option(
        None, "Keep the best K components; auto: the fewest that are good enough.", form="K|auto"
    )
    sparse_method: str = option(
        "forward", "Forward selection, or the path of the lasso.", choices=SPARSE_METHODS
    )
    solver: str = option(
        "auto",
        "The D x D system, or conjugate gradients, which read the rows in every iteration and hold "
        "no such system; auto: these for more than 8,192 components, in single precision for more "
        "than 4,096 where they cost less, or where there is no room for it.",
        choices=(AUTO, "direct", "cg"),
    )
    feature_map: str = option(
        DEFAULT_MAP,
        "How features are made",
        name="map",
        choices=CHOICES["feature_map"],
        form=AUTO,
        listed=_maps,
    )
    paired: bool = option(True, "Cosines with random phases, instead of pairs.", name="phase")
    metric: Any = option(
        None,
        "Learn which directions of the inputs matter, or one weight for each input; auto: "
        "whichever predicts better.",
        form="learn[:ROUNDS]|diagonal[:ROUNDS]|auto[:ROUNDS]",
    )
    trend: Any = option(
        None,
        "Of --map grid, inputs that count by straight lines beside the field of the others, by "
        "name or number; linear, quadratic: a polynomial of its coordinates, too.",
        form="COLUMN|linear|quadratic[,...]",
        extension="fields",
    )
    scale: str | None = option(
        None,
        "How inputs are scaled: by mean and deviation, by median and quartiles with values far out "
        "brought nearer, all by one deviation, the indicators of a category as one input, by "
        "ranks, not at all; auto: as predicts held-out rows best.  [default: standard, or auto "
        "with kernel auto]",
        choices=CHOICES["scale"],
    )
    standardize: bool = option(True, "Take the inputs in their own units.", name="no-standardize")
    fit_intercept: bool = option(True, "Fit through the origin.", name="no-intercept")
    precision: str = option(
        "single",
        "Of features and products: summed in double, or as integers of one byte or two, exactly.",
        choices=(*CHOICES["precision"], AUTO),
    )
    on_bad_rows: str = option(
        "error",
        "What to do about rows with NaN or infinite values.",
        choices=CHOICES["on_bad_rows"],
    )
    target_range: Any = option(None, "Clip predictions to a range.", name="range", form="LOW,HIGH")
    random_state: int = option(
        0, "Seed of the map, and of the sample behind the median.", name="seed", least=0
    )
    keeps_folds: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        check_map(self.feature_map)
        for each in OPTIONS:
            value = getattr(self, each.name)
            said = each.metadata["option"]
            choices = (*said.choices, AUTO) if said.form == AUTO else said.choices
            is_unset = value is None is each.default
            if each.name in ("solver", "scale", "feature_map") and not is_unset:
                check_choice(each.name, value, choices)
            if isinstance(each.default, bool) and not isinstance(value, (bool, np.bool_)):
                raise ParameterError(
                    f"{each.name} must be True or False, not {value!r}; give one of them."
                )
        object.__setattr__(self, "target_range", checked_range(self.target_range))
        if not self.standardize and self.scale not in (None, "standard", "none"):
            raise ParameterError(
                f"inputs in their own units have no scale {self.scale!r}; leave out standardize "
                f"False (--no-standardize) or the scale."
            )

    @classmethod
    def of(cls, holder: Any) -> Self:
        """Return the parameters that an estimator holds as attributes."""
        return cls(**{name: getattr(holder, name) for name in NAMES if hasattr(holder, name)})

    def values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in NAMES}

    def chooses_kernel(self, feature_map: str) -> bool:
        """Say whether a fit with a map chooses the kernel, its length scale and the scale."""
        family = FAMILIES.get(feature_map)
        is_open = self.kernel == AUTO and self.metric is None
        return is_open and family is not None and family.made is not Identity

    @property
    def usual_map(self) -> str:
        """The map that is given, of 'auto' landmarks where they go with the rest, as of a fit."""
        if self.feature_map != AUTO:
            return self.feature_map
        D, is_plain = self.n_components, self.metric is None and self.sparse is None and self.paired
        suits = is_plain and not isinstance(first_kernel_of(self.kernel), Linear)
        suits = suits and not isinstance(D, str) and D <= DIRECT_COMPONENTS
        return "nystroem" if suits and self.precision in ("single", "double") else DEFAULT_MAP

    def with_moments(self) -> Self:
        """Return those of a model that keeps its moments, which are of a D x D system."""
        D = self.n_components
        suits = self.solver == AUTO and not isinstance(D, str) and D <= DIRECT_COMPONENTS
        return replace(self, solver="direct") if suits else self

    def growing(self) -> Self:
        """Return those of rows that others follow, which may be far from landmarks among them."""
        return replace(self, feature_map=DEFAULT_MAP) if self.feature_map == AUTO else self

    @property
    def scale_is_open(self) -> bool:
        """Whether a choice of the kernel or a search may choose the scale, too."""
        return self.scale is None and self.standardize

    @property
    def skips_bad_rows(self) -> bool:
        return self.on_bad_rows == "skip"

    @property
    def penalty(self) -> PenaltyOptions:
        return PenaltyOptions(self.alpha, self.alphas, self.per_target, self.one_standard_error)

    @property
    def solves_at_once(self) -> bool:
        """Whether nothing is left to choose once the moments are there."""
        return self.penalty.is_fixed and self.sparse is None and not self.keeps_folds

    def solution_by_passes(self, options: FitOptions, *, like: bool = False) -> dict[str, bool]:
        """Say whether conjugate gradients solve, or may where the plan says so.

        Raises ParameterError if these are asked for where only the D x D system will do.
        """
        obstacle = self._obstacle(options, like=like)
        if self.solver == "cg" and obstacle is not None:
            raise ParameterError(
                f"conjugate gradients have no D x D system, which {obstacle}; take solver 'direct' "
                f"(--solver direct), or leave that out."
            )
        may = obstacle is None and self.solver != "direct"
        may = may and (self.solver == "cg" or "gradients" in installed())
        large = self.solver == "cg" or options.n_components > DIRECT_COMPONENTS
        return {"solves_by_passes": may and large, "may_solve_by_passes": may}

    def _obstacle(self, options: FitOptions, *, like: bool) -> str | None:
        """Return what needs the D x D system, and how, or None."""
        found = {
            "moments that others are like are made for": like,
            "the number of components is chosen from": self.n_components == AUTO,
            "a sparse model is chosen from": self.sparse is not None,
            f"alpha {self.alpha!r} is chosen from": isinstance(self.alpha, str)
            and self.alpha != "cv",
            f"precision {self.precision!r} is for": options.precision in LEVELS,
            "windows of time need": options.is_in_time and options.n_folds > 1,
            f"a trend beside {options.kernel.name!r} needs unless precision is 'double'": (
                options.trend is not None
                and options.precision == "single"
                and options.own_solver is None
            ),
            "alpha 0 is solved by": self.penalty.is_fixed and self.alpha == 0,
        }
        return next((words for words, is_there in found.items() if is_there), None)

    def check_direct(self) -> None:
        """Raise ParameterError if moments of all features are not wanted."""
        if self.solver == "cg":
            raise ParameterError(
                "moments of all features are what conjugate gradients do without; take solver "
                "'direct' or 'auto', or fit the rows."
            )

    def pass_options(self, template: Template | None = None) -> FitOptions:
        """Return the checked options of the passes of a fit, those of the template if any."""
        if template is None or self.feature_map != AUTO:
            return self.with_folds(self.map_options(), template)
        found = template.options
        return self.with_folds(self.map_options(found.feature_map, found.kernel), template)

    def moment_options(self, template: Template | None) -> FitOptions:
        """Return the options of the passes of moments, which are dealt to folds in any case."""
        if template is None:
            return self.growing().map_options()
        return template.applied(self.map_options())

    def map_options(
        self, feature_map: str | None = None, kernel: Kernel | None = None
    ) -> FitOptions:
        """Return the options of passes as they are, with another map or kernel if one is given."""
        values: dict[str, Any] = {name: getattr(self, name) for name in GIVEN}
        D = AUTO_COMPONENTS if self.n_components == AUTO else self.n_components
        values |= {"metric": checked_metric(self.metric), "n_components": D}
        values |= {"feature_map": feature_map or self.usual_map}
        values["kernel"] = kernel or first_kernel_of(self.kernel)
        values["scale"] = self.scale or "standard"
        if self.trend is not None:
            values["trend"] = extension("fields", "asked_trend").checked_trend(self.trend)
        if self.scale == "none" or not self.standardize:
            values |= {"scale": "none", "standardize": False}
        if kernel is None and self.chooses_kernel(values["feature_map"]):
            values["chooses_kernel"] = True
            if self.scale_is_open and not FAMILIES[values["feature_map"]].made.is_field:
                values["scale"] = AUTO
        if self.precision != AUTO:
            return FitOptions(**values)
        options = FitOptions(**values | {"precision": "single"})
        rounds = options.has_bounds and "integers" in installed()
        # What is solved later, or goes on growing, is to be exact enough for anything.
        return replace(options, precision="int16") if rounds else options

    def for_rows(
        self, options: FitOptions, source: Source, template: Template | None = None
    ) -> FitOptions:
        """Return options for rows: where it is chosen, with no more components than there are.

        The kernel is not chosen for few rows, and its scale not for sparse ones, of which it would
        leave no zeros.  Columns of a trend are those of the rows.
        """
        if options.trend is not None:
            named = extension("fields", "asked_trend").trend_of_source
            options = replace(options, trend=named(options.trend, source))
        few = source.n_samples < FEWEST_ROWS
        if self.feature_map == AUTO and template is None and source.sparse_row_bytes:
            options = replace(options, feature_map=DEFAULT_MAP)
        if options.chooses_kernel and (few or source.sparse_row_bytes):
            scale = "standard" if self.scale_is_open else options.scale
            options = replace(options, chooses_kernel=not few, scale=scale)
        if self.n_components != AUTO or template is not None or options.is_identity:
            return options
        most = max(1 << (source.n_samples.bit_length() - 1), 64)
        return replace(options, n_components=min(options.n_components, most))

    def check_sparse(self, available: int | None) -> None:
        """Raise ParameterError unless a sparse model of so many features can be as asked for."""
        check_choice("the method of a sparse model", self.sparse_method, SPARSE_METHODS)
        if self.sparse is not None:
            extension("sparse", "selection").check_parameters(self, available)

    def with_folds(self, options: FitOptions, template: Template | None = None) -> FitOptions:
        """Return options with the folds that the choice of the penalty needs."""
        penalty, automatic = self.penalty, self.n_components == AUTO
        needs_folds = penalty.needs_folds or self.keeps_folds
        if needs_folds and options.n_folds < 2:
            raise ParameterError("cross-validation needs at least 2 folds, not 1; take 5.")
        if automatic and not penalty.needs_folds:
            raise ParameterError(
                "n_components 'auto' is chosen by cross-validation; take alpha 'cv' or a grid of "
                "penalties, or give the number."
            )
        if automatic and not (options.is_identity or options.is_nested):
            raise ParameterError(
                f"the map {options.feature_map!r} has no smaller ones in it to choose from; give "
                f"n_components a number."
            )
        n_folds = options.n_folds if needs_folds else 1
        if template is not None:
            options = template.applied(options)
        self.check_sparse(None if options.is_identity else options.n_components)
        return replace(options, n_folds=n_folds)


OPTIONS = tuple(each for each in fields(Parameters) if "option" in each.metadata)
NAMES = tuple(each.name for each in OPTIONS)
