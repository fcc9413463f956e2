"""The trend that is asked for: columns by name or number, and words for polynomials."""

from typing import Any

import numpy as np

from streamkern._typing import Source
from streamkern.errors import ParameterError
from streamkern.errors.checks import is_integer
from streamkern.errors.formatting import listed
from streamkern.features.trend import DEGREES

Asked = tuple[int | str, ...]


def checked_trend(trend: Any) -> Asked | None:
    """Return what is asked for, from text with commas or a list; None for no trend."""
    if trend is None:
        return None
    parts: Any = trend.split(",") if isinstance(trend, str) else np.atleast_1d(np.array(trend, "O"))
    asked = tuple(each.strip() if isinstance(each, str) else each for each in parts)
    right = (each if isinstance(each, str) else is_integer(each, 0) for each in asked)
    if not asked or not all(right):
        raise ParameterError(
            f"a trend must be names or numbers of columns, 'linear' or 'quadratic', not {trend!r}; "
            f"give some, or leave the trend out."
        )
    return tuple(each if isinstance(each, str) else int(each) for each in asked)


def trend_of_source(asked: Asked, source: Source) -> Asked:
    """Return a trend with the numbers of columns in the place of their names."""
    from streamkern.sources.columns import MOST_NAMED, columns_of

    names, p = columns_of(source).input_names or [], source.n_features
    places: dict[Any, int] = {name: j for j, name in enumerate(names)}
    found = list[int | str]()
    for each in asked:
        number = int(each) if isinstance(each, int) or each.isdecimal() else -1
        column = each if each in DEGREES else places.get(each, number)
        if each in DEGREES and each in places:
            raise ParameterError(
                f"{each!r} is a word of a trend, and a column of X too; give that another name."
            )
        if not (each in DEGREES or 0 <= int(column) < p):
            known = listed(names, MOST_NAMED) if names else f"0 to {p - 1}"
            raise ParameterError(
                f"a trend must be of columns of X, {known}, not {each!r}; name some of these."
            )
        if column in found:
            raise ParameterError(f"the trend has {each!r} twice; name every column once.")
        found.append(column)
    return tuple(found)
