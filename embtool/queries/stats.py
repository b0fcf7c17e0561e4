"""`stats`: what a whole table is like."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embtool.model import Model
from embtool.queries.records import Entry
from embtool.queries.rows import Ids, entries, ids_record, named_rows, scripts
from embtool.search.blocks import I64
from embtool.search.threads import threads
from embtool.space import F64
from embtool.stats.duplicates import TOLERANCE, duplicates, near_duplicates
from embtool.stats.spectrum import spectrum
from embtool.stats.survey import Survey, mean_cosine, survey
from embtool.table import Table
from embtool.vocab import Vocabulary

_BINS = 20


@dataclass(frozen=True, slots=True)
class NormedToken:
    """A row and its length."""

    id: int
    token: str | None
    raw: str | None
    norm: float


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many values lie between each edge and the next; the last edge belongs to the last bin."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Norms:
    """The lengths of the finite rows; p1 and p99 are percentiles. None without such rows."""

    min: float | None
    p1: float | None
    median: float | None
    p99: float | None
    max: float | None
    histogram: Histogram
    smallest: tuple[NormedToken, ...]
    largest: tuple[NormedToken, ...]


@dataclass(frozen=True, slots=True)
class Anisotropy:
    """How far the rows point one way.

    mean_norm: the length of the mean of the finite rows. mean_cosine: over all pairs of different
    rows that have a direction, of which there are `pairs`; computed, not sampled.
    """

    mean_norm: float | None
    mean_cosine: float | None
    pairs: int


@dataclass(frozen=True, slots=True)
class Eigenvalues:
    """The largest eigenvalues of the mean of row^T row (about zero), and their parts of the sum.

    total: the sum of all of them, which is the mean squared norm. effective_rank and
    participation_ratio: see `embtool.stats.spectrum`.
    """

    largest: tuple[float, ...]
    shares: tuple[float, ...]
    total: float | None
    effective_rank: float | None
    participation_ratio: float | None


@dataclass(frozen=True, slots=True)
class Near:
    """Rows whose difference is at most `tolerance` of the longer one's length, in groups.

    groups is None where they were not looked for, because too many rows lie that near together.
    """

    tolerance: float
    groups: tuple[tuple[Entry, ...], ...] | None


@dataclass(frozen=True, slots=True)
class ScriptStats:
    """The rows whose tokens are written in one script."""

    script: str
    rows: int
    mean_norm: float | None
    mean_cosine: float | None


@dataclass(frozen=True, slots=True)
class Stats:
    """A table's statistics.

    Without a tokenizer, which rows have no token is not known, and there are no scripts.
    """

    model: str
    table: str
    dtype: str
    rows: int
    d_model: int
    norms: Norms
    anisotropy: Anisotropy
    eigenvalues: Eigenvalues
    zero: Ids
    nan: Ids
    infinite: Ids
    duplicates: tuple[tuple[Entry, ...], ...]
    near_duplicates: Near
    rows_without_token: Ids | None
    tokens_without_row: Ids | None
    scripts: tuple[ScriptStats, ...]


def stats(model: Model, table_name: str = "input", k: int = 10) -> Stats:
    """One pass over a table; the `k` shortest and longest rows and largest eigenvalues are listed.

    Rows that may be equal are read once more to be compared.
    """
    table, vocabulary = model.table(table_name), model.vocabulary
    known = vocabulary.kind != "none"
    rows = table.shape[0]
    names = scripts(vocabulary, rows) if known else ["no token"] * rows
    distinct, labels = np.unique(np.array(names, np.str_), return_inverse=True)
    parts = table.parts(threads())
    found = survey(parts, table.shape, labels.astype(np.int64), max(1, len(distinct)))
    equal, near = _alike(found, table)
    named = named_rows(vocabulary, rows)
    beyond = (row for row in range(rows, vocabulary.size) if vocabulary.raw(row) is not None)
    return Stats(
        model=model.ref,
        table=table.tensor,
        dtype=table.dtype,
        rows=rows,
        d_model=table.shape[1],
        norms=_norms(found, vocabulary, k),
        anisotropy=_anisotropy(found),
        eigenvalues=_eigenvalues(found, k),
        zero=ids_record(np.flatnonzero(found.norms == 0)),
        nan=ids_record(np.flatnonzero(np.isnan(found.norms))),
        infinite=ids_record(np.flatnonzero(np.isinf(found.norms))),
        duplicates=tuple(entries(vocabulary, group) for group in equal),
        near_duplicates=Near(
            TOLERANCE, None if near is None else tuple(entries(vocabulary, g) for g in near)
        ),
        rows_without_token=ids_record(np.flatnonzero(~named)) if known else None,
        tokens_without_row=ids_record(beyond) if known else None,
        scripts=_by_script(found, distinct.tolist()) if known else (),
    )


def _alike(found: Survey, table: Table) -> tuple[list[list[int]], list[list[int]] | None]:
    def rows_of(ids: I64) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
        return table.rows(ids.tolist())

    equal = duplicates(found, rows_of)
    return equal, near_duplicates(found, rows_of, equal)


def _norms(found: Survey, vocabulary: Vocabulary, k: int) -> Norms:
    ids = np.flatnonzero(found.finite)
    values = found.norms[ids]
    order = np.argsort(values, kind="stable")
    points: list[float | None] = [None] * 5
    histogram = Histogram((), ())
    if len(values):
        points = np.percentile(values, [0, 1, 50, 99, 100]).tolist()
        counts, edges = np.histogram(values, _BINS)
        histogram = Histogram(tuple(edges.tolist()), tuple(counts.tolist()))

    def tokens(chosen: I64) -> tuple[NormedToken, ...]:
        return tuple(
            NormedToken(entry.id, entry.token, entry.raw, float(found.norms[entry.id]))
            for entry in entries(vocabulary, ids[chosen].tolist())
        )

    # Of equal norms the smaller id comes first at both ends.
    longest = np.argsort(-values, kind="stable")[:k]
    least, p1, median, p99, most = points
    ends = tokens(order[:k]), tokens(longest)
    return Norms(least, p1, median, p99, most, histogram, *ends)


def _anisotropy(found: Survey) -> Anisotropy:
    mean, count = found.mean, int(found.directed.sum())
    cosine = mean_cosine(found.directions.sum(axis=0), count)
    norm = None if mean is None else float(np.sqrt(mean @ mean))
    return Anisotropy(norm, cosine, count * (count - 1) // 2)


def _eigenvalues(found: Survey, k: int) -> Eigenvalues:
    moment = found.second_moment
    if moment is None:
        return Eigenvalues((), (), None, None, None)
    whole = spectrum(moment)
    largest = whole.eigenvalues[:k]
    return Eigenvalues(
        tuple(largest.tolist()),
        tuple(whole.shares(k)),
        float(whole.eigenvalues.sum()),
        whole.effective_rank,
        whole.participation_ratio,
    )


def _by_script(found: Survey, names: Sequence[str]) -> tuple[ScriptStats, ...]:
    """Scripts by how many rows they have, the most first, then by name."""

    def of(label: int, name: str) -> ScriptStats:
        mine = found.labels == label
        norms: F64 = found.norms[mine & found.finite]
        directed = int((mine & found.directed).sum())
        mean = float(norms.mean()) if len(norms) else None
        cosine = mean_cosine(found.directions[label], directed)
        return ScriptStats(name, int(mine.sum()), mean, cosine)

    found_scripts = [of(label, name) for label, name in enumerate(names)]
    return tuple(sorted(found_scripts, key=lambda each: (-each.rows, each.script)))
