"""Facts of well-known models, known without a network: `catalogue.toml` beside this file."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.resources import files

from embtool.config import Config
from embtool.params import PRECISIONS, Params, count


@dataclass(frozen=True, slots=True)
class Entry:
    """One model's facts; what is not known is None.

    `rows` are the table's where they differ from `vocab_size`, `width` is that of a row and
    `hidden_size` the model's where it differs. `tokens` are the distinct ids of the tokenizer,
    `dtype` is spelled as safetensors does, `source` says where the facts are from and `date` when
    they were taken. `alias` is an old name without an owner.
    """

    name: str
    vocab_size: int
    width: int
    source: str
    date: date
    alias: str | None = None
    model_type: str | None = None
    rows: int | None = None
    hidden_size: int | None = None
    layers: int | None = None
    tied: bool | None = None
    dtype: str | None = None
    total_params: int | None = None
    tokens: int | None = None


@cache
def load() -> tuple[Entry, ...]:
    """All entries, in the file's order (by name)."""
    raw = files("embtool").joinpath("catalogue.toml").read_text(encoding="utf-8")
    return tuple(Entry(**facts) for facts in tomllib.loads(raw)["model"])


def lookup(name: str) -> Entry | None:
    """The entry of the repository `name` ("owner/name" or its alias, any case), or None."""
    wanted = name.lower()
    for entry in load():
        if wanted in (entry.name.lower(), (entry.alias or entry.name).lower()):
            return entry
    return None


def entry_params(name: str, entry: Entry, precisions: Sequence[str] = PRECISIONS) -> Params:
    """The record of a model by its entry (`source` is "catalogue"); `name` is as typed."""
    config = Config(
        "the catalogue",
        model_type=entry.model_type,
        vocab_size=entry.vocab_size,
        rows=entry.rows,
        hidden_size=entry.hidden_size or entry.width,
        table_width=entry.width,
        num_layers=entry.layers,
        tied=entry.tied,
        tied_from="the catalogue",
        dtype=entry.dtype,
    )
    return count(
        name,
        "catalogue",
        config,
        (),
        tokens=entry.tokens,
        total_params=entry.total_params,
        precisions=precisions,
        notes=(f"as of {entry.date}: {entry.source}",),
    )
