"""`graph`: the nearest rows of every row, to a file that an interrupted run goes on with."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Self

import numpy as np

from embtool.errors import SourceError, TokenError
from embtool.graph import cost, neighbors_of_rows
from embtool.model import Model
from embtool.model.derived import load_norms, save_norms
from embtool.quant import F32
from embtool.queries.ranked import Neighbor
from embtool.search.blocks import I64, norms
from embtool.search.nearest import Hit, Metric
from embtool.search.threads import threads
from embtool.table import Table
from embtool.vocab import Vocabulary
from embtool.writers.edges import to_parquet

#: (rows that are done, rows in all).
Progress = Callable[[int, int], None]

#: What a line of TSV holds; one line an edge.
COLUMNS = ("id", "token", "rank", "neighbor", "neighbor_token", "score")


@dataclass(frozen=True, slots=True)
class Node:
    """A row and its nearest rows; none where it is zero or not finite."""

    id: int
    token: str | None
    raw: str | None
    neighbors: tuple[Neighbor, ...]


@dataclass(frozen=True, slots=True)
class GraphCost:
    """What a graph takes before it starts: operations are additions and multiplications."""

    model: str
    table: str
    rows: int
    d_model: int
    asked: int
    operations: int
    seconds: float

    def __str__(self) -> str:
        return (
            f"{self.asked:,} rows × {self.rows:,} rows × {self.d_model:,} = "
            f"{self.operations:.2g} operations, about {duration(self.seconds)} on this machine"
        )


@dataclass(frozen=True, slots=True)
class Written:
    """A graph in a file: `resumed` rows of it were there from an earlier run."""

    model: str
    table: str
    metric: str
    k: int
    file: str
    nodes: int
    resumed: int


def duration(seconds: float) -> str:
    """Seconds as a person says them: 40 s, 12 min, 3.5 h."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def graph_cost(
    model: Model, table_name: str = "input", ids: Sequence[int] | None = None
) -> GraphCost:
    """What `graph` would take, measured on a product of the same width."""
    table = model.table(table_name)
    rows, d_model = table.shape
    asked = len(_chosen(table, ids))
    found = cost(rows, d_model, asked, threads())
    return GraphCost(model.ref, table.tensor, rows, d_model, asked, found.operations, found.seconds)


def graph(
    model: Model,
    table_name: str = "input",
    k: int = 10,
    metric: Metric = "cosine",
    ids: Sequence[int] | None = None,
    progress: Progress = lambda done, total: None,
) -> Iterator[Node]:
    """The k nearest rows of each row, in the order of `ids`; None for all rows.

    Raises:
        TokenError: an id has no row.
    """
    table = model.table(table_name)
    asked = _chosen(table, ids)
    for batch in _batches(table, asked, k, metric, progress, 0):
        yield from _nodes(model.vocabulary, *batch)


def write_graph(
    model: Model,
    path: Path,
    table_name: str = "input",
    k: int = 10,
    metric: Metric = "cosine",
    ids: Sequence[int] | None = None,
    progress: Progress = lambda done, total: None,
    *,
    header: bool = True,
) -> Written:
    """Write `graph` as TSV or Parquet, by PATH's ending, a line an edge.

    What an interrupted run wrote is kept and gone on with.

    Until it is whole, the file is PATH.part, beside PATH.part.json, which says how far it is and
    of which table it is.

    Raises:
        TokenError: an id has no row.
        SourceError: the file cannot be written, or PATH.part belongs to another graph.
    """
    table = model.table(table_name)
    asked = _chosen(table, ids)
    what = {"key": table.key, "table": table.tensor, "k": k, "metric": metric, "header": header}
    what["ids"] = sha256(asked.tobytes()).hexdigest()
    try:
        with _Part(path, what) as part:
            resumed = part.nodes
            if not resumed and header:
                part.add("\t".join(COLUMNS) + "\n", 0)
            names = _names(model.vocabulary, table.shape[0])
            for some, hits in _batches(table, asked[resumed:], k, metric, progress, resumed):
                part.add("".join(_lines(names, some, hits)), len(some))
            part.finish(to_parquet if path.suffix == ".parquet" else None)
    except OSError as error:
        raise SourceError(
            f"{path} cannot be written: {error.strerror or error}",
            "name a file in a folder that exists and is writable; it goes on where it was",
        ) from error
    return Written(model.ref, table.tensor, metric, k, str(path), len(asked), resumed)


