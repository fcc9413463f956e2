"""`streamkern compare-models`."""

from typing import Any

import click

from streamkern.cli import options as shared
from streamkern.cli.console import Say, command
from streamkern.cli.evaluate import evaluated
from streamkern.cli.parameter_options import parameter_options
from streamkern.errors import ParameterError
from streamkern.errors.urls import is_url


@command(
    click.argument("models", nargs=-1, required=True, metavar="MODEL.h5..."),
    shared.several_option("--data", "FILE", "Evaluate all models on these rows; repeat."),
    *shared.data_options[1:],
    shared.delimiter_option,
    *parameter_options("on_bad_rows"),
    *shared.place_options,
    click.option("--report", metavar="FILE.html", help="Write the comparison as a page."),
    shared.force_option,
    examples=("streamkern compare-models a.h5 b.h5 --data test.h5 --report models.html",),
)
def compare_models(say: Say, **options: Any) -> None:
    """Show fitted models side by side, and mark what differs.

    With --data, all are evaluated on the same rows, one after another: the only errors that tell
    which of models of different rows is better.
    """
    from streamkern.models.fitted_classes import FittedClassifier
    from streamkern.models.loading import load_fitted
    from streamkern.report import model_comparison as compared
    from streamkern.sources.headers import matching
    from streamkern.storage.outputs import check_output

    paths = options["models"]
    if len(set(paths)) < 2 or len(set(paths)) < len(paths):
        raise ParameterError(
            f"a comparison is of two models or more, each once, not {' '.join(paths)}; name others."
        )
    if options["report"]:
        rows = (each for name in options["data"] if not is_url(name) for each in matching(name))
        check_output(options["report"], force=options["force"], inputs=[*paths, *rows])
    models = {path: load_fitted(path, boosted=False, components=False) for path in paths}
    if len({isinstance(model, FittedClassifier) for model in models.values()}) > 1:
        raise ParameterError(
            "models to compare must all be of numbers or all be of classes, but these are of both; "
            "name models of one kind."
        )
    found = []
    for path, model in models.items() if options["data"] else ():
        found.append(evaluated(say, options | {"model": path}, model)[0])
    say.table("Models", **compared.comparison_table(models)._asdict())
    if found:
        say.table("Errors on the same rows", **compared.errors_table(models, found)._asdict())
    if options["report"]:
        where = ", ".join(options["data"])
        force = options["force"]
        compared.write_comparison(models, found, where, options["report"], force=force)
    cards = compared.compared_cards(models)
    told = [
        {"model": path, **{key: values[j] for key, values in cards.items()}}
        | ({"evaluation": found[j]} if found else {})
        for j, path in enumerate(paths)
    ]
    differs = [key for key, values in cards.items() if any(v != values[0] for v in values)]
    say.result({"models": told, "differs": differs})
