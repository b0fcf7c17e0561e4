"""Parameters and bytes of a table, from config and headers alone."""

from collections.abc import Sequence

from embtool.config import Config
from embtool.errors import FormatError
from embtool.params import notes as sentences
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

    `tables`: the stored ones, role "input" first, then "output"; empty when no checkpoint could be
    read (then from the config, with a note that the rows are not checked). `equal`: both are stored
    and their numbers are (not) the same; `sampled`: judged by a few rows only. `tokens`: the ids
    that have a row; `ids_without_row`: ids of the tokenizer at or past the rows.
    `total_params`: all numbers stored, a head that repeats the table included: it is taken off
    here. `found` tells what was passed over. `notes` come last. Raises FormatError for an unknown
    precision.
    """
    config = config or Config("")
    tied = _tied(config, len(tables), equal, found)
    shown = tuple(tables) or _claimed(config)
    distinct = _distinct(shown, tied)
    if total_params is not None and tied and len(tables) == 2:
        total_params -= tables[1].params
    subject = sentences.Subject(config, shown, bool(tables), equal, sampled, found)
    said = [
        *sentences.about_model(subject, tokens, ids_without_row),
        *sentences.about_total(config.quantization, distinct, total_params),
        *config.notes,
        *notes,
    ]
    total = total_params if total_params is None or total_params >= distinct else None
    return _record(model, source, revision, config, shown, tied, tokens, total, precisions, said)


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
    the model as it is, before tokens are added: what the new rows cost is put on top, twice where
    `tied` is False. Raises FormatError for a number that is not positive, or a total that is less
    than its tables.
    """
    for name, value in (("vocab_size", vocab_size), ("d_model", d_model), ("pad_to", pad_to)):
        if value is not None and value < 1:
            raise FormatError(f"{name} is {value}", "give a positive whole number")
    if add_tokens < 0:
        raise FormatError(f"add_tokens is {add_tokens}", "give the number of tokens to add")
    tokens = vocab_size + add_tokens
    rows = tokens + -tokens % (pad_to or 1)
    tables = _tables(rows, d_model, None, tied)
    before = len(tables) * vocab_size * d_model
    if total_params is not None:
        if total_params < before:
            raise FormatError(
                f"total_params is {total_params:,}, but the tables alone have {before:,}",
                "give the parameters of the whole model",
            )
        total_params += _distinct(tables, tied) - before
    claims = Config("", vocab_size=vocab_size, table_width=d_model)
    said = list(sentences.about_growth(vocab_size, tokens, rows, d_model, tied))
    return _record(
        None, "given", None, claims, tables, tied, tokens, total_params, precisions, said
    )


def _record(
    model: str | None,
    source: str,
    revision: str | None,
    config: Config,
    tables: tuple[TableFacts, ...],
    tied: bool | None,
    tokens: int | None,
    total_params: int | None,
    precisions: Sequence[str],
    notes: Sequence[str],
) -> Params:
    table = tables[0] if tables else None
    distinct = _distinct(tables, tied)
    return Params(
        model=model,
        revision=revision,
        source=source,
        model_type=config.model_type,
        vocab_size=config.vocab_size,
        d_model=table.d_model if table else config.table_width,
        hidden_size=config.hidden_size,
        rows=table.rows if table else None,
        tokens=tokens,
        tied=tied,
        params=table.params if table else None,
        total_params=total_params,
        share=distinct / total_params if total_params and distinct else None,
        memory=memory(table.params if table else 0, precisions) if table else {},
        tables=tables,
        notes=tuple(dict.fromkeys(notes)),
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


def _distinct(tables: Sequence[TableFacts], tied: bool | None) -> int:
    """Parameters of the tables, one that is tied counted once."""
    return sum(table.params for table in tables[: 1 if tied else 2])
