"""Pictures in characters, for a terminal or a text file."""

from embtool.plot import heat, maps, norms
from embtool.plot.grid import Grid, look
from embtool.plot.labels import Box
from embtool.plot.measure import cells, cut
from embtool.plot.names import labels, word_label
from embtool.queries.cosines import Similarity
from embtool.queries.figure import Map, NormFigure

#: A picture is at least so wide, also where a terminal is narrower.
NARROWEST = 40
_MARKS = {"word": "●", "neighbor": "○", "sum": "×", "answer": "★"}
_BLOCKS = " ▁▂▃▄▅▆▇█"
_SHADES = " ░▒▓█"
_ROWS = 12
# A cell of a heatmap: a space, the number, its shade.
_CELL = 7


def map_text(record: Map, width: int, *, colour: bool) -> tuple[str, tuple[str, ...]]:
    """A map, and what a person should be told; a row of cells is as long as two columns."""
    height = min(max(width * 3 // 10, 16), 40)
    frame = Box(0, 0, width, height)
    inner = Box(2, 1, width - 5, height - 3)
    exact = maps.positions(record.points, inner, aspect=2.0)
    spots = [(float(round(x)), float(round(y))) for x, y in exact]
    names = labels(record.points)
    sizes = [(cells(name) + 2.0, 1.0) for name in names]
    placed = maps.arrange(record, spots, names, sizes, frame, 1.0, whole=True)
    grid = Grid(width, height)
    for ends, link in zip(placed.links, record.links, strict=True):
        grid.line(*ends, dashed=link.role == "side")
    for (x, y), box in zip(spots, placed.boxes, strict=True):
        if box is not None:
            end = min(box.nearest(x, y)[0], box.right - 1), min(box.nearest(x, y)[1], box.top)
            if max(abs(end[0] - x), abs(end[1] - y)) > 1:
                grid.line(x, y, *end, dashed=True)
    for (x, y), point in reversed(list(zip(spots, record.points, strict=True))):
        grid.put(int(x), int(y), _MARKS[point.role], point.role)
    for name, box, point in zip(names, placed.boxes, record.points, strict=True):
        if box is not None:
            grid.put(int(box.left), int(box.top), f" {name} ", point.role)
    above = _heading(maps.title(record), maps.captions(record), width, colour)
    return _page([*above, *grid.lines(colour)]), maps.hidden(placed.boxes)


def norms_text(record: NormFigure, width: int, *, colour: bool) -> str:
    """A histogram in columns, and the list of the shortest rows below it."""
    counts, edges = record.histogram.counts, record.histogram.edges
    lines = _heading(norms.title(record), norms.captions(record), width, colour)
    if counts:
        tens = norms.decades(counts)
        margin = len(f"{10**tens:,}") + 1
        wide = max(1, (width - margin) // len(counts))
        labelled = {round(norms.height(10**p, tens) * _ROWS): f"{10**p:,}" for p in range(tens + 1)}
        for row in range(_ROWS, 0, -1):
            bars = "".join(_bar(count, tens, row) * wide for count in counts)
            lines.append(f"{labelled.get(row, ''):>{margin - 1}} {bars}".rstrip())
        lines.append(" " * margin + _axis(edges, wide * len(counts)))
    lines += ["", look("the shortest rows", "small", colour)]
    for token in record.lowest:
        lines.append(f"{token.norm:>10.4f}  {norms.named(token)}")
    return _page(lines)


def heat_text(record: Similarity, width: int, *, colour: bool) -> str:
    """A table of cosines with shades; columns that do not fit stand below, under the same names."""
    names = [word_label(word) for word in record.words]
    side = max(map(cells, names)) + len(str(len(names))) + 1
    fit = max(1, (width - side) // _CELL)
    lines = _heading(heat.title(record), heat.captions(record), width, colour)
    for first in range(0, len(names), fit):
        some = range(first, min(first + fit, len(names)))
        lines.append(" " * side + "".join(f"{f'{j + 1} ':>{_CELL}}" for j in some))
        for i, name in enumerate(names):
            number = f"{i + 1:>{len(str(len(names)))}} "
            label = number + name + " " * (side - cells(number + name))
            lines.append(label + "".join(_cosine(record.matrix[i][j], colour) for j in some))
        lines.append("")
    return _page(lines[:-1])


def _heading(title: str, captions: tuple[str, ...], width: int, colour: bool) -> list[str]:
    shown = [cut(caption, width) for caption in captions]
    above = [look(cut(title, width), "title", colour)]
    return [*above, *(look(caption, "small", colour) for caption in shown), ""]


def _page(lines: list[str]) -> str:
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _bar(count: int, tens: int, row: int) -> str:
    """What a column shows in a row, 1 at the bottom: eighths of a cell, at least one if any."""
    eighths = round(norms.height(count, tens) * _ROWS * 8)
    return _BLOCKS[min(max(max(eighths, count > 0) - (row - 1) * 8, 0), 8)]


def _axis(edges: tuple[float, ...], width: int) -> str:
    """Numbers below their places, those that have room."""
    line = ""
    for value, written in norms.ticks(edges[0], edges[-1]):
        place = round((value - edges[0]) / ((edges[-1] - edges[0]) or 1) * (width - 1))
        start = min(max(place - len(written) // 2, 0), max(width - len(written), 0))
        if not line or start > len(line):
            line = line.ljust(start) + written
    return line


def _cosine(cosine: float, colour: bool) -> str:
    """A number and its shade; in colour on its shade, warm above zero and cold below."""
    text = f"{cosine:.2f}"
    if not colour:
        return f"{text:>{_CELL - 1}}{_SHADES[min(round(abs(cosine) * 4), 4)]}"
    part = min(abs(cosine), 1.0)
    far = (239, 127, 53) if cosine >= 0 else (63, 131, 209)
    red, green, blue = (round(30 + (level - 30) * part) for level in far)
    ink = 97 if part < 0.6 else 30
    return f" \x1b[{ink};48;2;{red};{green};{blue}m{text:>{_CELL - 1}}\x1b[0m"
