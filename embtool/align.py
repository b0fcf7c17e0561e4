"""Two tables side by side: row by row where they share ids, by a rotation where they do not.

Rows of the same ids are compared as they are. Tables of different vocabularies or widths share
some tokens only, and each has axes of its own: the rotation that takes the one's rows nearest to
the other's is found on the shared tokens, and tried on some that it was not made from.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from embtool.quant import F32
from embtool.search.blocks import I64, Mask, dots, unit
from embtool.search.threads import Part, each_part
from embtool.space import F64

#: Rows of both tables from the first on: (first row, (n, d_model), (n, d_model)).
Pair = tuple[int, F32, F32]

#: A row whose new direction is farther from the old one than this cosine was made anew.
REPLACED = 0.5
# Relative to a value, the step from one float to the next of each kind, and the smallest step.
_FLOAT_STEPS = {
    "F16": (2.0**-10, 2.0**-24),
    "BF16": (2.0**-7, 2.0**-133),
    "F8_E4M3": (2.0**-3, 2.0**-9),
    "F8_E5M2": (2.0**-2, 2.0**-16),
}


class Rounding(NamedTuple):
    """A change of precision: what it is called, and which rows (n, d_model) twice it explains."""

    name: str
    explains: Callable[[F32, F32], Mask]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Rows of the same ids in two tables, (rows,) each.

    equal: the same float32 bits. rounded: for each `Rounding` that was tried, the differing rows
    that it or a stricter one before it explains. cosine: of the row with itself, NaN where one is
    zero or not finite; change: |b - a| / |a|, NaN where a is zero or one is not finite.
    """

    equal: Mask
    rounded: tuple[Mask, ...]
    cosine: F64
    change: F64


def paired(one: Part, other: Part) -> Iterator[Pair]:
    """The rows of two tables together, however each is cut into blocks; as many as both have."""
    first, a = next(one, (0, None))
    _, b = next(other, (0, None))
    while a is not None and b is not None:
        n = min(len(a), len(b))
        yield first, a[:n], b[:n]
        first, a, b = first + n, a[n:], b[n:]
        if not len(a):
            first, a = next(one, (0, None))
        if not len(b):
            _, b = next(other, (0, None))


def roundings(one: str, other: str) -> list[Rounding]:
    """The changes of precision between two dtypes, the strictest first; none between equal ones.

    To BF16 and F16: rounded to the nearest, then cut off, then any value less than a step away.
    To FP8 the last alone; to Q8_0 a step of its block of 32 (a 127th of the largest).
    """
    found: list[Rounding] = []
    for name, way in ((other, 1), (one, -1)) if one != other else ():
        for what, test in _tests(name):
            explains = test if way == 1 else _swapped(test)
            found.append(Rounding(f"{what} {name}", explains))
    return sorted(found, key=lambda rounding: rounding.name.startswith("within"))


def _swapped(test: Callable[[F32, F32], Mask]) -> Callable[[F32, F32], Mask]:
    return lambda a, b: test(b, a)


def _tests(dtype: str) -> Iterator[tuple[str, Callable[[F32, F32], Mask]]]:
    if dtype == "BF16":
        yield "rounded to", lambda a, b: _same(_bf16(a), b)
        yield "cut to", lambda a, b: _same((a.view(np.uint32) & 0xFFFF0000).view(np.float32), b)
    if dtype == "F16":
        yield "rounded to", lambda a, b: _same(a.astype(np.float16).astype(np.float32), b)
    if dtype in _FLOAT_STEPS:
        step, least = _FLOAT_STEPS[dtype]
        yield (
            "within a step of",
            lambda a, b: (
                np.abs(a - b) <= np.maximum(np.maximum(np.abs(a), np.abs(b)) * step, least)
            ).all(axis=1),
        )
    if dtype == "Q8_0":
        yield "within a step of", _within_q8_0


def _bf16(values: F32) -> F32:
    """The nearest BF16 values, of two equally near the even one."""
    bits = values.view(np.uint32)
    rounded: F32 = ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).view(np.float32)
    return rounded


def _within_q8_0(a: F32, b: F32) -> Mask:
    if a.shape[1] % 32:
        return np.zeros(len(a), bool)
    shape = (len(a), -1, 32)
    largest = np.maximum(np.abs(a), np.abs(b)).reshape(shape).max(axis=2, keepdims=True)
    within: Mask = (np.abs(a - b).reshape(shape) <= largest / 127).all(axis=(1, 2))
    return within


def _same(a: F32, b: F32) -> Mask:
    same: Mask = (a.view(np.uint32) == b.view(np.uint32)).all(axis=1)
    return same


