"""Pictures of figures, edge of the house beside `output`.

    format_ = choose_format(None, Path("map.svg"))          # "svg"
    content, notes = render(record, format_, width=100, colour=False)

A figure is a `Map`, a `NormFigure` or a `Similarity`. Its layout is pure data (`scene`, `labels`),
which `svg`, `html` and `png` draw; `characters` draws in a terminal's cells. A PNG needs
matplotlib, the extra `plot`; nothing else here does.
"""

import json
from pathlib import Path

from embtool.errors import UnsupportedError
from embtool.output.plain import plain
from embtool.plot import characters, heat, maps, norms
from embtool.plot.html import html
from embtool.plot.scene import Scene
from embtool.plot.svg import svg
from embtool.queries.cosines import Similarity
from embtool.queries.figure import Map, NormFigure

__all__ = ["FORMATS", "Figure", "choose_format", "render", "scene"]

FORMATS = ("text", "png", "svg", "html", "json")
_ENDINGS = {".txt": "text", ".png": "png", ".svg": "svg", ".html": "html", ".json": "json"}

Figure = Map | NormFigure | Similarity


def choose_format(chosen: str | None, output: Path | None) -> str:
    """The format that is asked for, else that of the file's ending, else characters.

    Raises:
        ValueError: the ending names no format, or contradicts what is asked for.
    """
    if output is None:
        return chosen or "text"
    implied = _ENDINGS.get(output.suffix.lower())
    if chosen is None and implied is None:
        raise ValueError(f"{output.name}: give a file that ends in {', '.join(_ENDINGS)}, or -f")
    if chosen is not None and implied not in (None, chosen):
        raise ValueError(f"{output.name} ends as {implied}, but -f says {chosen}")
    return chosen or str(implied)


def render(
    record: Figure, format_: str, width: int, *, colour: bool
) -> tuple[bytes, tuple[str, ...]]:
    """A figure as a file's bytes, and notes for a person.

    width: of a picture in characters, in columns; colour: whether it may have any.

    Raises:
        UnsupportedError: a PNG without matplotlib, or with characters that no font here has.
    """
    if format_ == "json":
        return _json(record), ()
    if format_ == "text":
        text, notes = _characters(record, max(width, characters.NARROWEST), colour)
        return text.encode(), notes
    if format_ == "png":
        return _png(record)
    picture = scene(record)
    drawn = svg(picture) if format_ == "svg" else html(picture)
    # a page shows by zooming what has no room
    return drawn.encode(), picture.notes if format_ == "svg" else ()


def scene(record: Figure, missing: frozenset[str] = frozenset()) -> Scene:
    """A figure in pixels; a token of the table's that has a missing character is shown by id."""
    match record:
        case Map():
            return maps.scene(record, missing)
        case NormFigure():
            return norms.scene(record, missing)
        case Similarity():
            return heat.scene(record, missing)


def _characters(record: Figure, width: int, colour: bool) -> tuple[str, tuple[str, ...]]:
    match record:
        case Map():
            return characters.map_text(record, width, colour=colour)
        case NormFigure():
            return characters.norms_text(record, width, colour=colour), ()
        case Similarity():
            return characters.heat_text(record, width, colour=colour), ()


def _png(record: Figure) -> tuple[bytes, tuple[str, ...]]:
    try:
        from embtool.plot.png import png
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        raise UnsupportedError(
            "a PNG needs matplotlib, which is not installed",
            "pip install 'embtool[plot]', or write .svg or .html, which need nothing more",
        ) from error
    return png(lambda missing: scene(record, missing))


def _json(record: Figure) -> bytes:
    return (json.dumps(plain(record), ensure_ascii=False, allow_nan=False) + "\n").encode()
