"""`diff`: which rows two tables share, which moved, and how."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from embtool.align import (
    REPLACED,
    Comparison,
    Pair,
    compare,
    explanation,
    paired,
    roundings,
)
from embtool.model import Model
from embtool.queries.alignment import Alignment, align
from embtool.queries.records import Entry
from embtool.queries.rows import Ids, entries, ids_record
from embtool.search.blocks import Mask
from embtool.search.threads import threads
from embtool.space import F64
from embtool.table import Table
from embtool.vocab import Vocabulary

# Of the ids that both vocabularies have, this part must be spelled alike in one tokenizer.
_SAME = 0.9
_ONE_HASH = "it is one file, or two of one hash, so that no row had to be read"


@dataclass(frozen=True, slots=True)
class ChangedRow:
    """A row that differs by more than rounding.

    kind: moved, or replaced where the cosine of the new row with the old is below 0.5. length:
    that of the change over that of the old row. None where a row is zero or not finite.
    """

    rank: int
    id: int
    token: str | None
    raw: str | None
    kind: Literal["moved", "replaced"]
    cosine: float | None
    length: float | None


@dataclass(frozen=True, slots=True)
class Diff:
    """Two tables of one tokenizer, row by row.

    compared: the rows that both have. equal: to the bit; rounded: differing by a change of
    precision alone, which `rounding` names; moved and replaced: the others (see `ChangedRow`).
    median_cosine and median_length: of the moved rows. added, removed: rows past the end of the
    other table. renamed: ids whose token is not the same in both vocabularies. changed: moved and
    replaced rows, the largest change first. summary: what that looks like, in words.
    """

    model_a: str
    model_b: str
    table_a: str
    table_b: str
    dtype_a: str
    dtype_b: str
    rows_a: int
    rows_b: int
    d_model: int
    compared: int
    equal: int
    rounded: int
    rounding: str | None
    moved: int
    replaced: int
    median_cosine: float | None
    median_length: float | None
    added: tuple[Entry, ...]
    removed: tuple[Entry, ...]
    renamed: Ids
    changed: tuple[ChangedRow, ...]
    summary: str
    notes: tuple[str, ...]


def diff(
    model_a: Model, model_b: Model, table_a: str = "input", table_b: str = "input", k: int = 10
) -> Diff | Alignment:
    """Compare two models' tables, or two tables of one model; `k` rows are listed.

    Rows are compared by id where the vocabularies spell nine tenths of their common ids alike (or
    one is not known) and the widths are equal; else the tables are aligned on the tokens of equal
    text.

    Raises:
        TokenError: the tables share no tokens and are not equally wide.
    """
    one, other = model_a.table(table_a), model_b.table(table_b)
    if model_a is not model_b:
        renamed, alike = _renamed(model_a.vocabulary, model_b.vocabulary)
    else:
        renamed, alike = (), True
    if not alike or one.shape[1] != other.shape[1]:
        return align(model_a, model_b, one, other, k)
    return _by_id(model_a, model_b, one, other, renamed, k)


def _renamed(one: Vocabulary, other: Vocabulary) -> tuple[Sequence[int], bool]:
    """The ids that stand for different tokens, and whether it is one tokenizer all the same."""
    if "none" in (one.kind, other.kind):
        return (), True
    pairs = zip(one.displayed(), other.displayed(), strict=False)
    different = [row for row, (a, b) in enumerate(pairs) if a != b]
    common = min(one.size, other.size)
    return different, common - len(different) >= _SAME * common


def _by_id(
    model_a: Model, model_b: Model, one: Table, other: Table, renamed: Sequence[int], k: int
) -> Diff:
    rows = min(one.shape[0], other.shape[0])
    tried = roundings(one.dtype, other.dtype)
    settled = _is_one_file(one, other)
    found = _all_equal(rows) if settled else compare(_pairs(one, other, rows), rows, tried)
    notes = (_ONE_HASH,) if settled and model_a is not model_b else ()
    place = explanation(found, tried)
    rounded = np.zeros(rows, bool) if place is None else found.rounded[place]
    changed = ~found.equal & ~rounded
    replaced = changed & ~(found.cosine >= REPLACED)
    moved = changed & ~replaced
    counts = (int(found.equal.sum()), int(rounded.sum()), int(moved.sum()), int(replaced.sum()))
    names = (model_a.vocabulary, model_b.vocabulary)
    added = entries(names[1], range(rows, other.shape[0]))
    removed = entries(names[0], range(rows, one.shape[0]))
    rounding = None if place is None else tried[place].name
    median_length = _median(found.change[moved])
    return Diff(
        *(model_a.ref, model_b.ref, one.tensor, other.tensor, one.dtype, other.dtype),
        *(one.shape[0], other.shape[0], one.shape[1], rows),
        equal=counts[0],
        rounded=counts[1],
        rounding=rounding,
        moved=counts[2],
        replaced=counts[3],
        median_cosine=_median(found.cosine[moved]),
        median_length=median_length,
        added=added,
        removed=removed,
        renamed=ids_record(renamed),
        changed=_changed(found, changed, replaced, names, k),
        summary=_summary(counts, rounding, median_length, len(added), len(removed)),
        notes=(*notes, *_tie(model_a, model_b, one, other, rows - counts[0])),
    )


def _is_one_file(one: Table, other: Table) -> bool:
    """Whether both are the same tensor of files with one hash."""
    alike = (one.tensor, one.dtype, one.shape) == (other.tensor, other.dtype, other.shape)
    return alike and one.key == other.key


def _all_equal(rows: int) -> Comparison:
    return Comparison(np.ones(rows, bool), (), np.full(rows, np.nan), np.full(rows, np.nan))


def _pairs(one: Table, other: Table, rows: int) -> list[Iterator[Pair]]:
    count = threads()
    bounds = [rows * part // count for part in range(count + 1)]
    return [paired(one.blocks(a, b), other.blocks(a, b)) for a, b in pairwise(bounds)]


def _median(values: F64) -> float | None:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else None


def _changed(
    found: Comparison,
    changed: Mask,
    replaced: Mask,
    names: tuple[Vocabulary, Vocabulary],
    k: int,
) -> tuple[ChangedRow, ...]:
    """Changed rows, those without a length first (a row became zero or broken, or was)."""
    ids = np.flatnonzero(changed)
    lengths = np.nan_to_num(found.change[ids], nan=np.inf)
    best = ids[np.argsort(-lengths, kind="stable")][:k].tolist()
    return tuple(
        ChangedRow(
            rank,
            row,
            names[1].token(row) or names[0].token(row),
            names[1].raw(row) or names[0].raw(row),
            "replaced" if replaced[row] else "moved",
            _known(found.cosine[row]),
            _known(found.change[row]),
        )
        for rank, row in enumerate(best, 1)
    )


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _summary(
    counts: tuple[int, int, int, int],
    rounding: str | None,
    median_length: float | None,
    added: int,
    removed: int,
) -> str:
    equal, rounded, moved, replaced = counts
    total = sum(counts)
    said: list[str] = []
    if equal == total:
        said.append("all rows that both have are equal to the bit")
    if rounded:
        said.append(f"a change of precision: {rounded:,} of {total:,} rows are {rounding}")
    if moved:
        what = "a fine-tune: " if 2 * moved >= total else ""
        by = "" if median_length is None else f", by {median_length:.2g} of their length"
        said.append(f"{what}{moved:,} of {total:,} rows moved{by} in the median")
    if replaced:
        said.append(f"{_rows(replaced)} made anew, pointing elsewhere")
    said += [f"{_rows(n)} {what}" for n, what in ((added, "added"), (removed, "removed")) if n]
    return "; ".join(said)


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"


def _tie(
    model_a: Model, model_b: Model, one: Table, other: Table, differing: int
) -> tuple[str, ...]:
    """What there is to say where the tables are one model's two."""
    if model_a is not model_b:
        return ()
    if one.tensor == other.tensor:
        return (f"one table is stored, {one.tensor}, and serves as both",)
    claim = None if model_a.config is None else model_a.config.tied
    if claim and (differing or one.shape != other.shape):
        return (f"the config says that the tables are tied, but {differing:,} rows differ",)
    return ()
