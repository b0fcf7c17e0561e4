"""Facts of well-known models, known without a network: `catalogue.toml` beside this file."""

from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True, slots=True)
class Entry:
    """One model's facts; what is not known is None.

    `width` is that of the table's rows and `hidden_size` the model's where it differs. `tokens`
    are the distinct ids of its tokenizer, `dtype` is spelled as safetensors does, `source` says
    where the facts are from, `date` when they were taken.
    """

    name: str
    vocab_size: int
    width: int
    source: str
    date: date
    hidden_size: int | None = None
    layers: int | None = None
    tied: bool | None = None
    dtype: str | None = None
    total_params: int | None = None
    tokens: int | None = None
    model_type: str | None = None


def load() -> tuple[Entry, ...]:
    """All entries, in the file's order (by name)."""
    raise NotImplementedError


def lookup(name: str) -> Entry | None:
    """The entry of the repository `name` ("owner/name", any case), or None."""
    raise NotImplementedError
