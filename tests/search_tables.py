"""Tables for the search tests, and what a float64 scan of all their rows answers."""

from itertools import pairwise

import numpy as np


def parts_of(table, count=1, step=64):
    """`count` parts of blocks of `step` rows in a buffer that every step overwrites."""

    def blocks(start, stop):
        buffer = np.empty((step, table.shape[1]), np.float32)
        for first in range(start, stop, step):
            last = min(first + step, stop)
            buffer[:] = np.nan
            buffer[: last - first] = table[first:last]
            yield first, buffer[: last - first]

    bounds = [len(table) * part // count for part in range(count + 1)]
    return [blocks(a, b) for a, b in pairwise(bounds)]


def awkward_table(rows=700, width=24, seed=0):
    """Random rows with zeros, NaN, infinity, huge and tiny rows, and 200 equal rows among them."""
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((rows, width)).astype(np.float32)
    equal = np.sort(rng.choice(np.arange(20, rows), 200, replace=False))
    table[equal] = table[equal[0]]
    table[3] = 0
    table[4, 5] = np.nan
    table[6, 0] = np.inf
    table[7, 1] = -np.inf
    table[8] *= np.float32(1e-25)
    table[9] *= np.float32(1e22)
    return table, equal


def scores_of(table, query, metric="cosine"):
    """(rows,) float64, larger is nearer; NaN for rows that never rank."""
    wide, query = table.astype(np.float64), query.astype(np.float64)
    with np.errstate(all="ignore"):
        if metric == "euclidean":
            scores = -np.sqrt(np.square(wide - query).sum(axis=1))
        else:
            scores = (wide * query).sum(axis=1)
        if metric == "cosine":
            scores /= np.sqrt(np.square(wide).sum(axis=1) * np.square(query).sum())
    scores[~np.isfinite(table).all(axis=1) | ~table.any(axis=1)] = np.nan
    return scores


def best_of(scores, k, exclude=(), allowed=None):
    """The ids of the k largest scores, equal ones by id."""
    scores = scores.copy()
    scores[list(exclude)] = np.nan
    if allowed is not None:
        scores[~allowed] = np.nan
    ids = np.flatnonzero(~np.isnan(scores))
    return ids[np.lexsort((ids, -scores[ids]))][:k].tolist()
