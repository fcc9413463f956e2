"""A fixed number of BLAS threads, whichever threads the tasks run on."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import scipy.linalg  # noqa: F401  brings its own BLAS
from threadpoolctl import ThreadpoolController

from streamkern.runtime.threads import blas_threads


def libraries():
    """Those whose number can be set: MKL, which multiplies integers, has one thread."""
    found = ThreadpoolController().select(user_api="blas").lib_controllers
    return [library for library in found if library.internal_api != "mkl"]


def in_use():
    """How many threads each BLAS library of this process uses."""
    return [library.get_num_threads() for library in libraries()]


def released():
    """Let any thread set the number: threadpoolctl 3.8 keeps the thread that did so last."""
    for library in libraries():
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


@pytest.fixture
def before():
    """The numbers outside, to which they are put back whatever the test did."""
    released()
    numbers = in_use()
    assert numbers, "no BLAS library was found"
    yield numbers
    released()
    for library, number in zip(libraries(), numbers, strict=True):
        library.set_num_threads(number)
    released()


@pytest.fixture
def number(before):
    """A number of threads that is not the one outside."""
    return 3 if 1 in before else 1


@pytest.fixture
def held(before, number):
    return [number] * len(before)


def test_inside_one_another_and_after_an_error_the_number_holds_until_the_last_leaves(
    before, number, held
):
    def fail():
        with blas_threads(number):
            with blas_threads(number):
                assert in_use() == held
            assert in_use() == held
            raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            fail()
        assert in_use() == before


@pytest.mark.parametrize("last", [0, 3], ids=["first-leaves-last", "first-leaves-first"])
def test_the_number_holds_while_tasks_come_and_go_on_several_threads(before, number, held, last):
    n_tasks = 4
    entered, leave, left = ([threading.Event() for _ in range(n_tasks)] for _ in range(3))

    def task(i):
        with blas_threads(number):
            entered[i].set()
            leave[i].wait(timeout=10)
            seen = in_use()
        left[i].set()
        return seen

    with ThreadPoolExecutor(n_tasks) as pool:
        tasks, outside = [], []
        for i in range(n_tasks):
            tasks.append(pool.submit(task, i))
            assert entered[i].wait(timeout=10)
        for i in sorted(range(n_tasks), reverse=last == 0):
            outside.append(in_use())
            leave[i].set()
            assert left[i].wait(timeout=10)
        after = in_use()
    assert [task.result() for task in tasks] == [held] * n_tasks
    assert outside == [held] * n_tasks
    assert after == before


def test_the_number_holds_on_one_thread_after_another_that_still_lives(before, number, held):
    def task():
        with blas_threads(number):
            return in_use()

    with ThreadPoolExecutor(1) as first, ThreadPoolExecutor(1) as second:
        for pool in (first, second, first):
            assert pool.submit(task).result() == held
            assert in_use() == before
    assert task() == held
