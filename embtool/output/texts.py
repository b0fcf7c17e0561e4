"""`tokens`, `find` and `lookup` as lists: a row for each token."""

from typing import TYPE_CHECKING

from embtool.output.view import Cell, View
from embtool.vocab import escape

if TYPE_CHECKING:
    from embtool.queries.records import Found, Lookup, Tokens


def tokens(record: "Tokens") -> View:
    """A row for each token of a text."""
    rows: list[tuple[Cell, ...]] = [(t.position, t.id, t.token, t.raw) for t in record.tokens]
    title = f"{len(rows)} tokens, {record.model}"
    return View(("position", "id", "token", "raw"), rows, title, lines=record.tokens)


def found(record: "Found") -> View:
    """A row for each token that matches."""
    rows: list[tuple[Cell, ...]] = [(t.id, t.token, t.raw) for t in record.tokens]
    title = f"{len(rows)} tokens match {escape(record.pattern.encode())}, {record.model}"
    return View(("id", "token", "raw"), rows, title, lines=record.tokens)


def lookup(record: "Lookup") -> View:
    """The matrix of a text: a row for each of its tokens."""
    shown = len(record.tokens[0].vector) if record.tokens else record.shape[1]
    dims = tuple(f"d{j}" for j in range(shown))
    rows: list[tuple[Cell, ...]] = [
        (t.position, t.id, t.token, t.raw, t.norm, *t.vector) for t in record.tokens
    ]
    count, width = record.shape
    times = "" if record.scale is None else f", times {record.scale:.6g}"
    title = f"{count} × {width} matrix from {record.table}{times}, {record.model}"
    rest = width - shown
    footer = (f"... and {rest:,} more dimensions: --dims {width}",) if rest > 0 else ()
    columns = ("position", "id", "token", "raw", "norm", *dims)
    return View(columns, rows, title, footer, lines=record.tokens, matrix=record.matrix)
