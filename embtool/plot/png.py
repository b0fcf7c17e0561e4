"""A picture as PNG; the only importer of matplotlib, with `fonts`."""

from collections.abc import Callable
from io import BytesIO

from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Rectangle

from embtool.errors import UnsupportedError
from embtool.plot.fonts import advice, choose
from embtool.plot.scene import (
    LIGHT,
    Line,
    Rect,
    Scene,
    Spot,
    Text,
    text_colour,
)

# A hundred pixels of a scene are an inch of the figure; each becomes two of the file.
_INCH, _DPI = 100.0, 200
_POINTS = 72 / _INCH
_DASHES = {"leader": (0, (2, 2)), "side": (0, (5, 3))}


def png(picture: Callable[[frozenset[str]], Scene]) -> tuple[bytes, tuple[str, ...]]:
    """The file's bytes, and what a person should be told; `draw` draws it."""
    figure, notes = draw(picture)
    buffer = BytesIO()
    # Nothing of the moment or of this program's version: the same picture is the same file.
    figure.savefig(buffer, format="png", dpi=_DPI, metadata={"Software": None})
    return buffer.getvalue(), notes


def draw(picture: Callable[[frozenset[str]], Scene]) -> tuple[Figure, tuple[str, ...]]:
    """The figure, and what a person should be told.

    picture: the scene without any token of the table's that has one of some characters. For what
    no font of this machine has is never drawn, as the empty box that it would be.

    Raises:
        UnsupportedError: such a character is in what a person typed.
    """
    scene = picture(frozenset())
    families, missing = choose(_texts(scene))
    notes = scene.notes
    if missing:
        scene = picture(missing)
        lost = {character for text in _texts(scene) for character in text} & missing
        if lost:
            shown = " ".join(sorted(lost)[:8])
            raise UnsupportedError(f"no font on this machine has {shown}", advice(lost))
        said = f"tokens with {len(missing)} characters that no font here has are shown as ids"
        notes = (*scene.notes, f"{said}: {advice(missing)}")
    figure = Figure(figsize=(scene.width / _INCH, scene.height / _INCH), facecolor=LIGHT["paper"])
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, scene.width)
    axes.set_ylim(scene.height, 0)
    axes.axis("off")
    artist = _Artist(axes, families)
    for mark in (*scene.fixed, *scene.marks):
        artist.draw(mark)
    return figure, notes


def _texts(scene: Scene) -> list[str]:
    """Every text of a scene that is seen."""
    marks = (*scene.fixed, *scene.marks)
    texts = [mark.text if isinstance(mark, Spot) else mark for mark in marks]
    return [text.text for text in texts if isinstance(text, Text)]


class _Artist:
    def __init__(self, axes: Axes, families: tuple[str, ...]) -> None:
        self._axes = axes
        self._families = list(families)

    def draw(self, mark: Line | Rect | Spot | Text) -> None:
        match mark:
            case Line():
                self._line(mark)
            case Rect():
                self._rect(mark)
            case Text():
                self._text(mark)
            case Spot():
                self._spot(mark)

    def _line(self, mark: Line) -> None:
        line = Line2D(
            [mark.x1, mark.x2],
            [mark.y1, mark.y2],
            color=LIGHT["leader" if mark.kind == "neighbor" else mark.kind],
            linewidth=(1.5 if mark.kind in ("side", "answer") else 1.0) * _POINTS,
            linestyle=_DASHES.get(mark.kind, "solid"),
            zorder=1,
        )
        self._axes.add_line(line)

    def _rect(self, mark: Rect) -> None:
        box, colour = mark.box, LIGHT[mark.kind]
        self._axes.add_patch(
            Rectangle(
                (box.left, box.top),
                box.width,
                box.height,
                facecolor=colour,
                alpha=mark.opacity,
                linewidth=0,
                zorder=2,
            )
        )

    def _spot(self, spot: Spot) -> None:
        radius = 3.5 if spot.kind == "neighbor" else 5
        for mark in (spot.leader, spot.text):
            if mark is not None:
                self.draw(mark)
        self._axes.add_patch(
            Circle(
                (spot.x, spot.y),
                radius,
                facecolor=LIGHT[spot.kind],
                edgecolor=LIGHT["paper"],
                linewidth=_POINTS,
                zorder=2,
            )
        )

    def _text(self, mark: Text) -> None:
        halo = [patheffects.withStroke(linewidth=3 * _POINTS, foreground=LIGHT["paper"])]
        self._axes.text(
            mark.x,
            mark.y,
            mark.text,
            fontsize=mark.size * _POINTS,
            fontfamily=self._families,
            color=LIGHT[text_colour(mark.kind)],
            ha={"start": "left", "middle": "center", "end": "right"}[mark.anchor],
            va="baseline",
            rotation=mark.turn,
            rotation_mode="anchor",
            parse_math=False,
            path_effects=[] if mark.kind == "number" else halo,
            zorder=3,
        )
