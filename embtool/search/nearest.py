"""The nearest rows to any vectors."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from embtool.quant import F32
from embtool.search.blocks import I64, Pass, dots, finite
from embtool.search.scan import Scan, left_out_keys, query_groups
from embtool.search.stream import Sheet
from embtool.space import F64, Space

Metric = Literal["cosine", "dot", "euclidean"]

# What float32 may get wrong, relative to the largest score (DESIGN: Numbers).
TOLERANCE = 1e-5
_NO_PAIRS = (np.empty(0, np.int64), np.empty(0, np.int64))


class Hit(NamedTuple):
    """A row and its score."""

    id: int
    score: float


def top_k(
    work: Pass,
    queries: NDArray[np.floating],
    k: int,
    metric: Metric = "cosine",
    exclude: Sequence[Sequence[int]] = (),
) -> list[list[Hit]]:
    """The k nearest rows to each query, nearest first, equal scores by id; fewer if rows end.

        cosine      q . x / (|q| |x|), the largest first
        dot         q . x, the largest first
        euclidean   |q - x|, the smallest first

    work: the pass, which this uses up. With a space, x is the row in it and so must the queries
        be: `work.space.apply(rows)`.
    queries: (q, d_model); none may be zero or hold an infinity or NaN: ask `finite` before.
    exclude: for each query the ids that it leaves out; empty for none.

    Scores are computed from float64 values of the stored rows, and are the same for any number
    of parts, blocks and queries. Rows that are zero or not finite never rank. Memory beside the
    queries is some 100 bytes a query and answer, and 20 to 50 MiB a part for many queries.
    """
    if not finite(queries).all():
        raise ValueError("a query is zero or not finite, so nothing is near it")
    if k < 1 or (len(exclude) not in (0, len(queries))):
        raise ValueError(f"k {k} below 1, or {len(exclude)} exclusions for {len(queries)} queries")
    if not len(queries):
        return []
    scorer = MetricScorer(metric, queries, work.space)
    found = Scan[Sheet](work, scorer, k, left_out_keys(exclude)).run()
    return [hits(ids, scorer.shown(scores)) for ids, scores in found]


def hits(ids: I64, scores: F64) -> list[Hit]:
    """Ids and scores (n,) as Python values."""
    return [Hit(*pair) for pair in zip(ids.tolist(), scores.tolist(), strict=True)]


class MetricScorer:
    """Scores by a metric; for euclidean -|q - x|^2, so that larger is nearer.

    In a space x' = x - m - C^T C (x - m). A query of the space is orthogonal to the components
    C, so q . x' = q . x - q . m: the scan multiplies the rows as they are stored, takes one
    number off for each query, and needs of the space no more than the norms |x'|.
    """

    def __init__(self, metric: Metric, queries: NDArray[np.floating], space: Space | None) -> None:
        self.metric = metric
        self.plain = metric == "cosine" and space is None
        self.groups = query_groups(len(queries))
        self._queries = queries
        self.vectors: F32 = queries.astype(np.float32)
        self._lengths: F64 = np.empty(len(queries))
        self._offsets: F32 | None = None
        mean = None if space is None else space.mean
        if mean is not None:
            self._offsets = np.empty((len(queries), 1), np.float32)
        for group in self.groups:  # so that the queries are never all held in float64
            some = slice(group.start, group.stop)
            wide = queries[some].astype(np.float64)
            self._lengths[some] = np.sqrt(dots(wide, wide))
            if metric == "cosine":
                wide /= self._lengths[some, None]
                self.vectors[some] = wide
            if self._offsets is not None and mean is not None:
                self._offsets[some, 0] = wide @ mean

    def prepare(self, sheet: Sheet) -> Sheet:
        """The rows themselves."""
        return sheet

    def scores(self, sheet: Sheet, group: range, low: F32) -> tuple[I64, F32]:
        """As the metric says, for all of the group."""
        chosen = slice(group.start, group.stop)
        scores = sheet.times(self.vectors, chosen)
        if self._offsets is not None:
            scores -= self._offsets[chosen]
        if self.metric == "cosine":
            scores *= np.reciprocal(sheet.norms)
        elif self.metric == "dot":
            scores += sheet.norms * 0  # NaN stays NaN
        else:
            scores *= 2
            scores -= np.square(sheet.norms)
            scores -= np.square(self._lengths[chosen, None]).astype(np.float32)
        return np.arange(len(group)), scores

    def delicate(self, sheet: Sheet, group: range) -> tuple[I64, I64]:
        """None: float32 is good for every row."""
        return _NO_PAIRS

    def margin(self, queries: I64, best: F64, kth: F64) -> F64:
        """1e-5 of the largest score; of what |q - x|^2 is made of for euclidean."""
        scale: F64 = np.ones(len(kth))
        if self.metric == "dot":
            scale = np.maximum(np.abs(best), np.abs(kth))
        elif self.metric == "euclidean":
            scale = 2 * np.square(self._lengths[queries] + np.sqrt(np.maximum(-kth, 0)))
        return TOLERANCE * scale

    def exact(self, queries: I64, rows: F64) -> F64:
        """The same in float64, for pairs of a query and a row."""
        alone = len(self._queries) == 1
        asked = self._queries[slice(None) if alone else queries].astype(np.float64)
        asked = np.broadcast_to(asked, rows.shape)
        if self.metric == "euclidean":
            apart = rows - asked
            return -dots(apart, apart)
        products = dots(asked, rows)
        if self.metric == "cosine":
            products /= np.sqrt(dots(rows, rows)) * self._lengths[queries]
        return products

    def shown(self, scores: F64) -> F64:
        """Exact scores as the metric is known: a distance for euclidean."""
        if self.metric != "euclidean":
            return scores
        distances: F64 = np.sqrt(-scores)
        return distances
