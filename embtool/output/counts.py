"""`params` and `models`: for people a page for one model, a table that compares several."""

from typing import TYPE_CHECKING

from embtool.output.view import Cell, View

if TYPE_CHECKING:
    from embtool.params import Params, TableFacts
    from embtool.queries.known import Known

_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def line(record: "Params") -> View:
    """All of it in one row."""
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


def page(record: "Params") -> View:
    """One model: a line for each fact that is known."""
    lines: list[tuple[str, str | None]] = [
        ("table", f"{_number(record.rows)} rows × {_number(record.d_model)} d_model"),
        ("parameters", _number(record.params)),
        ("model's parameters", _number(record.total_params)),
        ("share of the model", _share(record.share)),
        ("tied", None if record.tied is None else "yes" if record.tied else "no"),
        ("vocab_size (config)", _number(record.vocab_size)),
        ("hidden_size", _number(record.hidden_size)),
        ("tokens", _number(record.tokens)),
        *((f"in {name}", nbytes(count)) for name, count in record.memory.items()),
        *((f"stored {table.role}", _stored(table)) for table in record.tables if table.tensor),
    ]
    title = " · ".join(filter(None, (record.model, record.model_type, record.source)))
    rows: list[tuple[Cell, ...]] = [(name, value) for name, value in lines if value is not None]
    return View(
        ("fact", "value"), rows, title, tuple(f"note: {n}" for n in record.notes), page=True
    )


def brief(record: "Params") -> View:
    """One line of a comparison; a precision's column is named after it and holds bytes."""
    from embtool.params import PRECISIONS

    memory = record.memory
    if tuple(memory) == PRECISIONS:  # chosen by nobody: one will do, and leaves room for names
        memory = {"bf16": memory["bf16"]}
    columns = (
        *("model", "source", "rows", "d_model", "tokens", "tied", "params", "total", "share"),
        *memory,
    )
    row: tuple[Cell, ...] = (
        record.model,
        record.source,
        *map(_number, (record.rows, record.d_model, record.tokens)),
        record.tied,
        *map(_number, (record.params, record.total_params)),
        _share(record.share),
        *(short(count) for count in memory.values()),
    )
    return View(columns, [row], footer=tuple(f"{record.model}: {n}" for n in record.notes))


def known(record: "Known") -> View:
    """A row for each model."""
    columns = ("name", "vocab_size", "d_model", "layers", "tied", "dtype", "total_params", "tokens")
    rows: list[tuple[Cell, ...]] = [
        (m.name, m.vocab_size, m.width, m.layers, m.tied, m.dtype, m.total_params, m.tokens)
        for m in record.models
    ]
    return View(columns, rows, f"{len(rows)} models known offline", lines=record.models)


def nbytes(count: int) -> str:
    """Bytes exactly, and in the largest unit that fits."""
    return f"{count:,} bytes ({short(count)})" if count >= 1 << 10 else f"{count} bytes"


def short(count: int) -> str:
    """Bytes in the largest unit that fits."""
    for unit, name in _UNITS:
        if count >= unit:
            return f"{count / unit:.2f} {name}"
    return f"{count} B"


def _number(value: int | None) -> str | None:
    return None if value is None else f"{value:,}"


def _share(share: float | None) -> str | None:
    return None if share is None else f"{share:.1%}"


def _stored(table: "TableFacts") -> str:
    size = "" if table.stored_bytes is None else f", {nbytes(table.stored_bytes)}"
    return f"{table.tensor} in {table.file}, {table.dtype}{size}"
