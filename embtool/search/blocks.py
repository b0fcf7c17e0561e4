"""What a pass over a table takes: its parts, its norms, and which of its rows may rank."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from embtool.products import Products
from embtool.quant import F32
from embtool.search.threads import Part, each_part
from embtool.space import F64, Space

I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]
#: The products of vectors (v, d_model) with all rows, where they are to be had without widening
#: the rows; else None. Not for rows with an infinity or NaN.
Multiply = Callable[[F32], Products | None]
#: Stored rows by their ids: (n,) int64 -> (n, d_model) float32. Called from several threads.
RowsOf = Callable[[I64], F32]

# 1.75 MiB of float32, which stay in cache between decoding and multiplying. It is also just below
# the 460,800 elements from which OpenBLAS spreads one matrix-vector product over threads of its
# own; two callers then wait for each other, and the pass takes four times as long.
_BLOCK_ELEMENTS = 458_752
# Rows shorter than this part of what they were before a Space was applied are rounding noise.
_NOISE = 1e-5


@dataclass(slots=True, eq=False, repr=False)  # each would cost every start its time
class Pass:
    """One pass over a table, and what decides which rows rank.

    parts: one iterator for each thread, over consecutive rows; used up by one search.
    rows_of: the stored rows of some ids, the same values as in the parts.
    norms: (rows,) float32 as `norms` gives them for the same space. A search that finds None
        computes them on its way and leaves them here, to be kept for the next.
    allowed: (rows,) bool, the rows that may be answers; None for all.
    space: where rows are compared; None for the table's own. Queries stand in it already.
    multiply: the faster way to the products with a few vectors, once the norms tell which rows
        are finite.
    """

    parts: Sequence[Part]
    rows_of: RowsOf
    norms: F32 | None = None
    allowed: Mask | None = None
    space: Space | None = None
    multiply: Multiply | None = None


class Rows(NamedTuple):
    """Rows of a part: ids (n,), values (n, d_model), norms (n,), NaN where a row may not rank."""

    ids: I64
    values: F32
    norms: F32


def block_rows(d_model: int) -> int:
    """How many rows a part's blocks should have: 64 at a width of 7,168, 716 at 640."""
    return max(1, _BLOCK_ELEMENTS // max(1, d_model))


def norms(parts: Sequence[Part], space: Space | None = None) -> F32:
    """`row_norms` of a whole table, (rows,) float32."""
    fresh: list[tuple[int, F32]] = []

    def work(part: Part) -> None:
        fresh.extend((first, row_norms(block, space)) for first, block in part)

    each_part(parts, work)
    return joined(fresh)


def row_norms(block: F32, space: Space | None = None) -> F32:
    """The Euclidean length of each row of (n, d_model) in `space`, (n,) float32.

    A row of zeros has the norm 0 in every space, and so has a row that a space reduces to
    rounding noise; one that holds an infinity or NaN has a norm that is not finite.
    """
    with np.errstate(all="ignore"):
        stored = _lengths(block)
        if space is None:
            return stored
        moved = block - (0 if space.mean is None else space.mean.astype(np.float32))
        if len(space.components):
            components = space.components.astype(np.float32)
            moved -= (moved @ components.T) @ components
        lengths = _lengths(moved)
        lengths[lengths <= _NOISE * stored] = 0
        lengths[stored == 0] = 0
    return lengths


def _lengths(block: F32) -> F32:
    # Row by row a dot product of BLAS: a third of the time of einsum over the whole block.
    squares = np.matmul(block[:, None, :], block[:, :, None]).reshape(len(block))
    lengths: F32 = np.sqrt(squares)
    unsafe = ~((squares > 1e-30) & (squares < 1e30))  # where squares in float32 lose digits
    if unsafe.any():
        rows = block[unsafe].astype(np.float64)
        lengths[unsafe] = np.sqrt(dots(rows, rows))
    return lengths


def rankable(norms: F32, allowed: Mask | None) -> F32:
    """The norms with NaN for rows that may not rank: zero, not finite, or not allowed."""
    ranks = (norms >= np.finfo(np.float32).tiny) & (norms < np.inf)
    if allowed is not None:
        ranks &= allowed
    return np.where(ranks, norms, np.float32(np.nan))


def read(part: Part, work: Pass, known: F32 | None, fresh: list[tuple[int, F32]]) -> Iterator[Rows]:
    """The rows of a part, a block at a time, which the next step overwrites.

    known: all norms as `rankable` gives them; without, norms are computed and appended to
    `fresh` with their first row, for `joined`.
    """
    for first, block in part:
        stop = first + len(block)
        if known is not None:
            usable = known[first:stop]
        else:
            computed = row_norms(block, work.space)
            fresh.append((first, computed))
            allowed = None if work.allowed is None else work.allowed[first:stop]
            usable = rankable(computed, allowed)
        yield Rows(np.arange(first, stop), block, usable)


def joined(fresh: Iterable[tuple[int, F32]]) -> F32:
    """The norms of all rows, (rows,) float32, from those of the blocks."""
    pieces = [norms for _, norms in sorted(fresh, key=lambda piece: piece[0])]
    return np.concatenate([*pieces, np.empty(0, np.float32)])


def finite(vectors: NDArray[np.floating]) -> Mask:
    """Which vectors (n, d_model) can be asked for: neither zero nor with an infinity or NaN."""
    usable: Mask = np.isfinite(vectors).all(axis=1) & vectors.any(axis=1)
    return usable


def dots(these: F64, those: F64) -> F64:
    """The dot product of each pair of rows, (n, d_model) twice -> (n,).

    The sum runs along a row, so that equal pairs have equal products to the last bit; a matrix
    product of BLAS does not promise that.
    """
    products: F64 = np.einsum("ij,ij->i", these, those)
    return products


def unit(vectors: NDArray[np.floating]) -> F64:
    """Each vector (n, d_model) over its length, float64; NaN for one without a direction.

    Equal vectors stay equal to the last bit.
    """
    wide = np.asarray(vectors, np.float64)
    with np.errstate(all="ignore"):
        lengths = np.sqrt(dots(wide, wide))
        lengths[lengths == 0] = np.nan
        directed: F64 = wide / lengths[:, None]
    return directed
