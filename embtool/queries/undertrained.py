"""`undertrained`: rows that training hardly touched, the likeliest first."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from embtool.errors import EmbtoolError, TokenError
from embtool.model import Model
from embtool.model.derived import open_space
from embtool.quant import F32
from embtool.queries.rows import Ids, ids_record, named_rows
from embtool.search.blocks import I64, Mask, finite
from embtool.search.threads import threads
from embtool.space import F64
from embtool.table import Table
from embtool.undertrained import (
    Threshold,
    agreed_direction,
    distances,
    flat,
    impossible_bytes,
    lengths,
    placeholders,
    threshold,
    threshold_alone,
)
from embtool.vocab import Vocabulary

#: auto is norm for a model with two tables and cosine for a tied one; the other where it says more.
Indicator = Literal["auto", "norm", "cosine"]
Kind = Literal["special", "partial UTF-8", "unreachable", "ordinary"]
_ROLES = {"norm": "input", "cosine": "output"}
_SAMPLES = 4
# Reference rows that are looked at together.
_STEP = 256
_NO_REFERENCES = "no row is known to be untrained"
_LEFT_IN = (
    "the first component is left in: it is the references' own direction, on which they agree less "
    "without it"
)


@dataclass(frozen=True, slots=True)
class RankedToken:
    """A token by its indicator; `rank` counts from 1 over all tokens that are no references.

    `class` is special (stands for no text), partial UTF-8 (a piece of a character), unreachable
    (its own text is not encoded back to it alone) or ordinary; None without a tokenizer.
    """

    rank: int
    id: int
    token: str | None
    raw: str | None
    value: float
    kind: Kind | None = field(metadata={"name": "class"})


@dataclass(frozen=True, slots=True)
class Undertrained:
    """Tokens with the smallest indicator first, and the rows they were compared with.

    indicator: norm, an input row's length, or cosine, an output row's distance from the mean of
    the references (see `embtool.undertrained`). A token whose value is not above `threshold` was
    hardly trained; None where the indicator does not work here, and then `notes` say why. `below`
    is how many tokens there are up to it.
    """

    model: str
    table: str
    indicator: str
    threshold: float | None
    references: Ids
    tokens: tuple[RankedToken, ...]
    below: int = field(metadata={"json": False})
    notes: tuple[str, ...] = field(metadata={"json": False})


@dataclass(frozen=True, slots=True)
class _Measure:
    indicator: str
    table: Table
    references: I64
    values: F64
    threshold: Threshold
    notes: tuple[str, ...]


def undertrained(
    model: Model,
    indicator: Indicator = "auto",
    table_name: str | None = None,
    references: Sequence[int] = (),
    k: int = 10,
) -> Undertrained:
    """Rank a model's tokens by how little they were trained; the first `k` are listed.

    table_name: another table than the indicator's own, which is the input table for norm and the
    output table for cosine. references: ids of rows that are known to be untrained; without any
    they are found: rows without a token, placeholders, bytes that UTF-8 does not use.

    Raises:
        TokenError: a reference has no row, or the cosine that was asked for has no references.
    """
    vocabulary = model.vocabulary
    best = _choose(model, indicator, table_name, references)
    rows = best.table.shape[0]
    ranked = named_rows(vocabulary, rows) if vocabulary.kind != "none" else np.ones(rows, bool)
    ranked[best.references] = False
    ranked &= ~np.isnan(best.values)
    ids = np.flatnonzero(ranked)
    ids = ids[np.argsort(best.values[ids], kind="stable")]
    limit = best.threshold.value
    reachable, unknown = _reachable(vocabulary)
    tokens = tuple(
        RankedToken(
            rank,
            token_id,
            vocabulary.token(token_id),
            vocabulary.raw(token_id),
            float(best.values[token_id]),
            _kind(vocabulary, token_id, reachable),
        )
        for rank, token_id in enumerate(ids[:k].tolist(), 1)
    )
    return Undertrained(
        model.ref,
        best.table.tensor,
        best.indicator,
        limit,
        ids_record(best.references),
        tokens,
        0 if limit is None else int((best.values[ids] <= limit).sum()),
        (*best.notes, *unknown),
    )


def _choose(
    model: Model, indicator: Indicator, table_name: str | None, given: Sequence[int]
) -> _Measure:
    """The indicator that was asked for; else the first that works here, else the first at all."""
    order: list[str] = [indicator]
    if indicator == "auto":
        order = ["cosine", "norm"] if _is_tied(model) else ["norm", "cosine"]
    tried: list[_Measure] = []
    notes: list[str] = []
    for name in order:
        table = model.table(table_name or _ROLES[name])
        references = _references(model.vocabulary, table, given)
        if name == "cosine" and not len(references):
            if indicator == name:
                raise TokenError(f"{model.ref}: {_NO_REFERENCES}", "name some with --reference IDS")
            notes.append(f"cosine cannot work here: {_NO_REFERENCES}")
            continue
        found = (_cosine if name == "cosine" else _norm)(table, references)
        notes += found.notes
        if found.threshold.value is not None:
            return replace(found, notes=tuple(notes))
        notes.append(f"{name} cannot work on {table.tensor}: {found.threshold.reason}")
        tried.append(found)
    return replace(tried[0], notes=tuple(notes))


def _norm(table: Table, references: I64) -> _Measure:
    values = lengths(table.parts(threads()), table.shape[0])
    alike = flat(values)
    notes: tuple[str, ...] = ()
    if alike is not None:
        limit = Threshold(None, alike)
    elif len(references):
        limit = threshold(values[references], np.delete(values, references))
    else:
        limit = threshold_alone(values)
        notes = (f"{_NO_REFERENCES}: the threshold is a gap between the shortest rows' norms",)
    return _Measure("norm", table, references, values, limit, notes if limit.value else ())


def _cosine(table: Table, references: I64) -> _Measure:
    def rows_of(ids: I64) -> F32:
        return table.rows(ids.tolist())

    space = open_space(table, threads(), center=True, remove=1)
    assert space is not None
    pieces = np.split(references, range(_STEP, len(references), _STEP))
    pointing = references[np.concatenate([finite(rows_of(piece)) for piece in pieces])]
    if not len(pointing):
        nothing = np.full(table.shape[0], np.nan)
        limit = Threshold(None, "every row that is known to be untrained is zero")
        return _Measure("cosine", table, references, nothing, limit, ())
    found, left_in = agreed_direction(space, pointing, rows_of)
    values = distances(table.parts(threads()), table.shape[0], found)
    limit = threshold(found.apart, np.delete(values, references))
    notes = (_LEFT_IN,) if left_in else ()
    return _Measure("cosine", table, references, values, limit, notes)


def _references(vocabulary: Vocabulary, table: Table, given: Sequence[int]) -> I64:
    """The ids of the reference rows, ascending: those that are named, else those that are found."""
    rows = table.shape[0]
    for row in given:
        if not 0 <= row < rows:
            raise TokenError(
                f"the reference {row} is out of range: {table.tensor} has {rows} rows",
                f"give ids from 0 to {rows - 1}",
            )
    if given or vocabulary.kind == "none":
        return np.unique(np.array(given, np.int64))
    named = range(min(rows, vocabulary.size))
    padding = np.flatnonzero(~named_rows(vocabulary, rows))
    reserved = placeholders(vocabulary.raw(row) for row in named)
    bare = impossible_bytes(vocabulary.text(row) for row in named)
    return np.unique(np.concatenate([padding, reserved, bare]).astype(np.int64))


def _is_tied(model: Model) -> bool:
    """Whether one table serves as both: one is stored, or two of the same values.

    Where they are far away four rows spread over them are compared.
    """
    tables = model.tables
    if tables.output in (None, tables.input) or tables.input is None:
        return True
    first, second = model.table("input"), model.table("output")
    if first.shape != second.shape:
        return False
    rows = first.shape[0]
    ids = [rows * k // _SAMPLES for k in range(_SAMPLES)]
    if not np.array_equal(first.rows(ids), second.rows(ids)):
        return False
    both = zip(first.blocks(), second.blocks(), strict=True)
    here = first.is_here and second.is_here
    return not here or all(np.array_equal(a, b) for (_, a), (_, b) in both)


def _reachable(vocabulary: Vocabulary) -> tuple[Mask | None, tuple[str, ...]]:
    """Which tokens their own text leads to, (size,); None, and why, where that is not known."""
    try:
        return vocabulary.reachable(), ()
    except EmbtoolError as error:
        return None, (f"which tokens are unreachable is not known: {error.message}",)


def _kind(vocabulary: Vocabulary, token_id: int, reachable: Mask | None) -> Kind | None:
    text = vocabulary.text(token_id)
    if text is None:
        return None
    if token_id in vocabulary.special_ids:
        return "special"
    try:
        text.decode()
    except UnicodeDecodeError:
        return "partial UTF-8"
    return "ordinary" if reachable is None or reachable[token_id] else "unreachable"
