"""Work on the parts of a table at once, one thread for each."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import Event, Thread
from typing import TypeVar

from embtool.quant import F32

#: A range of a table's rows: (first row, block (n, d_model)); the next step may reuse the block.
Part = Iterator[tuple[int, F32]]

_T = TypeVar("_T")
_R = TypeVar("_R")


def threads() -> int:
    """How many threads a pass has: one for each processor that this process may use."""
    # Only Linux can tell which those are; elsewhere it may use all.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def each_part(parts: Sequence[Iterable[_T]], work: Callable[[Iterator[_T]], _R]) -> list[_R]:
    """`work(part)` for every part, each on a thread of its own; the results in the parts' order.

    The first exception, of a part, of the work or a KeyboardInterrupt here, is raised as it is,
    as soon as the other parts have ended the step that they are in. A single part is worked on
    in the calling thread. (concurrent.futures would do, but takes 5 ms to import.)
    """
    if len(parts) == 1:
        return [work(iter(parts[0]))]
    stop, results, failures = Event(), dict[int, _R](), list[BaseException]()

    def run(number: int) -> None:
        try:
            results[number] = work(_until(stop, parts[number]))
        except BaseException as error:
            failures.append(error)
            stop.set()

    workers = [Thread(target=run, args=(number,)) for number in range(len(parts))]
    try:
        for thread in workers:
            thread.start()
        for thread in workers:
            thread.join()
    except BaseException:
        stop.set()
        for thread in workers:
            if thread.ident is not None:
                thread.join()
        raise
    if failures:
        raise failures[0]
    return [results[number] for number in range(len(parts))]


def _until(stop: Event, part: Iterable[_T]) -> Iterator[_T]:
    for step in part:
        if stop.is_set():
            return
        yield step
