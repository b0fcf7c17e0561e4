"""Parameters and bytes of a table, from config and headers alone."""

from collections.abc import Sequence
from dataclasses import dataclass

from embtool.config import Config

PRECISIONS = ("fp32", "bf16", "fp8", "int8", "int4")


@dataclass(frozen=True, slots=True)
class TableFacts:
    """One stored (or claimed: `tensor` and `file` None) table.

    `params` = rows * d_model, also where the numbers are packed; `stored_bytes` are the bytes in
    the file, scales included.
    """

    role: str
    tensor: str | None
    file: str | None
    dtype: str | None
    rows: int
    d_model: int
    params: int
    stored_bytes: int | None


@dataclass(frozen=True, slots=True)
class Params:
    """The JSON record of `params`; the fields are those of the output, in order."""

    model: str | None
    revision: str | None
    source: str
    model_type: str | None
    vocab_size: int | None
    d_model: int | None
    hidden_size: int | None
    rows: int | None
    tokens: int | None
    tied: bool | None
    params: int | None
    total_params: int | None
    share: float | None
    memory: dict[str, int]
    tables: tuple[TableFacts, ...]
    notes: tuple[str, ...]


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
    precisions: Sequence[str] = PRECISIONS,
    notes: Sequence[str] = (),
) -> Params:
    """The record of one model.

    `tables`: the stored ones, role "input" first, then "output"; empty when no checkpoint could be
    read (then from the config, with a note that the rows are not checked). `equal`: both are stored
    and their numbers are (not) the same; `sampled`: judged by a few rows only. `tokens`: the ids
    that have a row; `ids_without_row`: ids of the tokenizer at or past the rows.
    `total_params`: all numbers stored, a head that repeats the table included: it is taken off
    here. `notes` come last. Raises FormatError for an unknown precision.
    """
    raise NotImplementedError


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

    rows = vocab_size + add_tokens, rounded up to a multiple of `pad_to`. Raises FormatError for a
    number that is not positive.
    """
    raise NotImplementedError
