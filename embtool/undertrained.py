"""Rows that training hardly touched, from tables alone.

After Land and Bartolo, "Fishing for Magikarp: Automatically Detecting Under-trained Tokens in
Large Language Models" (EMNLP 2024, arXiv:2405.05417): reference rows that cannot have been trained
show where training leaves a row that it never sees, and a row near them was hardly seen either.

norm    an input row's length, where it is stored apart from the output table: decay shrinks, and
        use lengthens
cosine  an output row's distance in direction from the mean of the references, both without the
        table's mean row and its first component: all that such rows ever got was the same push
        away from what did occur
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from embtool.search.blocks import I64, RowsOf, dots
from embtool.search.threads import Part, each_part
from embtool.space import F64, Space

# Reference values farther above their median than this many standard deviations (estimated from
# the median deviation) are outliers: tokens that were put to use after all.
_OUTLIER = 10
# Median absolute deviation of a normal distribution -> its standard deviation.
_NORMAL = 1.4826
# References that agree on a direction are, in the median, no farther from it than this.
_AGREED = 0.03
# Norms that differ by less than this part tell nothing.
_FLAT = 0.05
# Without references a gap counts that is this many times as wide as what lies below it.
_GAP = 1.5
# Elements of float64 rows that are compared with the mean at a time: 16 MiB.
_STEP = 1 << 21

# <unused7>, [unused7], >>UNUSED_7<<, <|reserved_special_token_7|>, <｜place▁holder▁no▁7｜>,
# <|dummy_7|>, <madeupword7>; and [control_7] and [PAD7], which are nothing without a number
_PLACEHOLDER = re.compile(
    r"[<\[>]+[|｜]?[\w▁ -]*(?:unused|reserved|place[_▁ -]?holder|dummy|madeupword)[\w▁ -]*"
    r"[|｜]?[>\]<]+"
    r"|\[(?:control_|PAD_?)\d+\]",
    re.IGNORECASE,
)
# Bytes that stand nowhere in UTF-8 (RFC 3629).
_IMPOSSIBLE = frozenset([0xC0, 0xC1, *range(0xF5, 0x100)])


def placeholders(raws: Iterable[str | None]) -> list[int]:
    """The ids of spellings that say they stand for nothing: <unused7>, [unused7], reserved ones.

    raws: the vocabulary's spelling of ids 0, 1, ...; None for an id without a token.
    """
    return [i for i, raw in enumerate(raws) if raw and _PLACEHOLDER.fullmatch(raw)]


def impossible_bytes(texts: Iterable[bytes | None]) -> list[int]:
    """The ids of single bytes that no UTF-8 text contains: C0, C1, F5 to FF."""
    return [i for i, text in enumerate(texts) if text and len(text) == 1 and text[0] in _IMPOSSIBLE]


def lengths(parts: Sequence[Part], rows: int) -> F64:
    """The norm of every row, (rows,) float64; NaN for a row that is not finite."""
    found = np.full(rows, np.nan)

    def work(part: Part) -> None:
        with np.errstate(all="ignore"):
            for first, block in part:
                wide = block.astype(np.float64)
                norms = np.sqrt(dots(wide, wide))
                found[first : first + len(block)] = np.where(np.isfinite(norms), norms, np.nan)

    each_part(parts, work)
    return found


class Direction(NamedTuple):
    """Where reference rows point in a space.

    total: (d_model,) the sum of the rows, as they are in the space. apart: (n,) for each of them
    the cosine distance from the mean of the others; NaN for a single one.
    """

    space: Space
    total: F64
    apart: F64


def direction(space: Space, ids: I64, rows_of: RowsOf) -> Direction:
    """The direction of reference rows, none of which may be zero or not finite."""
    step = max(1, _STEP // space.components.shape[1])
    pieces = [ids[start : start + step] for start in range(0, len(ids), step)]
    total = np.sum([space.apply(rows_of(piece)).sum(axis=0) for piece in pieces], axis=0)
    apart = [_apart_from_others(space.apply(rows_of(piece)), total) for piece in pieces]
    return Direction(space, total, np.concatenate(apart))


def _apart_from_others(rows: F64, total: F64) -> F64:
    others = total - rows
    with np.errstate(all="ignore"):
        cosines: F64 = dots(rows, others) / np.sqrt(dots(rows, rows) * dots(others, others))
    return 1 - cosines


def agreed_direction(whole: Space, ids: I64, rows_of: RowsOf) -> tuple[Direction, bool]:
    """The references' direction without the mean and the components, or without the mean alone.

    whole: the mean, and the first component. Where many rows are untrained, the first component
    can be their own direction. Where they lie more than 0.03 apart without it, and less than half
    as far with it, it is left in. Returns the direction, and whether the component was left in.
    """
    first = direction(whole, ids, rows_of)
    with_it = direction(Space(whole.mean, whole.components[:0]), ids, rows_of)
    apart, with_apart = np.median(first.apart), np.median(with_it.apart)
    left_in = bool(apart > max(_AGREED, 2 * with_apart))
    return (with_it, True) if left_in else (first, False)


def distances(parts: Sequence[Part], rows: int, found: Direction) -> F64:
    """The cosine distance of every row from the references' mean, (rows,) float64.

    NaN for a row that is zero or not finite.
    """
    values = np.full(rows, np.nan)
    length = np.sqrt(found.total @ found.total)

    def work(part: Part) -> None:
        with np.errstate(all="ignore"):
            for first, block in part:
                moved = found.space.apply(block)
                along = np.einsum("ij,j->i", moved, found.total)
                apart = 1 - along / (np.sqrt(dots(moved, moved)) * length)
                apart[~block.any(axis=1) | ~np.isfinite(apart)] = np.nan
                values[first : first + len(block)] = apart

    each_part(parts, work)
    return values


class Threshold(NamedTuple):
    """A value up to which rows count as hardly trained; where there is none, `reason` says why."""

    value: float | None
    reason: str | None = None


def threshold(references: F64, others: F64) -> Threshold:
    """What to suggest, from the references' own distribution and the gap that follows it.

    references, others: the indicator of the reference rows and of all others, NaN where unknown.
    The upper end of the references is the largest value that is no outlier, within 10 standard
    deviations (1.4826 x the median absolute deviation) of their median. The threshold stands in
    the widest gap, by ratio, between any two values from there to the others' median.
    """
    known, rest = np.sort(references[~np.isnan(references)]), np.sort(others[~np.isnan(others)])
    if not len(known) or not len(rest):
        return Threshold(None, "there are no reference rows to compare with")
    middle = float(np.median(known))
    spread = _NORMAL * float(np.median(np.abs(known - middle)))
    upper = float(known[known <= middle + _OUTLIER * spread][-1])
    bulk = float(np.median(rest))
    if not upper < bulk:
        return Threshold(None, f"half of the other rows lie as low as the references ({upper:.4g})")
    return Threshold(_widest_gap(np.concatenate([known, rest]), upper, bulk)[0])


def threshold_alone(values: F64) -> Threshold:
    """The same without references: a gap between any values below their median.

    Only one counts whose upper end is 1.5 times its lower.
    """
    known = values[~np.isnan(values)]
    if len(known):
        value, ratio = _widest_gap(known, 0, float(np.median(known)))
        if ratio >= _GAP:
            return Threshold(value)
    return Threshold(None, "no gap parts the shortest rows from the others")


def _widest_gap(values: F64, low: float, high: float) -> tuple[float, float]:
    """The geometric middle of the widest gap by ratio, and the ratio.

    What is below a hundredth of `high` counts as that: it is short enough, and zeros have a ratio.
    """
    inside = values[(values >= low) & (values <= high)]
    ends = np.maximum(np.sort(np.append(inside, high)), high / 100)
    ratios = ends[1:] / ends[:-1]
    at = int(ratios.argmax())
    return float(np.sqrt(ends[at] * ends[at + 1])), float(ratios[at])


def flat(values: F64) -> str | None:
    """Why norms that are all alike tell nothing; None where they differ."""
    known = values[~np.isnan(values)]
    if not len(known) or known.max() == 0:
        return "every row is zero"
    spread = float(1 - known.min() / known.max())
    return f"all norms lie within {spread:.1%} of each other" if spread < _FLAT else None
