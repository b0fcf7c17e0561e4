"""Cosines of words as a picture: a field of cells, warm above zero and cold below."""

from embtool.plot.labels import Box
from embtool.plot.measure import cut, ems
from embtool.plot.names import shown, word_label
from embtool.plot.scene import FONT, MARGIN, SMALL, Mark, Rect, Scene, Text, heading
from embtool.queries.cosines import Similarity

# A cell is as large as the picture allows, between these; from the second one it has its number.
_LEAST, _NUMBERED, _MOST = 24.0, 40.0, 64.0
_ROOM = 720.0
_GAP = 8.0


def title(record: Similarity) -> str:
    """What the picture shows."""
    return f"cosines of {len(record.words)} words, {cut(shown(record.model), 48)}"


def captions(record: Similarity) -> tuple[str, ...]:
    """Which table, and by what a cosine can be judged."""
    rows = f"rows of {cut(shown(record.table), 48)}"
    chance = record.chance
    if chance is None:
        return (rows,)
    low, high = (chance.percentiles[point] for point in ("1", "99"))
    return (rows, f"of 100 random pairs of its tokens, 98 lie between {low:.2f} and {high:.2f}")


def scene(record: Similarity, missing: frozenset[str] = frozenset()) -> Scene:
    """The heatmap in pixels; it grows with the words. A person typed all of its texts."""
    names = [word_label(word) for word in record.words]
    longest = max(ems(name) for name in names) * FONT
    side = min(max(_ROOM / len(names), _LEAST), _MOST)
    top, above = heading(title(record), captions(record))
    # Names of columns that are wider than a cell are turned upwards.
    turned = longest > side - 4
    left, top = MARGIN + longest + _GAP, top + (longest if turned else FONT) + _GAP
    field = Box(left, top, side * len(names), side * len(names))
    marks = [*_names(names, field, side, turned), *_cells(record, names, field, side)]
    width = max(field.right + MARGIN, ems(title(record)) * 18 + 2 * MARGIN)
    inner = Box(0, top - longest - _GAP, width, field.bottom - top + longest + _GAP + MARGIN)
    return Scene(width, field.bottom + MARGIN, title(record), inner, above, tuple(marks))


def _names(names: list[str], field: Box, side: float, turned: bool) -> list[Mark]:
    marks: list[Mark] = []
    for place, name in enumerate(names):
        middle = field.top + (place + 0.5) * side + FONT * 0.35
        marks.append(Text(field.left - _GAP, middle, name, anchor="end"))
        x, y = field.left + (place + 0.5) * side, field.top - _GAP
        if turned:
            marks.append(Text(x + FONT * 0.35, y, name, turn=90))
        else:
            marks.append(Text(x, y, name, anchor="middle"))
    return marks


def _cells(record: Similarity, names: list[str], field: Box, side: float) -> list[Mark]:
    marks: list[Mark] = []
    for i, row in enumerate(record.matrix):
        for j, cosine in enumerate(row):
            box = Box(field.left + j * side + 1, field.top + i * side + 1, side - 2, side - 2)
            tip = f"{names[i]}, {names[j]}\ncosine {cosine:.4f}"
            marks.append(Rect(box, "cold" if cosine < 0 else "warm", abs(cosine), tip))
            if side >= _NUMBERED:
                x, y = box.left + box.width / 2, box.top + box.height / 2 + SMALL * 0.35
                marks.append(Text(x, y, f"{cosine:.2f}", "number", SMALL, "middle"))
    return marks
