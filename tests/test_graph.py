"""The k nearest rows of every row: exact, resumable, and what it costs."""

import csv
import json

import numpy as np
import pytest
from builders import folder_model

import embtool.graph as graph_module
from embtool.errors import SourceError, TokenError
from embtool.graph import at_once, cost, neighbors_of_rows, operations
from embtool.model import Model
from embtool.output.plain import plain
from embtool.queries.graph import COLUMNS, duration, edges, graph, graph_cost, write_graph
from embtool.table import Table


def _rows(seed, count=900, width=24):
    return np.random.default_rng(seed).standard_normal((count, width)).astype(np.float32)


def _expected(rows, k, metric):
    """Neighbours by a float64 computation of the whole, equal scores by id."""
    wide = rows.astype(np.float64)
    norms = np.linalg.norm(wide, axis=1)
    if metric == "euclidean":
        scores = -np.sqrt(((wide[:, None] - wide[None]) ** 2).sum(axis=2))
    else:
        scores = wide @ wide.T
        if metric == "cosine":
            scores = np.round(scores / norms[:, None] / norms, 12)
    np.fill_diagonal(scores, -np.inf)
    return np.argsort(-scores, axis=1, kind="stable")[:, :k]


def _graph(rows, ids, k, metric="cosine"):
    def parts():
        half = len(rows) // 2
        return [iter([(0, rows[:half])]), iter([(half, rows[half:])])]

    batches = list(neighbors_of_rows(parts, lambda ids: rows[ids], ids, k, metric))
    assert np.array_equal(np.concatenate([some for some, _ in batches]), ids)
    return [hits for _, found in batches for hits in found]


@pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean"])
def test_neighbours_of_every_row_are_exact(metric, monkeypatch):
    rows = _rows(1, 300)
    rows[17] = rows[200]
    monkeypatch.setattr(graph_module, "_FEWEST", 70)
    monkeypatch.setattr(graph_module, "_MOST", 70)
    found = _graph(rows, np.arange(300), 6, metric)
    assert [[hit.id for hit in hits] for hits in found] == _expected(rows, 6, metric).tolist()


def test_some_rows_in_their_order_and_broken_ones_have_none():
    rows = _rows(2)
    rows[5], rows[6, 2], rows[7, 0] = 0, np.nan, np.inf
    ids = np.array([899, 5, 3, 6, 7, 0])
    found = _graph(rows, ids, 4)
    assert [len(hits) for hits in found] == [4, 0, 4, 0, 0, 4]
    good = np.delete(np.arange(900), [5, 6, 7])
    for row, hits in zip(ids, found, strict=True):
        if hits:
            units = rows[good] / np.linalg.norm(rows[good], axis=1)[:, None]
            cosines = units @ rows[row] / np.linalg.norm(rows[row])
            order = good[np.argsort(-cosines)]
            assert [hit.id for hit in hits] == order[order != row][:4].tolist()


def test_more_neighbours_than_rows():
    rows = _rows(3, 5)
    assert [len(hits) for hits in _graph(rows, np.arange(5), 100)] == [4] * 5


def test_the_cost_is_counted_and_timed():
    assert operations(129280, 7168, 129280) == 239602132582400
    found = cost(1000, 16, 10, 2)
    assert found.operations == 320000
    assert 0 < found.seconds < 10
    assert [at_once(width) for width in (50, 256, 1024, 2048, 7168, 20000)] == [
        *(4096, 4096, 4096, 2048, 585, 512)
    ]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "1 s"), (59.6, "60 s"), (89, "89 s"), (90, "2 min"), (5399, "90 min"), (12600, "3.5 h")],
)
def test_durations_in_words(seconds, words):
    assert duration(seconds) == words


WORDS = [f"w{i}" for i in range(880)]


@pytest.fixture
def model(tmp_path):
    return Model.open(str(folder_model(tmp_path / "m", _rows(4), WORDS)))


def test_the_records(model):
    rows = _rows(4)
    expected = _expected(rows, 3, "cosine")
    nodes = list(graph(model, k=3))
    assert [node.id for node in nodes] == list(range(900))
    assert [[near.id for near in node.neighbors] for node in nodes] == expected.tolist()
    (node,) = graph(model, k=2, ids=[7])
    first, second = (int(i) for i in expected[7, :2])
    unit = rows.astype(np.float64) / np.linalg.norm(rows.astype(np.float64), axis=1)[:, None]
    assert plain(node) == {
        **{"id": 7, "token": "w7", "raw": "w7"},
        "neighbors": [
            {
                **{"rank": rank, "id": i, "token": model.vocabulary.token(i)},
                **{"raw": model.vocabulary.raw(i), "score": pytest.approx(unit[7] @ unit[i])},
            }
            for rank, i in ((1, first), (2, second))
        ],
    }
    assert [edge[:4] for edge in edges(node)] == [(7, "w7", 1, first), (7, "w7", 2, second)]


