"""A picture as pure data: marks in pixels, x to the right and y downwards."""

from dataclasses import dataclass

from embtool.plot.labels import Box

#: Pixels of a label's text, of a title and of what is said below it.
FONT, TITLE, SMALL = 14.0, 18.0, 13.0
#: A text's line over its size, and its baseline below the line's top.
LINE, BASELINE = 1.35, 1.02
#: Around a picture.
MARGIN = 24.0


@dataclass(frozen=True, slots=True)
class Line:
    """A straight line; `kind` says how it looks."""

    x1: float
    y1: float
    x2: float
    y2: float
    kind: str


@dataclass(frozen=True, slots=True)
class Spot:
    """A point of a map with its label; `box` is None where the label found no room.

    kind: word, neighbor, answer or sum. `tip` is what is known of it, a line for each.
    """

    x: float
    y: float
    kind: str
    label: str
    box: Box | None
    tip: str

    @property
    def text(self) -> "Text | None":
        """The label where it stands: it ends, begins or has its middle at its point's side."""
        box = self.box
        if box is None:
            return None
        y = box.top + FONT * BASELINE
        if box.right <= self.x:
            return Text(box.right - 2, y, self.label, anchor="end")
        if box.left >= self.x:
            return Text(box.left + 2, y, self.label)
        return Text(box.left + box.width / 2, y, self.label, anchor="middle")

    @property
    def leader(self) -> "Line | None":
        """From the point to a label that stands far off."""
        if self.box is None:
            return None
        x, y = self.box.nearest(self.x, self.y)
        far = abs(x - self.x) + abs(y - self.y) > FONT
        return Line(self.x, self.y, x, y, "leader") if far else None


@dataclass(frozen=True, slots=True)
class Rect:
    """A filled rectangle: a bar, or a cell of a heatmap with its opacity from 0 to 1."""

    box: Box
    kind: str
    opacity: float
    tip: str


@dataclass(frozen=True, slots=True)
class Text:
    """A line of text: x is its start, middle or end, y its baseline.

    `turn`: degrees against the clock, about that point.
    """

    x: float
    y: float
    text: str
    kind: str = "label"
    size: float = FONT
    anchor: str = "start"
    turn: float = 0.0


Mark = Line | Spot | Rect | Text


@dataclass(frozen=True, slots=True)
class Scene:
    """A picture. `fixed` stays where it is when a person zooms into `marks`.

    frame: the part of the picture that can be zoomed into. notes: what a person should be told.
    """

    width: float
    height: float
    title: str
    frame: Box
    fixed: tuple[Mark, ...]
    marks: tuple[Mark, ...]
    notes: tuple[str, ...] = ()


#: kind -> colour on white, and on near-black. A kind of mark, of text or of line.
LIGHT = {
    "paper": "#ffffff",
    "ink": "#1c2024",
    "faint": "#646b73",
    "rule": "#c9ced6",
    "word": "#0b62c4",
    "neighbor": "#7d8590",
    "answer": "#c2410c",
    "sum": "#7c3aed",
    "side": "#7c3aed",
    "leader": "#a8b0ba",
    "bar": "#3f83d1",
    "warm": "#ef7f35",
    "cold": "#3f83d1",
}
DARK = {
    "paper": "#14171a",
    "ink": "#e8eaed",
    "faint": "#9aa3ad",
    "rule": "#3a4048",
    "word": "#6cb2ff",
    "neighbor": "#8f98a3",
    "answer": "#ff9a5c",
    "sum": "#b69cff",
    "side": "#b69cff",
    "leader": "#59616b",
    "bar": "#4c8fdb",
    "warm": "#d9641a",
    "cold": "#3f7fc9",
}


def text_colour(kind: str) -> str:
    """The name of the colour of a text: titles and labels are ink, what explains is faint."""
    return "faint" if kind in ("small", "tick") else "ink"


def heading(title: str, captions: tuple[str, ...]) -> tuple[float, tuple[Mark, ...]]:
    """Where the picture may begin, and the lines above it."""
    top = MARGIN + TITLE * LINE
    texts = [Text(MARGIN, MARGIN + TITLE * BASELINE, title, "title", TITLE)]
    for caption in captions:
        texts.append(Text(MARGIN, top + SMALL * BASELINE, caption, "small", SMALL))
        top += SMALL * LINE
    return top + 8, tuple(texts)
