"""Labels beside points so that none covers another, the same ones each time."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]

# Where a label may stand, the best first: right, left, above, below, the corners, and between
# them; in units of half the label's width and height and of its distance.
_NEAR = [(1, 0), (-1, 0), (0, -1), (0, 1), (1, -1), (1, 1), (-1, -1), (-1, 1)]
_BETWEEN = [(1, -0.5), (1, 0.5), (-1, -0.5), (-1, 0.5)]
_PLACES = np.array(_NEAR + _BETWEEN + [(0.5, -1), (-0.5, -1), (0.5, 1), (-0.5, 1)])
_DIAGONAL = 0.7
# Labels move away from their points in steps of this part of their height, so many times.
_STEP, _RINGS = 0.7, 24
# What is worse than a step away from the point: to lie on a line, or behind a label.
_ON_LINE, _BEHIND = 2.0, 4.0


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle; y grows downwards."""

    left: float
    top: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """Where it ends."""
        return self.left + self.width

    @property
    def bottom(self) -> float:
        """Where it ends, below."""
        return self.top + self.height

    def meets(self, other: "Box") -> bool:
        """Whether they share more than an edge."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )

    def nearest(self, x: float, y: float) -> tuple[float, float]:
        """The point of the box that is nearest to another point."""
        return min(max(x, self.left), self.right), min(max(y, self.top), self.bottom)


def place(
    anchors: Sequence[tuple[float, float]],
    sizes: Sequence[tuple[float, float]],
    frame: Box,
    reach: float,
    lines: Sequence[tuple[float, float, float, float]] = (),
    *,
    whole: bool = False,
) -> list[Box | None]:
    """A box for each label inside the frame, in the order of the anchors, the first served first.

    No box covers another, nor any anchor; None where there is no room. A label stands as near to
    its point as it can, off the lines (x1, y1, x2, y2) where that costs little.

    sizes: (width, height). reach: from a point to its label. whole: boxes start at whole numbers,
    as in a terminal.
    """
    placer = _Placer(anchors, frame, reach, lines, whole)
    return [placer.put(*anchor, *size) for anchor, size in zip(anchors, sizes, strict=True)]


class _Placer:
    def __init__(
        self,
        anchors: Sequence[tuple[float, float]],
        frame: Box,
        reach: float,
        lines: Sequence[tuple[float, float, float, float]],
        whole: bool,
    ) -> None:
        self._frame = frame
        self._reach = reach
        self._whole = whole
        self._lines: F64 = np.array(lines, np.float64).reshape(-1, 4)
        dots = np.array(anchors, np.float64).reshape(-1, 2)
        radius = 0.0 if whole else reach / 2
        self._taken: F64 = np.concatenate([dots - radius, dots + radius + whole], axis=1)
        self._labels = np.empty((0, 4))

    def put(self, x: float, y: float, width: float, height: float) -> Box | None:
        boxes, rings = self._candidates(x, y, width, height)
        frame = self._frame
        inside = (boxes[:, 0] >= frame.left) & (boxes[:, 2] <= frame.right)
        inside &= (boxes[:, 1] >= frame.top) & (boxes[:, 3] <= frame.bottom)
        good = inside & ~_meet(boxes, self._taken).any(axis=1)
        boxes, rings = boxes[good], rings[good]
        if not len(boxes):
            return None
        near = np.clip([x, y], boxes[:, :2], boxes[:, 2:])
        leaders = np.concatenate([np.broadcast_to([x, y], near.shape), near], axis=1)
        cost = rings + _ON_LINE * _cross(self._lines, boxes).any(axis=0)
        cost += _BEHIND * _cross(leaders, self._labels).any(axis=1) * (rings > 0)
        best = int(cost.argmin())
        box = boxes[best]
        self._taken = np.concatenate([self._taken, box[None]])
        self._labels = np.concatenate([self._labels, box[None]])
        if rings[best]:
            self._lines = np.concatenate([self._lines, leaders[best][None]])
        left, top, right, bottom = box.tolist()
        return Box(left, top, right - left, bottom - top)

    def _candidates(self, x: float, y: float, width: float, height: float) -> tuple[F64, F64]:
        """Boxes (n, 4) as left, top, right, bottom, and how far out each is, (n,)."""
        rings = np.repeat(np.arange(_RINGS, dtype=np.float64), len(_PLACES))
        places = np.tile(_PLACES, (_RINGS, 1))
        far = self._reach + rings * height * _STEP
        far *= np.where(np.abs(places).min(axis=1) > 0, _DIAGONAL, 1.0)
        size = np.array([width, height])
        corners = [x, y] + places * (far[:, None] + size / 2) - size / 2
        if self._whole:
            # A point is a cell, and lies in its middle.
            corners = np.rint([x, y] + places * (far[:, None] + (size - 1) / 2) - (size - 1) / 2)
        return np.concatenate([corners, corners + size], axis=1), rings


def _meet(these: F64, those: F64) -> NDArray[np.bool_]:
    """Which boxes share more than an edge, (n, m)."""
    a, b = these[:, None], those[None]
    over: NDArray[np.bool_] = np.all((a[..., :2] < b[..., 2:]) & (b[..., :2] < a[..., 2:]), axis=-1)
    return over


def _cross(lines: F64, boxes: F64) -> NDArray[np.bool_]:
    """Which lines (m, 4) run through which boxes (n, 4), (m, n), by slabs."""
    start, way = lines[:, None, :2], lines[:, None, 2:] - lines[:, None, :2]
    way = np.where(way == 0, 1e-12, way)
    low, high = (boxes[None, :, :2] - start) / way, (boxes[None, :, 2:] - start) / way
    enters = np.minimum(low, high).max(-1)
    leaves = np.maximum(low, high).min(-1)
    crossed: NDArray[np.bool_] = (enters < leaves) & (leaves > 0) & (enters < 1)
    return crossed
