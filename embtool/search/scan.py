"""A pass that scores every row for every query and keeps the best."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Generic, Protocol, TypeVar

import numpy as np

from embtool.quant import F32
from embtool.search.blocks import I64, Pass, joined, rankable, read
from embtool.search.candidates import Candidates, Exact, pair_keys
from embtool.search.stream import Sheet, quick, sheets
from embtool.search.threads import Part, each_part
from embtool.space import F64

_T = TypeVar("_T")

# Queries that are scored together against one block: with its 1,024 rows, 2 MiB of scores.
QUERIES = 512
# Elements of float64 in a step of exact scoring: half a MiB each of rows and of queries, as new
# memory costs more than the work on it.
_EXACT_ELEMENTS = 1 << 16


class Scorer(Protocol[_T]):
    """How rows are scored, larger is nearer: in float32 for all rows, in float64 for a few."""

    plain: bool
    """Whether a score is a product over a norm, so that the slack of products is known."""
    vectors: F32
    """What every row is multiplied with, (v, d_model)."""
    groups: list[range]
    """The queries, in runs that are scored together."""

    def prepare(self, sheet: Sheet) -> _T:
        """What the groups share: their part of the work on some rows."""

    def scores(self, ready: _T, group: range, low: F32) -> tuple[I64, F32]:
        """Scores (m, n) float32 of m queries of the group, NaN for rows that may not rank.

        The queries (m,) are counted from the group's first and in order; one is missing only if
        none of its scores reaches its number in `low` (len(group),).
        """

    def delicate(self, ready: _T, group: range) -> tuple[I64, I64]:
        """Pairs (query, column) that float32 cannot score, whose score above is NaN."""

    def margin(self, queries: I64, best: F64, kth: F64) -> F64:
        """How far below the k-th score a row is kept, (n,)."""

    def exact(self, queries: I64, rows: F64) -> F64:
        """The score of each pair of a query (n,) and a row (n, d_model) of the space."""


def exact_scores(work: Pass, scorer: "Scorer[_T]") -> Exact:
    """Exact scores of pairs from stored rows, which are read in the order of their ids."""

    def exact(queries: I64, ids: I64) -> F64:
        scores = np.empty(len(ids))
        order = np.argsort(ids, kind="stable")
        done, step = 0, 1
        while done < len(order):
            pairs = order[done : done + step]
            some, at = np.unique(ids[pairs], return_inverse=True)  # ascending, as the pairs are
            rows = in_space(work, work.rows_of(some))
            if len(some) < len(pairs):  # a row for several queries
                rows = rows[at]
            scores[pairs] = scorer.exact(queries[pairs], rows)
            done += step
            step = max(1, _EXACT_ELEMENTS // rows.shape[1])
        return scores

    return exact


def in_space(work: Pass, rows: F32) -> F64:
    """Stored rows as the pass compares them, float64."""
    return rows.astype(np.float64) if work.space is None else work.space.apply(rows)


class Scan(Generic[_T]):
    """The k best rows of every query of a scorer, in one pass."""

    def __init__(self, work: Pass, scorer: Scorer[_T], k: int, left_out: I64) -> None:
        self._work = work
        self._scorer = scorer
        self._k = k
        self._left_out = left_out
        self._exact = exact_scores(work, scorer)
        self._known = None if work.norms is None else rankable(work.norms, work.allowed)
        self._fresh: list[tuple[int, F32]] = []
        self._slack: F64 | None = None

    def run(self) -> list[tuple[I64, F64]]:
        """(ids, exact scores) of every query, the best first, equal scores by id."""
        scorer = self._scorer
        found: list[list[Candidates]]
        fast = quick(self._work, scorer.vectors, self._known, plain=scorer.plain)
        if fast is None:
            found = each_part(self._work.parts, self._part)
        else:
            parts, self._slack = fast
            found = each_part(parts, self._kept)
        if self._work.norms is None:
            self._work.norms = joined(self._fresh)
        groups = list(zip(*found, strict=True))
        threads = max(1, min(len(found), len(groups)))
        bounds = [len(groups) * thread // threads for thread in range(threads + 1)]
        answers = each_part([groups[a:b] for a, b in pairwise(bounds)], _best)
        return [answer for some in answers for answer in some]

    def _part(self, part: Part) -> list[Candidates]:
        blocks = read(part, self._work, self._known, self._fresh)
        return self._kept(sheets(blocks, self._scorer.vectors))

    def _kept(self, some_sheets: Iterator[Sheet]) -> list[Candidates]:
        scorer = self._scorer
        kept = [
            Candidates(group, self._k, self._left_out, self._exact, self._margin)
            for group in scorer.groups
        ]
        # Rows may hold infinities, and what does not rank is NaN: values, not warnings.
        with np.errstate(all="ignore"):
            for sheet in some_sheets:
                ready = scorer.prepare(sheet)
                for group, candidates in zip(scorer.groups, kept, strict=True):
                    some, scores = scorer.scores(ready, group, candidates.low)
                    candidates.offer(some, sheet.ids, scores)
                    queries, columns = scorer.delicate(ready, group)
                    if len(queries):
                        candidates.offer_pairs(queries, sheet.ids[columns])
        return kept

    def _margin(self, queries: I64, best: F64, kth: F64) -> F64:
        """The scorer's; where products have a slack, also what the row and the k-th may lack."""
        margin = self._scorer.margin(queries, best, kth)
        return margin if self._slack is None else margin + 2 * self._slack[queries]


def _best(groups: Iterable[Sequence[Candidates]]) -> list[tuple[I64, F64]]:
    with np.errstate(all="ignore"):
        return [answer for threads in groups for answer in threads[0].best(threads[1:])]


def left_out_keys(exclude: Sequence[Sequence[int]]) -> I64:
    """Sorted `pair_keys` of the ids that each query leaves out."""
    counts = [len(ids) for ids in exclude]
    queries = np.repeat(np.arange(len(exclude)), counts)
    ids = np.fromiter((i for some in exclude for i in some), np.int64, sum(counts))
    return np.sort(pair_keys(queries, ids))  # np.unique imports numpy.ma, which takes 10 ms


def query_groups(count: int) -> list[range]:
    """0 .. count in runs of 512."""
    bounds = [*range(0, count, QUERIES), count]
    return [range(a, b) for a, b in pairwise(bounds)]
