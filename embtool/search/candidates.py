"""The rows that may be among the k best of some queries, in bounded memory however many tie."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from embtool.quant import F32
from embtool.search.blocks import I64, Mask
from embtool.space import F64

#: The exact scores of (query, row id) pairs, (n,) float64; NaN for a row that has none.
Exact = Callable[[I64, I64], F64]
#: How far below the k-th score of each query float32 may have put a row that belongs above it:
#: (queries, best scores, k-th scores) -> (n,) float64.
Margin = Callable[[I64, F64, F64], F64]

# An id fits in 40 bits, so that a query and an id make one integer.
_ID_BITS = 40
# So many rows may wait, for however few queries: to score them exactly now and then takes longer.
_ROOM = 512


def pair_keys(queries: I64, ids: I64) -> I64:
    """One integer for each pair of a query and a row id, ordered by query and then id."""
    return (queries << _ID_BITS) | ids


class _Entries(NamedTuple):
    queries: I64
    ids: I64
    scores: F64
    exact: Mask

    def pick(self, chosen: NDArray[np.int64] | Mask) -> "_Entries":
        return _Entries(
            self.queries[chosen], self.ids[chosen], self.scores[chosen], self.exact[chosen]
        )


def _concatenate(several: Sequence[_Entries]) -> _Entries:
    return _Entries(
        np.concatenate([entries.queries for entries in several]),
        np.concatenate([entries.ids for entries in several]),
        np.concatenate([entries.scores for entries in several]),
        np.concatenate([entries.exact for entries in several]),
    )


_NOTHING = _Entries(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0, bool))


class Candidates:
    """What one thread keeps for the queries first, first + 1, ... of a search; larger is nearer.

    A row stays while float32 cannot tell that k others are better: while its score is not below
    the k-th by more than `margin`. When too many rows are that near, as many equal rows are,
    they are settled: scored exactly, of which the k best stay, those with equal scores by id.

    low: (queries,) float32, the scores that rows must reach by now.
    """

    def __init__(self, queries: range, k: int, left_out: I64, exact: Exact, margin: Margin) -> None:
        self._first = queries.start
        self._count = len(queries)
        self._k = k
        low, high = np.searchsorted(left_out, np.array([queries.start, queries.stop]) << _ID_BITS)
        self._left_out = left_out[low:high]  # sorted `pair_keys`
        per_query = np.bincount((self._left_out >> _ID_BITS) - self._first, minlength=1)
        self._spare = int(per_query.max())
        self._exact = exact
        self._margin = margin
        self._room = max(_ROOM, self._count * (4 * k + 4))
        self._entries = [_NOTHING]
        self._fresh = 0
        self.low = np.full(self._count, -np.inf, np.float32)

    def offer(self, some: I64, ids: I64, scores: F32) -> None:
        """Take from scores (m, n) what may be among the best; NaN never is.

        some: (m,) the queries, counted from the first. ids: (n,) the rows.
        """
        # Most blocks have nothing for most queries, and their largest score tells which.
        (hopeful,) = (np.fmax.reduce(scores, axis=1) >= self.low[some]).nonzero()
        if not len(hopeful):
            return
        if len(hopeful) < len(some):
            some, scores = some[hopeful], scores[hopeful]
        hits = np.flatnonzero(scores >= self.low[some, None])
        if len(hits) > self._room:
            self._tighten(some, scores)
            hits = np.flatnonzero(scores >= self.low[some, None])
        if len(hits):
            rows, columns = np.divmod(hits, len(ids))
            queries, found = some[rows] + self._first, ids[columns]
            rough = scores[rows, columns].astype(np.float64)
            entries = _Entries(queries, found, rough, np.zeros(len(hits), bool))
            self._add(entries.pick(self._wanted(queries, found)))

    def offer_pairs(self, queries: I64, ids: I64) -> None:
        """Take (query, id) pairs, (n,) each, after scoring them exactly; a pair may repeat."""
        wanted = self._wanted(queries, ids)
        keys = np.unique(pair_keys(queries[wanted], ids[wanted]))
        queries, ids = np.divmod(keys, 1 << _ID_BITS)
        scores = self._exact(queries, ids)
        self._add(_Entries(queries, ids, scores, np.ones(len(ids), bool)).pick(~np.isnan(scores)))

    def _wanted(self, queries: I64, ids: I64) -> Mask:
        """Which pairs are not left out."""
        if not len(self._left_out):
            return np.ones(len(ids), bool)
        keys = pair_keys(queries, ids)
        at = np.minimum(np.searchsorted(self._left_out, keys), len(self._left_out) - 1)
        wanted: Mask = self._left_out[at] != keys
        return wanted

    def _add(self, entries: _Entries) -> None:
        self._entries.append(entries)
        self._fresh += len(entries.ids)
        if self._fresh > self._room:
            self._compact()

    def _tighten(self, queries: I64, scores: F32) -> None:
        """Raise the thresholds to what this block alone shows, before a flood is taken from it."""
        kth = self._k + self._spare  # rows that are left out may be among the best
        if kth > scores.shape[1]:
            return
        known = np.where(np.isnan(scores), np.float32(-np.inf), scores)
        known.partition(known.shape[1] - kth, axis=1)
        upper = known[:, known.shape[1] - kth :].astype(np.float64)
        self._raise(queries, upper.max(axis=1), upper[:, 0])

    def _raise(self, queries: I64, best: F64, kth: F64) -> None:
        """Raise the thresholds of queries, counted from the first, by their k-th scores."""
        known = np.isfinite(kth)
        if known.any():
            queries, kth = queries[known], kth[known]
            low = kth - self._margin(queries + self._first, best[known], kth)
            self.low[queries] = np.maximum(self.low[queries], low)

    def _compact(self) -> None:
        """Drop what has fallen below the thresholds; settle the rest if it is still too much."""
        entries = _concatenate(self._entries)
        entries = entries.pick(np.lexsort((-entries.scores, entries.queries)))
        starts, sizes = self._groups(entries)
        full = np.flatnonzero(sizes >= self._k)
        best, kth = starts[full], starts[full] + self._k - 1
        self._raise(full, entries.scores[best], entries.scores[kth])
        low = self.low[entries.queries - self._first]
        entries = entries.pick(entries.scores >= low)
        if len(entries.ids) > self._room // 2:
            _, sizes = self._groups(entries)
            crowded = (sizes > 2 * self._k)[entries.queries - self._first]
            settled = self._settle(entries.pick(crowded))
            entries = _concatenate([entries.pick(~crowded), settled])
        self._entries = [entries]
        self._fresh = 0

    def _settle(self, entries: _Entries) -> _Entries:
        """The k best of each query by exact score and then id, in that order."""
        scores = entries.scores.copy()
        rough = ~entries.exact
        scores[rough] = self._exact(entries.queries[rough], entries.ids[rough])
        entries = _Entries(entries.queries, entries.ids, scores, np.ones(len(scores), bool))
        entries = entries.pick(np.isfinite(scores))
        entries = entries.pick(np.lexsort((entries.ids, -entries.scores, entries.queries)))
        starts, sizes = self._groups(entries)
        place = np.arange(len(entries.ids)) - np.repeat(starts, sizes)
        return entries.pick(place < self._k)

    def _groups(self, entries: _Entries) -> tuple[I64, I64]:
        """Where each query's entries start, and how many they are; entries sorted by query."""
        bounds = np.searchsorted(entries.queries - self._first, np.arange(self._count + 1))
        return bounds[:-1], np.diff(bounds)

    def best(self, others: Sequence["Candidates"]) -> list[tuple[I64, F64]]:
        """The k best (ids, exact scores) of each query, of this and the other threads together."""
        for other in others:
            self._entries.extend(other._entries)
        self._compact()
        entries = self._settle(self._entries[0])
        starts, sizes = self._groups(entries)
        spans = zip(starts.tolist(), (starts + sizes).tolist(), strict=True)
        return [(entries.ids[a:b], entries.scores[a:b]) for a, b in spans]
