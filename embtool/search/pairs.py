"""Random pairs of rows: how near rows are that have nothing to do with each other."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from embtool.search.blocks import I64, RowsOf, dots, unit
from embtool.space import F64

# Elements of float64 read together: 4 MiB.
_ELEMENTS = 1 << 19


def random_pairs(candidates: I64, count: int, seed: int) -> tuple[I64, I64]:
    """`count` pairs of two different candidates, each pair as likely as any other.

    candidates: (n,) ids, each once. Two arrays (count,); empty where there are fewer than two.
    """
    if len(candidates) < 2:
        return candidates[:0], candidates[:0]
    generator = np.random.default_rng(seed)
    first = generator.integers(len(candidates), size=count)
    second = generator.integers(len(candidates) - 1, size=count)
    second += second >= first
    return candidates[first], candidates[second]


def pair_cosines(
    rows_of: RowsOf, first: I64, second: I64, moved: Callable[[F64], F64] | None = None
) -> F64:
    """The cosine of each pair of rows, (n,) float64; NaN where one has no direction.

    moved: what a space makes of rows (n, d_model). Rows are read a few MiB at a time.
    """
    cosines = np.full(len(first), np.nan)
    done, step = 0, 1
    while done < len(first):
        some = slice(done, done + step)
        rows = rows_of(np.concatenate([first[some], second[some]])).astype(np.float64)
        with np.errstate(all="ignore"):
            directions = unit(rows if moved is None else moved(rows))
            half = len(directions) // 2
            cosines[some] = dots(directions[:half], directions[half:])
        done += step
        step = max(1, _ELEMENTS // (2 * rows.shape[1]))
    clipped: F64 = np.clip(cosines, -1, 1)
    return clipped


def random_rows(ids: I64, d_model: int, seed: int) -> NDArray[np.float32]:
    """Rows of a table that was never trained, (len(ids), d_model) float32.

    Each component is normal with the deviation 0.02, from which many models start. A row depends
    on its id and the seed alone, so the rest of the table need not be made.
    """
    rows = np.empty((len(ids), d_model), np.float32)
    for place, row in enumerate(ids.tolist()):
        rows[place] = np.random.default_rng((seed, row)).standard_normal(d_model, np.float32)
    rows *= np.float32(0.02)
    return rows


def rank_correlation(these: NDArray[np.number], those: NDArray[np.number]) -> float | None:
    """Spearman's rank correlation of pairs of numbers, (n,) twice; equal numbers share a rank.

    None for fewer than two pairs, or where one side is all the same.
    """
    if len(these) < 2:
        return None
    ranks = [_ranks(values) for values in (these, those)]
    left, right = (each - each.mean() for each in ranks)
    scale = np.sqrt((left @ left) * (right @ right))
    return float(left @ right / scale) if scale else None


def _ranks(values: NDArray[np.number]) -> F64:
    """The mean of the places that equal numbers take in order."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts).astype(np.float64)
    ranks: F64 = (ends - (counts - 1) / 2)[place]
    return ranks
