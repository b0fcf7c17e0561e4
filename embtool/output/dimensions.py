"""`dimensions` as lists: a row's largest components, and the tokens at a dimension's ends."""

from typing import TYPE_CHECKING

from embtool.output.rankings import label
from embtool.output.view import Cell, View

if TYPE_CHECKING:
    from collections.abc import Sequence

    from embtool.queries.dimensions import DimensionEnds, Dimensions, Standing

_NAMELESS = "what stands at the ends of a dimension seldom shares a property that one could name"


def of_word(record: "Dimensions") -> View:
    """A row for each component; the tokens at its ends, with bars between."""
    columns = ("rank", "dimension", "value", "share", "deviations", "highest", "lowest")
    rows: list[tuple[Cell, ...]] = [
        (d.rank, d.dimension, d.value, d.share, d.deviations, _bars(d.highest), _bars(d.lowest))
        for d in record.dimensions
    ]
    title = f"largest dimensions of {label(record.word)}, {record.table}, {record.model}"
    share = sum(d.share for d in record.dimensions)
    footer = (
        f"together they are {share:.1%} of the row's squared length; deviations are those of all "
        "rows in the dimension",
        _NAMELESS,
    )
    return View(columns, rows, title, footer, lines=record.dimensions)


def of_index(record: "DimensionEnds") -> View:
    """A row for each token, those of the high end first."""
    columns = ("end", "rank", "id", "token", "raw", "value")
    rows: list[tuple[Cell, ...]] = [
        (end, s.rank, s.id, s.token, s.raw, s.value)
        for end, standings in (("highest", record.highest), ("lowest", record.lowest))
        for s in standings
    ]
    title = f"the ends of dimension {record.dimension}, {record.table}, {record.model}"
    footer = (
        f"over {record.rows:,} rows its mean is {record.mean:.4f}, its deviation "
        f"{record.deviation:.4f}",
        _NAMELESS,
    )
    return View(columns, rows, title, footer)


def _bars(standings: "Sequence[Standing]") -> str:
    return " | ".join(s.token or f"id:{s.id}" for s in standings)
