"""A table's norms as a picture: a histogram with counts by powers of ten, the shortest named."""

import math
from collections.abc import Sequence

from embtool.plot.labels import Box
from embtool.plot.measure import cut
from embtool.plot.names import shown, spaces_seen
from embtool.plot.scene import LINE, MARGIN, SMALL, Line, Mark, Rect, Scene, Text, heading
from embtool.queries.figure import NormFigure
from embtool.queries.stats import NormedToken

_WIDTH, _HEIGHT = 960.0, 600.0
_LIST = 300.0
_AXIS = 64.0
# Numbers along the axis of norms.
_TICKS = 6


def title(record: NormFigure) -> str:
    """What the picture shows."""
    rows = "row" if record.finite == 1 else "rows"
    return f"norms of {record.finite:,} {rows}, {cut(shown(record.model), 48)}"


def captions(record: NormFigure) -> tuple[str, ...]:
    """Which table, and what is not in the picture."""
    where = f"{cut(shown(record.table), 48)}; counts by powers of ten"
    left_out = record.rows - record.finite
    return (where, f"{left_out:,} rows are not finite") if left_out else (where,)


def named(token: NormedToken, missing: frozenset[str] = frozenset()) -> str:
    """A row in the list of the shortest; by its id alone where no font has its characters."""
    text = token.token or "(no token)"
    if missing & {*text}:
        return f"id {token.id}"
    return f"{cut(spaces_seen(text), 18)} (id {token.id})"


def decades(counts: Sequence[int]) -> int:
    """How many powers of ten it takes to reach the largest count; at least one."""
    return max(1, math.ceil(math.log10(max(1, *counts, 1))))


def height(count: int, tens: int) -> float:
    """How high a count stands, 0 to 1: none is 0, one a little, 10 ** tens is 1."""
    return 0.0 if count == 0 else (math.log10(count) + 0.15) / (tens + 0.15)


def ticks(first: float, last: float) -> list[tuple[float, str]]:
    """Round numbers from first to last, some six of them, and how they are written."""
    if not last > first:
        return [(first, f"{first:.6g}")]
    rough = (last - first) / _TICKS
    ten = 10.0 ** math.floor(math.log10(rough))
    step = next(ten * factor for factor in (1, 2, 5, 10) if ten * factor >= rough)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    places = range(math.ceil(first / step - 1e-9), math.floor(last / step + 1e-9) + 1)
    return [(place * step, f"{place * step:.{decimals}f}") for place in places]


def scene(record: NormFigure, missing: frozenset[str] = frozenset()) -> Scene:
    """The histogram in pixels, and the list beside it; no token has a missing character."""
    top, above = heading(title(record), captions(record))
    left, bottom = MARGIN + _AXIS, _HEIGHT - MARGIN - 2 * SMALL * LINE
    field = Box(left, top + 8, _WIDTH - left - _LIST - MARGIN, bottom - top - 8)
    marks: list[Mark] = [
        *_axes(record, field),
        *_bars(record, field),
        *_lowest(record, field, missing),
    ]
    frame = Box(0, top, _WIDTH, _HEIGHT - top)
    return Scene(_WIDTH, _HEIGHT, title(record), frame, above, tuple(marks))


def _bars(record: NormFigure, field: Box) -> list[Mark]:
    counts, edges = record.histogram.counts, record.histogram.edges
    tens = decades(counts)
    marks: list[Mark] = []
    for place, count in enumerate(counts):
        wide, high = field.width / len(counts), field.height * height(count, tens)
        box = Box(field.left + place * wide + 1, field.bottom - high, wide - 2, high)
        tip = f"{count:,} rows\nnorm {edges[place]:.6g} to {edges[place + 1]:.6g}"
        marks.append(Rect(box, "bar", 1.0, tip))
    return marks


def _axes(record: NormFigure, field: Box) -> list[Mark]:
    marks: list[Mark] = []
    tens = decades(record.histogram.counts)
    for power in range(tens + 1):
        y = field.bottom - field.height * height(10**power, tens)
        marks.append(Line(field.left, y, field.right, y, "rule"))
        marks.append(Text(field.left - 8, y + SMALL * 0.35, f"{10**power:,}", "tick", SMALL, "end"))
    marks.append(Line(field.left, field.bottom, field.right, field.bottom, "rule"))
    edges = record.histogram.edges or (0.0, 1.0)
    for value, written in ticks(edges[0], edges[-1]):
        x = field.left + field.width * (value - edges[0]) / ((edges[-1] - edges[0]) or 1)
        y = field.bottom + SMALL * LINE
        marks.append(Line(x, field.bottom, x, field.bottom + 4, "rule"))
        marks.append(Text(x, y, written, "tick", SMALL, "middle"))
    y = field.bottom + 2 * SMALL * LINE
    marks.append(Text(field.left + field.width / 2, y, "norm", "tick", SMALL, "middle"))
    return marks


def _lowest(record: NormFigure, field: Box, missing: frozenset[str]) -> list[Mark]:
    left, y = field.right + MARGIN, field.top + SMALL
    marks: list[Mark] = [Text(left, y, "the shortest rows", "small", SMALL)]
    for token in record.lowest:
        y += SMALL * LINE * 1.2
        marks.append(Text(left, y, f"{token.norm:.4f}", "tick", SMALL))
        marks.append(Text(left + 60, y, named(token, missing), "label", SMALL))
    return marks
