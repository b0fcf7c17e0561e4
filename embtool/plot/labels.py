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
        best, cost, line = None, np.inf, None
        for ring in range(_RINGS):
            if cost <= ring:
                break  # farther out nothing is better
            boxes = self._free(x, y, width, height, ring)
            if not len(boxes):
                continue
            costs, leaders = self._costs(x, y, boxes, ring)
            least = int(costs.argmin())
            if costs[least] < cost:
                best, cost = boxes[least], costs[least]
                line = leaders[least] if ring else None
        if best is None:
            return None
        self._taken = np.concatenate([self._taken, best[None]])
        self._labels = np.concatenate([self._labels, best[None]])
        if line is not None:
            self._lines = np.concatenate([self._lines, line[None]])
        left, top, right, bottom = best.tolist()
        return Box(left, top, right - left, bottom - top)

    def _free(self, x: float, y: float, width: float, height: float, ring: int) -> F64:
        """Boxes (n, 4) so far out that have room, as left, top, right, bottom."""
        far = self._reach + ring * height * _STEP
        distances = np.where(np.abs(_PLACES).min(axis=1) > 0, far * _DIAGONAL, far)[:, None]
        size = np.array([width, height])
        # As a whole number, a point is a cell, and lies in its middle.
        half = (size - self._whole) / 2
        corners = [x, y] + _PLACES * (distances + half) - half
        if self._whole:
            corners = np.rint(corners)
        boxes = np.concatenate([corners, corners + size], axis=1)
        frame = self._frame
        inside = (corners >= [frame.left, frame.top]).all(axis=1)
        inside &= (boxes[:, 2:] <= [frame.right, frame.bottom]).all(axis=1)
        boxes = boxes[inside]
        free: F64 = boxes[~_meet(boxes, self._taken).any(axis=1)]
        return free

    def _costs(self, x: float, y: float, boxes: F64, ring: int) -> tuple[F64, F64]:
        """What each box costs, (n,), and the lines to them from the point, (n, 4)."""
        near = np.clip([x, y], boxes[:, :2], boxes[:, 2:])
        leaders = np.concatenate([np.broadcast_to([x, y], near.shape), near], axis=1)
        costs: F64 = np.full(len(boxes), float(ring))
        costs += _ON_LINE * _cross(self._lines, boxes).any(axis=0)
        if ring:
            costs += _BEHIND * _cross(leaders, self._labels).any(axis=1)
        return costs, leaders


def _meet(these: F64, those: F64) -> NDArray[np.bool_]:
    """Which boxes share more than an edge, (n, m)."""
    left, top, right, bottom = those.T
    meets: NDArray[np.bool_] = (these[:, 0, None] < right) & (left < these[:, 2, None])
    meets &= (these[:, 1, None] < bottom) & (top < these[:, 3, None])
    return meets


def _cross(lines: F64, boxes: F64) -> NDArray[np.bool_]:
    """Which lines (m, 4) run through which boxes (n, 4), (m, n), by slabs."""
    enters, leaves = np.zeros((len(lines), 1)), np.ones((len(lines), 1))
    for axis in (0, 1):
        start = lines[:, axis, None]
        way = lines[:, axis + 2, None] - start
        way = np.where(way == 0, 1e-12, way)
        low, high = (boxes[:, axis] - start) / way, (boxes[:, axis + 2] - start) / way
        enters = np.maximum(enters, np.minimum(low, high))
        leaves = np.minimum(leaves, np.maximum(low, high))
    crossed: NDArray[np.bool_] = enters < leaves
    return crossed