def compare(
    parts: Sequence[Iterable[Pair]], rows: int, tried: Sequence[Rounding] = ()
) -> Comparison:
    """Compare the first `rows` rows of two tables, in one pass over both.

    parts: for each thread the rows of a range, as `paired` gives them.
    """
    equal = np.zeros(rows, bool)
    rounded = tuple(np.zeros(rows, bool) for _ in tried)
    cosine, change = np.full(rows, np.nan), np.full(rows, np.nan)

    def work(part: Iterator[Pair]) -> None:
        with np.errstate(all="ignore"):
            for first, a, b in part:
                same = _same(a, b)
                equal[first : first + len(a)] = same
                differing = np.flatnonzero(~same)
                if not len(differing):
                    continue
                ids = first + differing
                a, b = a[differing], b[differing]  # noqa: PLW2901 -- the rest is alike
                cosine[ids], change[ids] = _apart(a, b)
                open_ = np.ones(len(ids), bool)
                for mask, rounding in zip(rounded, tried, strict=True):
                    if open_.any():
                        open_[open_] = ~rounding.explains(a[open_], b[open_])
                    mask[ids] = ~open_

    each_part(parts, work)
    return Comparison(equal, rounded, cosine, change)


def _apart(a: F32, b: F32) -> tuple[F64, F64]:
    """Cosine and relative length of the change of each pair of rows."""
    old, new = a.astype(np.float64), b.astype(np.float64)
    squares = dots(old, old)
    cosines = dots(old, new) / np.sqrt(squares * dots(new, new))
    new -= old
    changes = np.sqrt(dots(new, new) / squares)
    return cosines, np.where(np.isfinite(changes), changes, np.nan)


def explanation(found: Comparison, tried: Sequence[Rounding]) -> int | None:
    """Which rounding the tables differ by: the strictest that explains half of all rows.

    A change of precision touches nearly every row; where most are equal there was none, however
    small the others' change.
    """
    for place, mask in enumerate(found.rounded[: len(tried)]):
        if 2 * int(mask.sum()) >= len(mask) > 0 and mask.any():
            return place
    return None


class Rotation(NamedTuple):
    """Unit rows u of one table and v of another: (u - mean_u) @ matrix is near v - mean_v."""

    matrix: F64
    mean_u: F64
    mean_v: F64


def procrustes(pairs: Iterable[tuple[F32, F32]]) -> Rotation:
    """The rotation of one table's rows onto another's with the largest sum of products.

    pairs: rows (n, d) and (n, e) of the same tokens, in pieces; each is divided by its length
    (zero rows stay zero), and less the mean of all.

    With M = sum (u - mean)^T (v - mean) = X S Y^T the matrix is X Y^T (Schoenemann, "A generalized
    solution of the orthogonal Procrustes problem", Psychometrika 1966); for d != e it keeps the
    lengths of what the narrower side can hold. Raises ValueError without any pair.
    """
    moment: F64 | None = None
    sum_u: F64 = np.zeros(0)
    sum_v: F64 = np.zeros(0)
    count = 0
    for one, other in pairs:
        u, v = directions(one), directions(other)
        if moment is None:
            moment = np.zeros((u.shape[1], v.shape[1]))
            sum_u, sum_v = np.zeros(u.shape[1]), np.zeros(v.shape[1])
        moment += u.T @ v
        sum_u += u.sum(axis=0)
        sum_v += v.sum(axis=0)
        count += len(u)
    if moment is None or not count:
        raise ValueError("no rows to align")
    left, _, right = np.linalg.svd(moment - np.outer(sum_u, sum_v) / count, full_matrices=False)
    return Rotation(left @ right, sum_u / count, sum_v / count)


def directions(rows: F32) -> F64:
    """Rows divided by their lengths; zeros where a row is zero or not finite."""
    units = unit(rows)
    units[~np.isfinite(units).all(axis=1)] = 0
    return units


def agreement(rotation: Rotation, one: F32, other: F32) -> F64:
    """The cosines of rotated rows (n, d) with those of the other table (n, e), (n,)."""
    moved = (directions(one) - rotation.mean_u) @ rotation.matrix
    target = directions(other) - rotation.mean_v
    return dots(unit(moved), unit(target))


def overlap(one: Sequence[I64], other: Sequence[I64]) -> F64:
    """The part of each row's neighbours that it has in both tables, (n,): Jaccard's is stricter.

    one, other: for each row the ids of its neighbours, as many in both.
    """
    shares = [
        len(np.intersect1d(a, b)) / max(1, len(a), len(b)) for a, b in zip(one, other, strict=True)
    ]
    return np.array(shares, np.float64)
