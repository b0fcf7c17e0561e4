"""A map of words as a picture: where points and labels stand, for pixels and for cells."""

from collections.abc import Sequence
from dataclasses import dataclass

from embtool.plot.labels import Box, place
from embtool.plot.measure import cut, ems
from embtool.plot.names import labels, shown, told
from embtool.plot.scene import FONT, LINE, MARGIN, Line, Mark, Scene, Spot, heading
from embtool.queries.figure import Map, Point

_WIDTH, _HEIGHT = 960.0, 720.0
#: From a point to its label, and from the frame's edge to the outermost points.
_REACH, _INSET = 8.0, 36.0


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a map's points, labels and links stand; a label without room has no box."""

    spots: tuple[tuple[float, float], ...]
    names: tuple[str, ...]
    boxes: tuple[Box | None, ...]
    links: tuple[tuple[float, float, float, float], ...]


def positions(
    points: Sequence[Point], inner: Box, aspect: float = 1.0
) -> list[tuple[float, float]]:
    """The points in a rectangle, one scale for both axes, as large as fits, in the middle.

    aspect: how many units of x are as long as one of y.
    """
    xs, ys = [point.x for point in points], [point.y for point in points]
    wide, high = max(xs) - min(xs), max(ys) - min(ys)
    scales = [
        size / span
        for size, span in ((inner.width, wide), (inner.height * aspect, high))
        if span > 0
    ]
    scale = min(scales, default=0.0)
    x0, y0 = (max(xs) + min(xs)) / 2, (max(ys) + min(ys)) / 2
    left, top = inner.left + inner.width / 2, inner.top + inner.height / 2
    return [
        (left + (x - x0) * scale, top - (y - y0) * scale / aspect)
        for x, y in zip(xs, ys, strict=True)
    ]


def title(record: Map, missing: frozenset[str] = frozenset()) -> str:
    """What the picture shows."""
    model = cut(shown(record.model), 48)
    answers = [point for point in record.points if point.role == "answer"]
    if record.formula is None:
        words = sum(point.role == "word" for point in record.points)
        others = len(record.points) - words
        more = f" and {others} nearest rows" if others else ""
        return f"{words} word{'s' if words > 1 else ''}{more}, {model}"
    found = f" ≈ {labels(answers, missing)[0]}" if answers else ""
    return f"{cut(shown(record.formula), 60)}{found}, {model}"


def captions(record: Map) -> tuple[str, ...]:
    """How it was made, in lines."""
    x, y = (f"{share:.0%}" for share in record.shares)
    rows = "unit vectors of rows" if record.unit else "rows"
    where = cut(shown(record.table), 48)
    how = (f"{rows} of {where}", f"axes: {x} and {y} of the variance")
    scores = [link.score for link in record.links if link.role == "answer"]
    return (*how, *(f"cosine of the sum and the answer: {score:.4f}" for score in scores))


def scene(record: Map, missing: frozenset[str] = frozenset()) -> Scene:
    """The map in pixels; no token of the table's has a missing character."""
    name = title(record, missing)
    top, above = heading(name, captions(record))
    frame = Box(MARGIN, top, _WIDTH - 2 * MARGIN, _HEIGHT - top - MARGIN)
    placed = _arrange(record, frame, missing)
    links: list[Mark] = [
        Line(*ends, link.role) for ends, link in zip(placed.links, record.links, strict=True)
    ]
    spots = [
        Spot(x, y, point.role, label, box, told(point))
        for (x, y), point, label, box in zip(
            placed.spots, record.points, placed.names, placed.boxes, strict=True
        )
    ]
    notes = hidden(placed.boxes)
    return Scene(_WIDTH, _HEIGHT, name, frame, above, (*links, *spots), notes)


def hidden(boxes: Sequence[Box | None]) -> tuple[str, ...]:
    """A note where labels found no room."""
    count = sum(box is None for box in boxes)
    if not count:
        return ()
    return (f"{count} of {len(boxes)} labels have no room; an .html picture shows them by zooming",)


def _arrange(record: Map, frame: Box, missing: frozenset[str]) -> Layout:
    inner = Box(
        frame.left + _INSET,
        frame.top + _INSET,
        frame.width - 2 * _INSET,
        frame.height - 2 * _INSET,
    )
    names = labels(record.points, missing)
    sizes = [(ems(name) * FONT + 4, FONT * LINE) for name in names]
    return arrange(record, positions(record.points, inner), names, sizes, frame, _REACH)


def arrange(
    record: Map,
    spots: Sequence[tuple[float, float]],
    names: Sequence[str],
    sizes: Sequence[tuple[float, float]],
    frame: Box,
    reach: float,
    *,
    whole: bool = False,
) -> Layout:
    """Labels of these sizes beside the spots, off the links where they can be; see `place`."""
    links = [(*spots[link.start], *spots[link.end]) for link in record.links]
    boxes = place(spots, sizes, frame, reach, links, whole=whole)
    return Layout(tuple(spots), tuple(names), tuple(boxes), tuple(links))
