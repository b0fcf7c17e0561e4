"""What `params` answers with."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TableFacts:
    """One stored (or claimed: `tensor` and `file` None) table.

    `params` = rows * d_model, also where the numbers are packed; less only where tokens share rows.
    `stored_bytes` are the bytes in the file, scales included.
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
    """The JSON record of `params`; the fields are those of the output, in order.

    `vocab_size` and `hidden_size` are the config's claims, `rows` and `d_model` the table's,
    `tokens` the ids that have a row, `params` and `memory` (bytes) the input table's. `share` is
    the distinct tables' parameters over `total_params`.
    """

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
