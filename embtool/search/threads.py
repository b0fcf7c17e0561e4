"""Work on the parts of a table at once, one thread for each."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from threading import Event
from typing import TypeVar

from embtool.quant import F32

#: A range of a table's rows: (first row, block (n, d_model)); the next step may reuse the block.
Part = Iterator[tuple[int, F32]]

_T = TypeVar("_T")
_R = TypeVar("_R")


def each_part(parts: Sequence[Iterable[_T]], work: Callable[[Iterator[_T]], _R]) -> list[_R]:
    """`work(part)` for every part, each on a thread of its own; the results in the parts' order.

    The first exception, of a part, of the work or a KeyboardInterrupt here, is raised as it is,
    as soon as the other parts have ended the step that they are in. A single part is worked on
    in the calling thread.
    """
    if len(parts) == 1:
        return [work(iter(parts[0]))]
    stop = Event()
    with ThreadPoolExecutor(max(1, len(parts))) as pool:
        try:
            futures = [pool.submit(work, _until(stop, part)) for part in parts]
            wait(futures, return_when=FIRST_EXCEPTION)
            for future in futures:
                if future.done():
                    future.result()
        except BaseException:
            stop.set()
            raise
        return [future.result() for future in futures]


def _until(stop: Event, part: Iterable[_T]) -> Iterator[_T]:
    for step in part:
        if stop.is_set():
            return
        yield step
