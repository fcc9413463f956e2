"""Fits told to scikit-learn's callbacks: a task for every pass over the rows, and for every shard.

scikit-learn has callbacks, such as progress bars, from 1.9 on; with an older one there are none.
"""

from __future__ import annotations

from functools import wraps
from inspect import signature
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar, cast

from streamkern.runtime.events import current_listener, observed

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:
    with_callbacks = None

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """The base class of estimators that can be told callbacks, where there are none."""


if TYPE_CHECKING:
    from collections.abc import Callable

    from streamkern.runtime.events import Event, Listener

    Method = TypeVar("Method", bound=Callable[..., Any])

__all__ = ["CallbackSupportMixin", "told_to_callbacks"]


def told_to_callbacks(method: Method) -> Method:
    """Return a method that fits, of a `CallbackSupportMixin`, telling its callbacks how it goes.

    The task of the fit has one subtask a pass, and that one a shard of rows; the fit ends with an
    estimator that is ready to predict.  Callbacks cannot stop a pass.
    """
    if with_callbacks is None:
        return method

    @wraps(method)
    def told(estimator: Any, *arguments: Any, **options: Any) -> Any:
        given = signature(method).bind(estimator, *arguments, **options).arguments
        rows: dict[str, Any] = {name: given.get(name) for name in ("X", "y")}
        if given.get("sample_weight") is not None:
            rows["metadata"] = {"sample_weight": given["sample_weight"]}
        whole = estimator._init_callback_context(max_subtasks=None)  # noqa: SLF001  documented
        whole.call_on_fit_task_begin(estimator=estimator, **rows)
        tasks = _Tasks(estimator, whole, current_listener())
        with observed(tasks.hear):
            fitted = method(estimator, *arguments, **options)
        if tasks.error is not None:
            raise tasks.error
        whole.call_on_fit_task_end(
            estimator=estimator, reconstruction_attributes=lambda: vars(fitted), **rows
        )
        return fitted

    return cast("Method", with_callbacks(told))


class _Tasks:
    """Hears the events of a fit, and calls the hooks of callbacks; one thread at a time.

    Parameters
    ----------
    estimator : BaseEstimator
    whole : CallbackContext
        The task of the whole fit.
    other : callable, optional
        Who hears the same events.

    Attributes
    ----------
    error : Exception, optional
        The first of a callback's own: whoever hears events must not fail.
    """

    def __init__(self, estimator: Any, whole: Any, other: Listener | None) -> None:
        self.estimator = estimator
        self.whole = whole
        self.other = other
        self.error: Exception | None = None
        self._passes: dict[str, Any] = {}
        self._done: set[tuple[str, int]] = set()
        self._lock = Lock()

    def hear(self, event: Event) -> None:
        """Begin or end a task, if that is what happened."""
        if self.other is not None:
            self.other(event)
        with self._lock:
            if self.error is None:
                try:
                    self._tell(event)
                except Exception as error:  # noqa: BLE001  whatever a callback does
                    self.error = error

    def _tell(self, event: Event) -> None:
        number = event.get("pass", "")
        if event["kind"] == "pass begun":
            task = self.whole.subcontext(
                event["label"], max_subtasks=event["shards"], sequential_subtasks=False
            )
            self._passes[number] = task.call_on_fit_task_begin(estimator=self.estimator)
        elif event["kind"] == "pass ended":
            self._passes[number].call_on_fit_task_end(estimator=self.estimator)
        elif event["kind"] == "shard done" and (number, event["shard"]) not in self._done:
            # A shard may be done once more, where the worker that held its sums was lost.
            self._done.add((number, event["shard"]))
            task = self._passes[number].subcontext("shard", task_id=event["shard"])
            task.call_on_fit_task_begin(estimator=self.estimator)
            task.call_on_fit_task_end(estimator=self.estimator)