def test_the_cost_in_words(model):
    found = graph_cost(model, ids=range(100))
    assert (found.rows, found.d_model, found.asked, found.operations) == (900, 24, 100, 4320000)
    assert str(found).startswith("100 rows × 900 rows × 24 = 4.3e+06 operations, about ")


def test_the_file_holds_the_same_edges(model, tmp_path):
    path = tmp_path / "graph.tsv"
    seen = []
    found = write_graph(model, path, k=3, progress=lambda *counts: seen.append(counts))
    assert (found.nodes, found.resumed, found.file) == (900, 0, str(path))
    assert seen == [(0, 900), (900, 900)]
    with path.open(encoding="utf-8", newline="") as file:
        lines = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    assert tuple(lines[0]) == COLUMNS
    expected = [
        ["" if cell is None else str(cell) for cell in edge]
        for node in graph(model, k=3)
        for edge in edges(node)
    ]
    assert lines[1:] == expected
    assert {p.name for p in tmp_path.iterdir()} == {"m", "graph.tsv"}
    write_graph(model, path, k=1, ids=[3], header=False)
    assert len(path.read_text(encoding="utf-8").splitlines()) == 1


class _Stopped(Exception):
    pass


def _stop_after(count):
    def progress(done, total):
        if done >= count:
            raise _Stopped

    return progress


def test_an_interrupted_run_is_gone_on_with(model, tmp_path, monkeypatch):
    monkeypatch.setattr(graph_module, "_FEWEST", 100)
    monkeypatch.setattr(graph_module, "_MOST", 100)
    whole = tmp_path / "whole.tsv"
    write_graph(model, whole, k=4)
    path = tmp_path / "graph.tsv"
    with pytest.raises(_Stopped):
        write_graph(model, path, k=4, progress=_stop_after(300))
    part = tmp_path / "graph.tsv.part"
    assert not path.exists()
    with part.open("ab") as file:
        file.write(b"half a li")
    asked = []
    rows = Table.rows
    monkeypatch.setattr(
        Table, "rows", lambda table, ids: asked.append(len(ids)) or rows(table, ids)
    )
    seen = []
    found = write_graph(model, path, k=4, progress=lambda *counts: seen.append(counts))
    assert (found.nodes, found.resumed) == (900, 300)
    assert seen[0] == (300, 900)
    assert asked.count(100) == 6
    assert path.read_bytes() == whole.read_bytes()
    assert not part.exists()


def test_another_graph_is_not_gone_on_with(model, tmp_path, monkeypatch):
    monkeypatch.setattr(graph_module, "_FEWEST", 100)
    monkeypatch.setattr(graph_module, "_MOST", 100)
    path = tmp_path / "graph.tsv"
    with pytest.raises(_Stopped):
        write_graph(model, path, k=4, progress=_stop_after(300))
    for other in ({"k": 5}, {"k": 4, "metric": "dot"}, {"k": 4, "ids": [1, 2]}):
        with pytest.raises(SourceError, match=r"graph.tsv.part is the beginning of another graph"):
            write_graph(model, path, **other)
    (tmp_path / "graph.tsv.part.json").write_text("[1", encoding="utf-8")
    with pytest.raises(SourceError, match="another graph"):
        write_graph(model, path, k=4)
    (tmp_path / "graph.tsv.part.json").unlink()
    assert write_graph(model, path, k=4).resumed == 0


def test_the_state_says_of_what_and_how_far(model, tmp_path, monkeypatch):
    monkeypatch.setattr(graph_module, "_FEWEST", 100)
    monkeypatch.setattr(graph_module, "_MOST", 100)
    path = tmp_path / "graph.tsv"
    with pytest.raises(_Stopped):
        write_graph(model, path, k=4, progress=_stop_after(300))
    state = json.loads((tmp_path / "graph.tsv.part.json").read_text(encoding="utf-8"))
    part = (tmp_path / "graph.tsv.part").read_bytes()
    assert (state["nodes"], state["nbytes"], state["k"]) == (300, len(part), 4)
    assert part.count(b"\n") == 1 + 300 * 4


def test_what_cannot_be_done_is_said(model, tmp_path):
    with pytest.raises(TokenError, match=r"id 900 is out of range: .* has 900 rows, 0 to 899"):
        list(graph(model, ids=[3, 900]))
    with pytest.raises(SourceError, match="cannot be written: No such file"):
        write_graph(model, tmp_path / "nowhere" / "graph.tsv")


@pytest.mark.slow
def test_rows_of_wordllama(wordllama_path):
    model = Model.open(str(wordllama_path))
    ids = [0, 777, 31999]
    rows = np.concatenate([block.copy() for _, block in model.table().blocks()]).astype(np.float64)
    units = rows / np.linalg.norm(rows, axis=1)[:, None]
    for node in graph(model, ids=ids):
        cosines = units @ units[node.id]
        cosines[node.id] = -2
        best = np.argsort(-cosines)[:10]
        assert [near.id for near in node.neighbors] == best.tolist()
        assert [near.score for near in node.neighbors] == pytest.approx(cosines[best].tolist())
