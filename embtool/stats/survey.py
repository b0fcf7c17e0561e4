"""One pass over a table that gathers everything its statistics are made of."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from embtool.quant import F32
from embtool.search.blocks import I64, dots
from embtool.search.threads import Part, each_part
from embtool.space import F64

# Rows that are widened to float64 and multiplied together: enough for BLAS, and 28 MiB at a width
# of 7,168.
_GROUP = 512
# Columns of a product at a time: 28 MiB of float64 at the same width.
_PANEL = 512
# Random directions that every row is projected on, to find rows that are nearly equal.
_PROJECTIONS = 16
_SEED = 0


@dataclass(slots=True)
class Survey:
    """What one pass tells of a table of (rows, d_model), in float64.

    norms: (rows,) Euclidean lengths; NaN for a row that holds NaN, else infinity for one that
        holds an infinity. Such rows count in none of the sums.
    marks: (rows,) a number of each row that is the same for equal rows.
    projections: (rows, 16 or d_model) float32, the cosines of each row with fixed random directions
        that are orthogonal to one another; 0 for a zero row.
    total: (d_model,) the sum of the rows. moments: (d_model, d_model) the sum of row^T row.
    directions: (labels, d_model) for each label the sum of its rows' unit vectors.
    """

    norms: F64
    marks: F64
    projections: F32
    total: F64
    moments: F64
    directions: F64
    labels: I64

    @property
    def finite(self) -> NDArray[np.bool_]:
        """(rows,) which rows hold neither NaN nor infinity."""
        return np.isfinite(self.norms)

    @property
    def directed(self) -> NDArray[np.bool_]:
        """(rows,) which rows have a direction: finite and not zero."""
        return self.finite & (self.norms > 0)

    @property
    def mean(self) -> F64 | None:
        """The mean of the finite rows, (d_model,); None without any."""
        count = int(self.finite.sum())
        return self.total / count if count else None

    @property
    def second_moment(self) -> F64 | None:
        """The mean of row^T row over the finite rows, (d_model, d_model); None without any."""
        count = int(self.finite.sum())
        return self.moments / count if count else None


def survey(
    parts: Sequence[Part], shape: tuple[int, int], labels: I64 | None = None, count: int = 1
) -> Survey:
    """Gather a table's `Survey` in one pass over its parts.

    shape: (rows, d_model). labels: (rows,) a number below `count` for each row, by which unit
    vectors are summed separately; None puts all rows under label 0.

    Beside the result, which holds 88 bytes a row and 8 x d_model^2, a part takes 512 rows and a
    panel of 512 columns of float64.
    """
    rows, d_model = shape
    random = _directions(d_model)
    found = Survey(
        norms=np.full(rows, np.nan),
        marks=np.full(rows, np.nan),
        projections=np.zeros((rows, len(random) - 1), np.float32),
        total=np.zeros(d_model),
        moments=np.zeros((d_model, d_model)),
        directions=np.zeros((count, d_model)),
        labels=np.zeros(rows, np.int64) if labels is None else labels,
    )
    lock = Lock()

    def work(part: Part) -> None:
        # Rows may hold infinities and NaN: values, not warnings.
        with np.errstate(all="ignore"):
            for first, group in _groups(part, d_model):
                _add(found, lock, first, group, random)

    each_part(parts, work)
    for left in range(0, d_model, _PANEL):
        right = left + _PANEL
        found.moments[right:, left:right] = found.moments[left:right, right:].T
    return found


def _directions(d_model: int) -> F64:
    """The directions of the projections, and of the marks as the last: (n, d_model), seeded."""
    random = np.random.default_rng(_SEED).standard_normal((d_model, min(_PROJECTIONS, d_model) + 1))
    orthogonal, _ = np.linalg.qr(random[:, :-1])
    return np.concatenate([orthogonal.T, random[:, -1:].T])


def _groups(part: Part, d_model: int) -> Iterator[tuple[int, F64]]:
    """The rows of a part in float64, (first row, (512 or fewer, d_model)); a reused buffer."""
    buffer = np.empty((_GROUP, d_model))
    first = filled = 0
    for start, block in part:
        for offset in range(0, len(block), _GROUP):
            some = block[offset : offset + _GROUP]
            if filled + len(some) > _GROUP:
                yield first, buffer[:filled]
                filled = 0
            if not filled:
                first = start + offset
            buffer[filled : filled + len(some)] = some
            filled += len(some)
    if filled:
        yield first, buffer[:filled]


def _add(found: Survey, lock: Lock, first: int, group: F64, random: F64) -> None:
    here = slice(first, first + len(group))
    # Sums along a row, so that equal rows get equal marks to the last bit.
    norms = np.sqrt(dots(group, group))
    found.marks[here] = np.einsum("ij,j->i", group, random[-1])
    found.norms[here] = norms
    finite = np.isfinite(norms)
    if not finite.all():
        group[~finite] = 0
    inverse = np.zeros(len(group))
    np.divide(1, norms, out=inverse, where=finite & (norms > 0))
    found.projections[here] = (group @ random[:-1].T) * inverse[:, None]
    labels = found.labels[here]
    present = np.unique(labels)
    shares = np.where(labels == present[:, None], inverse, 0)
    directions = shares @ group
    total = group.sum(axis=0)
    with lock:
        found.total += total
        found.directions[present] += directions
    for left in range(0, group.shape[1], _PANEL):
        right = left + _PANEL
        product = group[:, left:right].T @ group[:, left:]
        with lock:
            found.moments[left:right, left:] += product


def mean_cosine(directions: F64, count: int) -> float | None:
    """The mean cosine over all pairs of `count` rows, exact: from the sum of their unit vectors.

    directions: (d_model,). With u the unit vectors, |sum u|^2 = count + the sum of the cosines of
    all ordered pairs, so the mean is (|sum u|^2 - count) / (count (count - 1)). None for fewer
    than two rows.
    """
    if count < 2:
        return None
    return float((directions @ directions - count) / (count * (count - 1)))
