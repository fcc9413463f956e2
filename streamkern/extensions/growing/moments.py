"""`streamkern moments`."""

from typing import Any

from streamkern.cli import options as shared
from streamkern.cli.console import Console, command
from streamkern.cli.parameter_options import OF_LIKE, OF_MAPS, parameter_options, parameters_of
from streamkern.cli.row_files import prepared
from streamkern.cli.saving import drop_checkpoint, save_moments

_OF_MOMENTS = (*OF_MAPS, "n_components", "metric", "trend", "n_folds", "fold_by", "on_bad_rows")


@command(
    *shared.rows_options,
    shared.out_option("M.h5", "The moments file to write."),
    *parameter_options(*_OF_MOMENTS),
    shared.like_option,
    *shared.options_of_extensions("moments"),
    *shared.job_options,
    examples=(
        "streamkern moments day-1.h5 --out m1.h5",
        "streamkern moments day-2.h5 --out m2.h5 --like m1.h5",
    ),
)
def moments(console: Console, **options: Any) -> None:
    """Reduce the rows of DATA to the moments that `solve` makes models of.

    Moments can be merged with those of other rows, and rows be forgotten, as if the rest had been
    read together. For that every row is known again: by 9 bytes, in memory and in the file.
    Moments of further rows are made with --like M.h5.
    """
    from streamkern.estimators.loading import template_of
    from streamkern.storage.codec import MOMENTS, kind_of

    like = options["like"]
    if like:
        decided = (*OF_LIKE, "n_folds") if kind_of(like) is MOMENTS else OF_LIKE
        shared.refuse_given(decided, f"is decided by --like {like}; leave out one of the two.")
    problem, parameters = shared.problem_of(options), parameters_of(options)
    template = template_of(like)
    job = problem.moments_job(parameters, template)
    with prepared(console, options, job, template, labels=problem.reads_labels) as source:
        how = {"template": template, "checkpoint": options["checkpoint"]}
        found = problem.moments(parameters, (source, None, None), **how).gathered()
    save_moments(console, "Moments", found, options["out"], force=options["force"])
    drop_checkpoint(options["checkpoint"])
