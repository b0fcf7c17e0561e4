"""How each record reads as a list: its columns, its rows, and a title for people."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from embtool.output import counts, dimensions, pages, rankings, stores, training
from embtool.output.view import Cell, View
from embtool.vocab import escape

if TYPE_CHECKING:
    from embtool.params import Params
    from embtool.queries.known import Known
    from embtool.queries.records import Found, Lookup, Tokens


def view(record: object) -> View:
    """The list form of any record that a command gives."""
    return _VIEWS[type(record).__name__](record)


def for_people(record: Any, many: bool) -> tuple[View, bool]:  # noqa: ANN401 -- any record
    """The view that a person gets, and whether it is a line of one table with the others."""
    kind = type(record).__name__
    if kind == "Params":
        return (counts.brief(record), True) if many else (counts.page(record), False)
    return (_PEOPLE[kind](record) if kind in _PEOPLE else view(record)), False


def _tokens(record: "Tokens") -> View:
    rows: list[tuple[Cell, ...]] = [(t.position, t.id, t.token, t.raw) for t in record.tokens]
    title = f"{len(rows)} tokens, {record.model}"
    return View(("position", "id", "token", "raw"), rows, title, lines=record.tokens)


def _found(record: "Found") -> View:
    rows: list[tuple[Cell, ...]] = [(t.id, t.token, t.raw) for t in record.tokens]
    title = f"{len(rows)} tokens match {escape(record.pattern.encode())}, {record.model}"
    return View(("id", "token", "raw"), rows, title, lines=record.tokens)


def _lookup(record: "Lookup") -> View:
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


def _params(record: "Params") -> View:
    memory = record.memory
    columns = (
        *("model", "source", "vocab_size", "rows", "d_model", "tokens", "tied", "params"),
        *("total_params", "share", *memory),
    )
    row: tuple[Cell, ...] = (
        *(record.model, record.source, record.vocab_size, record.rows, record.d_model),
        *(record.tokens, record.tied, record.params, record.total_params, record.share),
        *memory.values(),
    )
    notes = tuple(f"{record.model}: {n}" if record.model else n for n in record.notes)
    return View(columns, [row], notes=notes)


def _known(record: "Known") -> View:
    columns = ("name", "vocab_size", "d_model", "layers", "tied", "dtype", "total_params", "tokens")
    rows: list[tuple[Cell, ...]] = [
        (m.name, m.vocab_size, m.width, m.layers, m.tied, m.dtype, m.total_params, m.tokens)
        for m in record.models
    ]
    return View(columns, rows, f"{len(rows)} models known offline", lines=record.models)


_PEOPLE: dict[str, Callable[[Any], View]] = {"Download": stores.downloaded, "Kept": stores.held}

# By the name of the record's class: importing every question to answer one would be slow.
_VIEWS: dict[str, Callable[[Any], View]] = {
    "Alignment": training.alignment,
    "Analogy": rankings.analogy,
    "Cross": rankings.cross,
    "Evaluation": rankings.evaluation,
    "Download": stores.download,
    "Compared": pages.compared,
    "Diff": training.diff,
    "DimensionEnds": dimensions.of_index,
    "Dimensions": dimensions.of_word,
    "Explained": pages.explained,
    "Found": _found,
    "Kept": stores.kept,
    "Known": _known,
    "Lookup": _lookup,
    "Neighbors": rankings.neighbors,
    "Node": training.node,
    "Params": _params,
    "Rank": rankings.rank,
    "Similarity": rankings.similarity,
    "Stats": training.stats,
    "Tokens": _tokens,
    "Undertrained": training.undertrained,
}
