"""The k nearest neighbours of many rows, exact, by blocks of matrix products."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from embtool.quant import F32
from embtool.search.blocks import I64, Pass, RowsOf, finite
from embtool.search.nearest import Hit, Metric, top_k
from embtool.search.threads import Part, each_part

# Elements of float32 rows that are asked for in one pass: 16 MiB, and four times as much in the
# forms that a search has them in. Fewer mean more passes, and every pass decodes the whole table.
_ELEMENTS = 1 << 22
_FEWEST, _MOST = 512, 4096
# A product of this many rows by as many shows a machine's rate; a scan multiplies such blocks.
_TRIED = 512
# The whole takes this many times as long as its products alone (scripts/bench_graph.py: processor
# time for a table of 32,000 x 256; less where it is wider).
_OVERHEAD = 1.8


class Cost(NamedTuple):
    """What a graph takes: multiplications and additions, and seconds at a measured rate."""

    operations: int
    seconds: float


def operations(rows: int, d_model: int, asked: int) -> int:
    """Multiplications and additions in the products of `asked` rows with all rows."""
    return 2 * rows * d_model * asked


def cost(rows: int, d_model: int, asked: int, threads: int) -> Cost:
    """What the neighbours of `asked` rows among all cost, at the rate that this machine has now.

    The rate is measured on products of the same width, on all threads at once, in less than a
    second or two products' time.
    """
    block = np.ones((_TRIED, d_model), np.float32)

    def work(_: Iterator[None]) -> float:
        began, done = time.perf_counter(), 0
        while done < 2 or time.perf_counter() - began < 0.1:
            block @ block.T
            done += 1
        return done * operations(_TRIED, d_model, _TRIED) / (time.perf_counter() - began)

    rate = sum(each_part([iter(()) for _ in range(threads)], work))
    needed = operations(rows, d_model, asked)
    return Cost(needed, _OVERHEAD * needed / rate)


def at_once(d_model: int) -> int:
    """How many rows are asked for in one pass: 4,096 up to a width of 1,024, at least 512."""
    return min(_MOST, max(_FEWEST, _ELEMENTS // max(1, d_model)))


def neighbors_of_rows(
    parts: Callable[[], Sequence[Part]],
    rows_of: RowsOf,
    ids: I64,
    k: int,
    metric: Metric = "cosine",
    norms: F32 | None = None,
) -> Iterator[tuple[I64, list[list[Hit]]]]:
    """For rows one run after another (ids, the k nearest other rows of each, nearest first).

    parts: called once for each pass; a run of rows takes one. norms: (rows,) as
    `search.blocks.norms` gives them, where they are known. The order and the scores are those of
    `search.nearest.top_k`. A row that is zero or not finite has no neighbours, and is no one's.
    """
    step = at_once(rows_of(ids[:1]).shape[1]) if len(ids) else 1
    for start in range(0, len(ids), step):
        some = ids[start : start + step]
        rows = rows_of(some)
        usable = np.flatnonzero(finite(rows))
        work = Pass(parts(), rows_of, norms)
        answers: list[list[Hit]] = [[] for _ in some]
        exclude = [[row] for row in some[usable].tolist()]
        found = top_k(work, rows[usable], k, metric, exclude)
        for place, hits in zip(usable.tolist(), found, strict=True):
            answers[place] = hits
        norms = work.norms
        yield some, answers