def _chosen(table: Table, ids: Sequence[int] | None) -> I64:
    if ids is None:
        return np.arange(table.shape[0])
    for row in ids:
        if not 0 <= row < table.shape[0]:
            raise TokenError(
                f"id {row} is out of range: {table.tensor} has {table.shape[0]} rows, "
                f"0 to {table.shape[0] - 1}",
                "give an id that has a row",
            )
    return np.array(ids, np.int64)


def _batches(
    table: Table, asked: I64, k: int, metric: Metric, progress: Progress, done: int
) -> Iterator[tuple[I64, list[list[Hit]]]]:
    total = done + len(asked)
    progress(done, total)
    known = load_norms(table)
    if known is None:
        known = norms(table.parts(threads()))
        save_norms(table, known)

    def rows_of(ids: I64) -> F32:
        return table.rows(ids.tolist())

    def parts() -> list[Iterator[tuple[int, F32]]]:
        return table.parts(threads())

    for some, hits in neighbors_of_rows(parts, rows_of, asked, k, metric, known):
        yield some, hits
        done += len(some)
        progress(done, total)


def _nodes(vocabulary: Vocabulary, ids: I64, found: Sequence[Sequence[Hit]]) -> Iterator[Node]:
    token, raw = vocabulary.token, vocabulary.raw
    for row, hits in zip(ids.tolist(), found, strict=True):
        near = tuple(
            Neighbor(rank, hit.id, token(hit.id), raw(hit.id), hit.score)
            for rank, hit in enumerate(hits, 1)
        )
        yield Node(row, token(row), raw(row), near)


def edges(node: Node) -> list[tuple[int | float | str | None, ...]]:
    """A node as rows of `COLUMNS`."""
    return [
        (node.id, node.token, near.rank, near.id, near.token, near.score) for near in node.neighbors
    ]


def _names(vocabulary: Vocabulary, rows: int) -> list[str]:
    """Each row's token, "" where it has none."""
    known = vocabulary.displayed()[:rows]
    return known + [""] * (rows - len(known))


def _lines(names: Sequence[str], ids: I64, found: Sequence[Sequence[Hit]]) -> Iterator[str]:
    """`edges` as TSV, without making a record of each: that took a fifth of the whole."""
    for row, hits in zip(ids.tolist(), found, strict=True):
        start = f"{row}\t{names[row]}\t"
        for rank, (near, score) in enumerate(hits, 1):
            yield f"{start}{rank}\t{near}\t{names[near]}\t{score}\n"


class _Part:
    """A file that grows by whole batches; what follows the last whole one is cut off."""

    def __init__(self, path: Path, what: dict[str, object]) -> None:
        self._path = path
        self._part = path.with_name(path.name + ".part")
        self._state = path.with_name(path.name + ".part.json")
        self._what = what
        self.nodes = self._nbytes = 0
        if self._part.exists() and self._state.exists():
            self._resume()
        self._file = self._part.open("r+b" if self.nodes else "wb")
        self._file.truncate(self._nbytes)
        self._file.seek(self._nbytes)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _resume(self) -> None:
        try:
            state = dict(json.loads(self._state.read_text(encoding="utf-8")))
        except (ValueError, TypeError):
            state = {}
        nodes, nbytes = state.get("nodes"), state.get("nbytes")
        fits = {name: state.get(name) for name in self._what} == self._what
        if not fits or not isinstance(nodes, int) or not isinstance(nbytes, int):
            raise SourceError(
                f"{self._part} is the beginning of another graph",
                "remove it, or name another file with --output",
            )
        if nodes > 0 and 0 < nbytes <= self._part.stat().st_size:
            self.nodes, self._nbytes = nodes, nbytes

    def add(self, text: str, nodes: int) -> None:
        """Write a batch, and then that it is there."""
        raw = text.encode()
        self._file.write(raw)
        self._file.flush()
        self.nodes += nodes
        self._nbytes += len(raw)
        state = self._what | {"nodes": self.nodes, "nbytes": self._nbytes}
        fresh = self._state.with_name(self._state.name + ".new")
        fresh.write_text(json.dumps(state), encoding="utf-8")
        fresh.replace(self._state)

    def finish(self, convert: Callable[[Path, Path], None] | None) -> None:
        """Give the whole file its name, converted from TSV if it must be."""
        self._file.close()
        if convert is not None:
            converted = self._part.with_name(self._part.name + ".new")
            convert(self._part, converted)
            converted.replace(self._part)
        self._part.replace(self._path)
        self._state.unlink(missing_ok=True)
