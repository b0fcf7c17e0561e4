"""The rows that stand highest and lowest in some dimensions."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from embtool.quant import F32
from embtool.search.blocks import I64, Pass, joined, rankable, read
from embtool.search.nearest import Hit, hits
from embtool.search.threads import Part, each_part
from embtool.space import F64


class Ends(NamedTuple):
    """One dimension: its mean and deviation over `rows` rows, and the rows at its two ends.

    `highest` begins with the largest value, `lowest` with the smallest; equal values by id.
    """

    mean: float
    deviation: float
    rows: int
    highest: list[Hit]
    lowest: list[Hit]


class _Kept(NamedTuple):
    """Candidates of one end of one dimension."""

    values: F32
    ids: I64


class _Found(NamedTuple):
    sums: F64
    squares: F64
    rows: int
    kept: list[_Kept]


def dimension_ends(work: Pass, dimensions: Sequence[int], k: int) -> list[Ends]:
    """The k rows at both ends of each dimension, in one pass over the rows that may rank.

    dimensions: columns of the table, each below d_model. Values are the stored ones, exactly.
    """
    columns = np.asarray(dimensions, np.int64)
    known = None if work.norms is None else rankable(work.norms, work.allowed)
    fresh: list[tuple[int, F32]] = []

    def search(part: Part) -> _Found:
        sums = np.zeros(len(columns))
        squares = np.zeros(len(columns))
        count = 0
        kept = [_Kept(np.empty(0, np.float32), np.empty(0, np.int64))] * (2 * len(columns))
        for rows in read(part, work, known, fresh):
            good = ~np.isnan(rows.norms)
            values = rows.values[:, columns][good]
            ids = rows.ids[good]
            count += len(ids)
            wide = values.astype(np.float64)
            sums += wide.sum(axis=0)
            squares += np.square(wide).sum(axis=0)
            for place in range(2 * len(columns)):
                kept[place] = _best(kept[place], _Kept(_signed(values, place), ids), k)
        return _Found(sums, squares, count, kept)

    found = each_part(work.parts, search)
    if work.norms is None:
        work.norms = joined(fresh)
    return _ends(found, len(columns), k)


def _signed(values: F32, place: int) -> F32:
    """A column so that the largest value is at the wanted end: 2 j for highest, 2 j + 1 lowest."""
    column: F32 = values[:, place // 2]
    return column if place % 2 == 0 else -column


def _best(these: _Kept, those: _Kept, k: int) -> _Kept:
    """The k largest of both, equal ones by id."""
    if len(these.ids) >= k:
        better = those.values >= these.values[-1]
        those = _Kept(those.values[better], those.ids[better])
        if not len(those.ids):
            return these
    values = np.concatenate([these.values, those.values])
    ids = np.concatenate([these.ids, those.ids])
    order = np.lexsort((ids, -values))[:k]
    return _Kept(values[order], ids[order])


def _ends(found: Sequence[_Found], columns: int, k: int) -> list[Ends]:
    rows = sum(each.rows for each in found)
    count = max(1, rows)
    sums = np.sum([each.sums for each in found], axis=0) / count
    squares = np.sum([each.squares for each in found], axis=0) / count
    deviations = np.sqrt(np.maximum(squares - sums**2, 0))
    ends = []
    for j in range(columns):
        sides = []
        for place in (2 * j, 2 * j + 1):
            best = found[0].kept[place]
            for each in found[1:]:
                best = _best(best, each.kept[place], k)
            sign = 1 if place % 2 == 0 else -1
            sides.append(hits(best.ids, sign * best.values.astype(np.float64)))
        ends.append(Ends(float(sums[j]), float(deviations[j]), rows, *sides))
    return ends
