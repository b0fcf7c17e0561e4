"""Spaces in which rows are compared: the table's own, centred, or without its main components."""

from collections.abc import Sequence
from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from embtool.quant import F32
from embtool.search.threads import Part, each_part

F64 = NDArray[np.float64]

# Rows whose product is made at a time: enough for BLAS to run at its full rate, and few enough
# for float32 sums, whose relative error stays near 1e-6.
_GROUP = 1024
# Columns of a product at a time: a panel of 512 x 7,168 float32 takes 14 MiB.
_PANEL = 512
# Wider matrices are not decomposed in full: how many vectors more than asked for are followed,
# how often, and the error, relative to the largest eigenvalue, that ends it.
_NARROW = 1024
_SPARE = 16
_TURNS = 500
_CONVERGED = 1e-10


class Space(NamedTuple):
    """Rows less a mean, and without what they have along some directions.

    row' = (row - mean) - sum over components c of ((row - mean) . c) c

    With the mean row and the leading components of all rows this is all-but-the-top (Mu and
    Viswanath, "All-but-the-Top: Simple and Effective Postprocessing for Word Representations",
    ICLR 2018); with the mean alone it is centring.

    mean: (d_model,) float64, or None for zero. components: (n, d_model) float64, orthonormal.
    """

    mean: F64 | None
    components: F64

    def apply(self, rows: NDArray[np.floating]) -> F64:
        """Rows (n, d_model) in this space, float64. Equal rows stay equal to the last bit."""
        moved = np.array(rows, np.float64)
        if self.mean is not None:
            moved -= self.mean
        # One direction after the other, by sums that run along a row: a matrix product would
        # round equal rows differently, according to where in the matrix they stand.
        for component in self.components:
            along = np.einsum("ij,j->i", moved, component)
            moved -= along[:, None] * component
        return moved


def mean_row(parts: Sequence[Part]) -> F64:
    """The mean of the finite rows, (d_model,) float64; zeros where no row is finite.

    A block is summed in float32, whose relative error is near 1e-6 of the rows' size, and the
    blocks in float64. Raises ValueError when there is no block at all.
    """
    sums = each_part(parts, _sum)
    totals = [total for total, _ in sums if total is not None]
    if not totals:
        raise ValueError("a table without rows has no mean")
    mean: F64 = np.sum(totals, axis=0) / max(1, sum(count for _, count in sums))
    return mean


def _sum(part: Part) -> tuple[F64 | None, int]:
    total: F64 | None = None
    count = 0
    for _, block in part:
        rows, sums = finite_rows(block)
        total = sums if total is None else total + sums
        count += len(rows)
    return total, count


def finite_rows(block: F32) -> tuple[F32, F64]:
    """The rows without infinities and NaN (the block itself if all are), and their sum (d,)."""
    with np.errstate(all="ignore"):
        sums = np.ones(len(block), np.float32) @ block
    if np.isfinite(sums).all():
        return block, sums.astype(np.float64)
    rows = block[np.isfinite(block).all(axis=1)]
    return rows, rows.sum(axis=0, dtype=np.float64)


def leading_components(parts: Sequence[Part], mean: F64, count: int) -> F64:
    """The `count` main directions of the rows about `mean`: (count, d_model) float64, orthonormal.

    They are the eigenvectors of the largest eigenvalues of `covariance`, largest first, each with
    the sign that makes its largest component positive. Raises ValueError for more than d_model.
    """
    if not 0 <= count <= len(mean):
        raise ValueError(f"a table {len(mean)} wide has no {count} components")
    if not count:
        return np.empty((0, len(mean)))
    chosen = _eigenvectors(covariance(parts, mean), count)
    largest = np.abs(chosen).argmax(axis=1)
    signs = np.where(chosen[np.arange(count), largest] < 0, -1.0, 1.0)
    return np.ascontiguousarray(chosen * signs[:, None])


def _eigenvectors(matrix: F64, count: int) -> F64:
    """Eigenvectors (count, d) of the largest eigenvalues of a symmetric matrix, largest first.

    A full decomposition of a matrix 4,096 wide takes half a minute, so wide ones are multiplied
    with a growing likeness of the vectors instead (subspace iteration), until these are turned
    into multiples of themselves to ten digits.
    """
    width = count + _SPARE
    if len(matrix) <= max(_NARROW, 4 * width):
        vectors: F64 = np.linalg.eigh(matrix)[1][:, ::-1]
        return vectors[:, :count].T
    basis = np.random.default_rng(0).standard_normal((len(matrix), width))
    for _ in range(_TURNS):
        basis = np.linalg.qr(basis)[0]
        moved = matrix @ basis
        values, turn = np.linalg.eigh(basis.T @ moved)
        values, turn = values[::-1], turn[:, ::-1]
        vectors, basis = basis @ turn, moved @ turn
        apart = np.linalg.norm(basis - vectors * values, axis=0)[:count]
        if apart.max() <= _CONVERGED * values[0]:
            break
    return vectors[:, :count].T


def covariance(parts: Sequence[Part], mean: F64) -> F64:
    """The mean of (row - mean)(row - mean)^T over the finite rows, (d_model, d_model) float64.

    Up to 1,024 rows are multiplied in float32, which leaves a relative error near 1e-6 of the
    diagonal; these products are added up in float64. Beside the result, each part takes 1,024
    rows and a panel of 512 columns.
    """
    total = np.zeros((len(mean), len(mean)))
    lock = Lock()
    shift = mean.astype(np.float32)

    def add(rows: F32) -> None:
        for left in range(0, len(mean), _PANEL):
            right = left + _PANEL
            product = rows[:, left:right].T @ rows[:, left:]
            with lock:
                total[left:right, left:] += product

    def work(part: Part) -> int:
        group = np.empty((_GROUP, len(mean)), np.float32)
        filled = count = 0
        for _, block in part:
            rows, _ = finite_rows(block)
            count += len(rows)
            for first in range(0, len(rows), _GROUP):
                some = rows[first : first + _GROUP]
                if filled + len(some) > _GROUP:
                    add(group[:filled])
                    filled = 0
                np.subtract(some, shift, out=group[filled : filled + len(some)])
                filled += len(some)
        add(group[:filled])
        return count

    count = sum(each_part(parts, work))
    total /= max(1, count)
    for left in range(0, len(mean), _PANEL):
        right = left + _PANEL
        square = np.triu(total[left:right, left:right])
        total[left:right, left:right] = square + np.triu(square, 1).T
        total[right:, left:right] = total[left:right, right:].T
    return total
