"""Rows that are equal to another, and rows that nearly are."""

from collections.abc import Callable, Iterator
from itertools import pairwise, product

import numpy as np

from embtool.quant import F32
from embtool.search.blocks import I64, Mask, RowsOf, dots
from embtool.space import F64
from embtool.stats.survey import Survey

#: Rows are nearly equal where their difference is no longer than this part of the longer one.
TOLERANCE = 1e-3
# Elements of float32 of rows that are compared at a time: 4 MiB for each of a pair.
_STEP = 1 << 20
# Projections that place a row in a grid; the others sort out most pairs of neighbouring cells.
_AXES = 3
# Pairs that are looked at before the search for nearly equal rows is given up.
_MOST_PAIRS = 50_000_000
# Pairs of places at a time, 8 MiB each of several arrays.
_AT_ONCE = 1 << 20


def duplicates(survey: Survey, rows_of: RowsOf) -> list[list[int]]:
    """The finite rows that equal another, grouped; ids ascending, groups by their first id.

    Rows with the same mark are read again and compared, so that no group is a guess. -0 equals 0,
    and two rows of zeros are equal.
    """
    ids = np.flatnonzero(survey.finite)
    ids = ids[np.argsort(survey.marks[ids], kind="stable")]
    d_model = len(survey.total)
    groups: list[list[int]] = []
    while len(ids := _shared(ids, survey.marks)):
        _, starts, run = np.unique(survey.marks[ids], return_index=True, return_inverse=True)
        leaders = ids[starts][run]
        same = _compare(ids, leaders, rows_of, d_model, _equal)
        members = ids[same]
        bounds = np.flatnonzero(np.diff(leaders[same])) + 1
        groups += [group.tolist() for group in np.split(members, bounds) if len(group) > 1]
        ids = ids[~same]
    return sorted(groups)


def _shared(ids: I64, marks: F64) -> I64:
    """The ids whose mark another one has; ids sorted by their marks."""
    equal = marks[ids[1:]] == marks[ids[:-1]]
    return ids[np.append(equal, False) | np.insert(equal, 0, False)] if len(ids) else ids


def near_duplicates(
    survey: Survey, rows_of: RowsOf, equal: list[list[int]], tolerance: float = TOLERANCE
) -> list[list[int]] | None:
    """Rows that nearly equal another, in groups where each has a neighbour in the same group.

    Two rows x and y are neighbours where |x - y| <= tolerance x max(|x|, |y|). None is missed:
    the unit vectors of such rows are no farther apart than the tolerance, and no farther in the
    space of a few directions, so that they lie in the same or in adjoining cells of a grid over
    three of them. Pairs from there are sifted by all projections and by length, and then compared
    themselves.

    equal: the groups that `duplicates` found; the first of each stands for all of them, so that
    only differing rows are reported. None where so many rows lie together that more than 50
    million pairs would have to be compared.
    """
    alone = survey.directed
    alone[[row for group in equal for row in group[1:]]] = False
    ids = np.flatnonzero(alone)
    # |x - y| <= t |x| puts an angle of at most asin t between them.
    reach = 1.01 * tolerance
    first, second = [ids[:0]], [ids[:0]]
    looked = 0
    for these, those in _neighbouring(survey.projections[ids, :_AXES], reach):
        looked += len(these)
        if looked > _MOST_PAIRS:
            return None
        one, other = _alike(survey, ids[these], ids[those], reach)
        first.append(one)
        second.append(other)
    one, other = np.concatenate(first), np.concatenate(second)
    close = _compare(one, other, rows_of, len(survey.total), lambda a, b: _near(a, b, tolerance))
    return _joined(one[close], other[close])


def _neighbouring(points: F32, cell: float) -> Iterator[tuple[I64, I64]]:
    """Pairs of points in the same or in adjoining cells of a grid, each pair once, by places."""
    # Room beyond the edges, so that no neighbour of a cell counts as one of another line.
    side = int(2 / cell) + 5
    steps = side ** np.arange(points.shape[1])
    keys = (np.floor((points + 1.0) / cell).astype(np.int64) + 2) @ steps
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    for offset in product((-1, 0, 1), repeat=points.shape[1]):
        step = int(steps @ np.array(offset))
        if step < 0:
            continue
        stop = np.searchsorted(keys, keys + step, "right")
        start = np.searchsorted(keys, keys + step, "left") if step else np.arange(1, len(keys) + 1)
        yield from _runs(order, start, stop - start)


def _runs(order: I64, start: I64, sizes: I64) -> Iterator[tuple[I64, I64]]:
    """Each point with the run of `order` that is its own, some million pairs at a time."""
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    bounds = np.searchsorted(ends, np.arange(0, total, _AT_ONCE), "right")
    for a, b in pairwise([*bounds.tolist(), len(sizes)]):
        count = sizes[a:b]
        within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        yield np.repeat(order[a:b], count), order[np.repeat(start[a:b], count) + within]


def _alike(survey: Survey, one: I64, other: I64, reach: float) -> tuple[I64, I64]:
    """The pairs of rows that may be nearly equal, by what the survey tells of them."""
    a, b = survey.norms[one], survey.norms[other]
    near = np.abs(a - b) <= reach * np.maximum(a, b)
    one, other = one[near], other[near]
    apart = np.zeros(len(one))
    for axis in range(survey.projections.shape[1]):
        values = survey.projections[:, axis]
        apart += np.square(values[one] - values[other])
        near = apart <= reach**2
        one, other, apart = one[near], other[near], apart[near]
    return one, other


def _compare(
    one: I64, other: I64, rows_of: RowsOf, d_model: int, test: Callable[[F64, F64], Mask]
) -> Mask:
    """`test` of each pair of rows, read in pieces: (n,) ids twice -> (n,) bool."""
    verdict = np.zeros(len(one), bool)
    step = max(1, _STEP // max(1, d_model))
    for start in range(0, len(one), step):
        here = slice(start, start + step)
        ids, at = np.unique(np.concatenate([one[here], other[here]]), return_inverse=True)
        rows = rows_of(ids).astype(np.float64)
        these, those = np.split(rows[at], 2)
        verdict[here] = test(these, those)
    return verdict


def _equal(these: F64, those: F64) -> Mask:
    equal: Mask = (these == those).all(axis=1)
    return equal


def _near(these: F64, those: F64, tolerance: float) -> Mask:
    apart = these - those
    longer = np.maximum(dots(these, these), dots(those, those))
    near: Mask = dots(apart, apart) <= tolerance**2 * longer
    return near


def _joined(one: I64, other: I64) -> list[list[int]]:
    """Pairs as groups: whoever is paired, by others or not, stands in the same group."""
    leader: dict[int, int] = {}

    def find(row: int) -> int:
        while leader.setdefault(row, row) != row:
            leader[row] = leader[leader[row]]
            row = leader[row]
        return row

    for a, b in zip(one.tolist(), other.tolist(), strict=True):
        low, high = sorted((find(a), find(b)))
        leader[high] = low
    groups: dict[int, list[int]] = {}
    for row in sorted(leader):
        groups.setdefault(find(row), []).append(row)
    return sorted(groups.values())
