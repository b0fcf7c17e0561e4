"""How near one row is to another, among all rows; and how near rows are to rows."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from embtool.search.blocks import I64, Pass, finite, joined, rankable, read, unit
from embtool.search.nearest import Metric, MetricScorer
from embtool.search.scan import exact_scores
from embtool.search.stream import Sheet, quick, sheets
from embtool.search.threads import Part, each_part
from embtool.space import F64

# Rows as near as the target that wait to be scored exactly.
_WAITING = 4096


class Rank(NamedTuple):
    """The place of a row among the neighbours of a query: rank 1 of `rows` is the nearest."""

    rank: int
    score: float
    rows: int


def rank_of(
    work: Pass,
    query: NDArray[np.floating],
    target: int,
    metric: Metric = "cosine",
    exclude: Sequence[int] = (),
) -> Rank | None:
    """The place of the row `target` among the rows nearest to a query, in one pass.

    It is the place that `nearest.top_k` would give it: one more than the rows that may rank, are
    not left out, and are nearer, or as near with a smaller id. None where the target may not rank:
    it is zero, not finite, left out or not allowed.

    query: (d_model,), in the space of the pass, neither zero nor with an infinity or NaN.
    """
    if not finite(query[None]).all():
        raise ValueError("the query is zero or not finite, so nothing is near it")
    counter = _Counter(work, MetricScorer(metric, query[None], work.space), target, exclude)
    with np.errstate(all="ignore"):
        counts = counter.run()
    if work.norms is None:
        work.norms = joined(counter.fresh)
    if not any(count.met for count in counts):
        return None
    nearer, rows = sum(count.nearer for count in counts), sum(count.rows for count in counts)
    score = counter.scorer.shown(np.array([counter.score]))
    return Rank(nearer + 1, float(score[0]), rows)


class _Count(NamedTuple):
    nearer: int
    rows: int
    met: bool


class _Counter:
    """Counts the rows that stand before the target."""

    def __init__(
        self, work: Pass, scorer: MetricScorer, target: int, exclude: Sequence[int]
    ) -> None:
        self.scorer = scorer
        self.fresh: list[tuple[int, NDArray[np.float32]]] = []
        self._work = work
        self._target = target
        self._left_out = np.array(sorted(set(exclude)), np.int64)
        self._known = None if work.norms is None else rankable(work.norms, work.allowed)
        self._exact = exact_scores(work, scorer)
        with np.errstate(all="ignore"):
            found = self._exact(np.zeros(1, np.int64), np.array([target]))
        self.score = float(found[0])
        self._margin = float(scorer.margin(np.zeros(1, np.int64), found, found)[0])

    def run(self) -> list[_Count]:
        """The counts of all parts."""
        scorer = self.scorer
        fast = quick(self._work, scorer.vectors, self._known, plain=scorer.plain)
        if fast is None:
            return each_part(self._work.parts, self._part)
        parts, slack = fast
        self._margin += float(slack[0])
        return each_part(parts, self._counted)

    def _part(self, part: Part) -> _Count:
        blocks = read(part, self._work, self._known, self.fresh)
        return self._counted(sheets(blocks, self.scorer.vectors))

    def _counted(self, some_sheets: Iterator[Sheet]) -> _Count:
        nearer = total = 0
        met = False
        waiting: list[I64] = []
        low = np.full(1, -np.inf, np.float32)
        with np.errstate(all="ignore"):
            for sheet in some_sheets:
                scores = self.scorer.scores(sheet, range(1), low)[1][0].astype(np.float64)
                scores[np.isin(sheet.ids, self._left_out)] = np.nan
                total += int(np.count_nonzero(~np.isnan(scores)))
                met = met or bool((~np.isnan(scores[sheet.ids == self._target])).any())
                above = scores - self.score
                near = (np.abs(above) <= self._margin) | np.isinf(scores)
                nearer += int(np.count_nonzero((above > 0) & ~near))
                waiting.append(sheet.ids[near])
                if sum(map(len, waiting)) > _WAITING:
                    nearer += self._before(np.concatenate(waiting))
                    waiting = []
            nearer += self._before(np.concatenate([*waiting, np.empty(0, np.int64)]))
        return _Count(nearer, total, met)

    def _before(self, ids: I64) -> int:
        """How many of these rows stand before the target, by exact score and then id."""
        scores = self._exact(np.zeros(len(ids), np.int64), ids)
        before = (scores > self.score) | ((scores == self.score) & (ids < self._target))
        return int(np.count_nonzero(before))


def similarity(these: NDArray[np.floating], those: NDArray[np.floating]) -> F64:
    """Cosines of vectors (n, d_model) with vectors (m, d_model): (n, m) float64.

    Vectors stand in one space. NaN for a vector that is zero or not finite.
    """
    with np.errstate(all="ignore"):
        cosines: F64 = unit(these) @ unit(those).T
    return cosines
