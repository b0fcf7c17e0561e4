"""Parameters and bytes of a table, from config and headers alone."""

from collections.abc import Sequence
from dataclasses import replace

from embtool.config import Config
from embtool.errors import FormatError, one_line
from embtool.params.notes import Subject, about_growth, about_model
from embtool.params.records import Params, TableFacts
from embtool.params.totals import index_total, stored_total
from embtool.tensors import Tables

__all__ = [
    "PRECISIONS",
    "Params",
    "TableFacts",
    "count",
    "hypothetical",
    "index_total",
    "memory",
    "stored_total",
]

BITS = {"fp32": 32, "bf16": 16, "fp8": 8, "int8": 8, "int4": 4}
PRECISIONS = tuple(BITS)


def count(
    model: str,
    source: str,
    config: Config | None,
    tables: Sequence[TableFacts],
    *,
    revision: str | None = None,
    tokens: int | None = None,
    ids_without_row: int = 0,
    equal: bool | None = None,
    sampled: bool = False,
    total_params: int | None = None,
    found: Tables | None = None,
    precisions: Sequence[str] = PRECISIONS,
    notes: Sequence[str] = (),
) -> Params:
    """The record of one model.

    `tables`: those stored, "input" first, then "output"; empty when no checkpoint could be read
    (then from the config, and a note says so). `equal`: both are stored and hold the same numbers
    or not; `sampled`: judged by a few rows. `tokens`: the ids that have a row, `ids_without_row`:
    the tokenizer's ids past the rows. `total_params`: all numbers stored, a head that repeats the
    table included: it is taken off here. `found` tells what was passed over.

    Raises:
        FormatError: an unknown precision.
    """
    config = config or Config("")
    tied = _tied(config, len(tables), equal, found)
    if total_params is not None and tied and len(tables) == 2:
        total_params -= tables[1].params
    shown = tuple(tables) or _claimed(config)
    subject = Subject(
        config, shown, tied, tokens, ids_without_row, total_params, bool(tables), sampled, found
    )
    said = (*about_model(subject), *config.notes, *notes)
    record = _record(subject, precisions, said)
    return replace(record, model=model, source=source, revision=revision)


def hypothetical(
    vocab_size: int,
    d_model: int,
    *,
    total_params: int | None = None,
    add_tokens: int = 0,
    pad_to: int | None = None,
    tied: bool | None = None,
    precisions: Sequence[str] = PRECISIONS,
) -> Params:
    """The record of a table that exists nowhere yet (`source` is "given").

    rows = vocab_size + add_tokens, rounded up to a multiple of `pad_to`. `total_params` is that of
    the model before tokens are added: what the new rows cost is put on top, twice where `tied` is
    False.

    Raises:
        FormatError: a number that is not positive, or a total that is less than its tables.
    """
    pad_to = 1 if pad_to is None else pad_to
    _check_numbers(1, vocab_size=vocab_size, d_model=d_model, pad_to=pad_to)
    _check_numbers(0, add_tokens=add_tokens)
    tokens = vocab_size + add_tokens
    rows = tokens + -tokens % pad_to
    tables = _tables(rows, d_model, None, tied)
    if total_params is not None:
        before = len(tables) * vocab_size * d_model
        if total_params < before:
            raise FormatError(
                f"total_params is {total_params:,}, but the tables alone have {before:,}",
                "give the parameters of the whole model",
            )
        total_params += len(tables) * rows * d_model - before
    config = Config("", vocab_size=vocab_size, table_width=d_model)
    subject = Subject(config, tables, tied, tokens, 0, total_params)
    return _record(subject, precisions, tuple(about_growth(subject)))


def _check_numbers(smallest: int, **numbers: int) -> None:
    for name, value in numbers.items():
        if value < smallest:
            raise FormatError(f"{name} is {value}", f"give a whole number from {smallest} on")


def _record(subject: Subject, precisions: Sequence[str], notes: Sequence[str]) -> Params:
    config, table, total = subject.config, subject.table, subject.believed_total
    return Params(
        model=None,
        revision=None,
        source="given",
        model_type=config.model_type,
        vocab_size=config.vocab_size,
        d_model=table.d_model if table else config.table_width,
        hidden_size=config.hidden_size,
        rows=table.rows if table else None,
        tokens=subject.tokens,
        tied=subject.tied,
        params=table.params if table else None,
        total_params=total,
        share=subject.distinct / total if total and table else None,
        memory=memory(table.params if table else 0, precisions) if table else {},
        tables=tuple(subject.tables),
        notes=tuple(dict.fromkeys(map(one_line, notes))),
    )


def memory(params: int, precisions: Sequence[str] = PRECISIONS) -> dict[str, int]:
    """Bytes that `params` numbers take at each precision; scales and such are not included.

    Two int4 numbers share a byte, a last one has its own. Raises FormatError for a name that is
    none of PRECISIONS.
    """
    for name in precisions:
        if name not in BITS:
            raise FormatError(f"unknown precision {name}", f"choose from {', '.join(BITS)}")
    return {name: (params * BITS[name] + 7) // 8 for name in precisions}


def _tables(
    rows: int, d_model: int, dtype: str | None, tied: bool | None
) -> tuple[TableFacts, ...]:
    """The tables of these sizes that no file is known for, the output's only where untied."""
    roles = ("input", "output") if tied is False else ("input",)
    params = rows * d_model
    return tuple(TableFacts(role, None, None, dtype, rows, d_model, params, None) for role in roles)


def _claimed(config: Config) -> tuple[TableFacts, ...]:
    """The tables that a config promises; none where it lacks a size."""
    rows = config.rows or config.vocab_size
    if rows is None or config.table_width is None:
        return ()
    return _tables(rows, config.table_width, config.dtype, config.tied)


def _tied(config: Config, stored: int, equal: bool | None, found: Tables | None) -> bool | None:
    """Tensors decide where they can: equal or not, and a head that stands for both."""
    if stored == 2:
        return equal
    if found is not None and found.only_head:
        return True
    return None if stored and config.tied is False else config.tied
