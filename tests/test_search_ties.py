"""Equal rows come out by id, in memory that does not grow with their number."""

import tracemalloc

import numpy as np
import pytest
from search_tables import parts_of

from embtool.search.blocks import Pass
from embtool.search.nearest import top_k
from embtool.search.rank import rank_of


def table_with_equal_rows(rows, equal, width, seed=1):
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((rows, width)).astype(np.float32)
    ids = np.sort(rng.choice(rows, equal, replace=False))
    table[ids] = table[ids[0]]
    return table, ids


@pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean"])
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("asked", [1, 2, 20])
@pytest.mark.parametrize("step", [101, 1003])
def test_1000_equal_rows_come_out_by_id(metric, count, asked, step):
    table, ids = table_with_equal_rows(3000, 1000, 100)
    # Above all others also by the dot product.
    table[ids] *= 4
    for k in (10, 1000):
        work = Pass(parts_of(table, count, step), lambda some: table[some])
        found = top_k(work, np.repeat(table[ids[:1]], asked, axis=0), k, metric)
        for hits in found:
            assert [hit.id for hit in hits] == ids[:k].tolist()
            assert len({hit.score for hit in hits}) == 1


@pytest.mark.parametrize("asked", [1, 30])
def test_equal_rows_that_are_left_out_make_room_for_the_next(asked):
    table, ids = table_with_equal_rows(2000, 500, 32)
    work = Pass(parts_of(table, 2), lambda some: table[some])
    queries = np.repeat(table[ids[:1]], asked, axis=0)
    found = top_k(work, queries, 5, exclude=[ids[: 400 + q].tolist() for q in range(asked)])
    assert [[hit.id for hit in hits] for hits in found] == [
        ids[400 + q : 405 + q].tolist() for q in range(asked)
    ]


def memory_of_equal_rows(rows, asked):
    """Bytes at the peak, beside 8 a row for norms and masks, and the most rows read at once."""
    row = np.random.default_rng(2).standard_normal(16).astype(np.float32)
    table = np.broadcast_to(row, (rows, 16))
    read = []

    def rows_of(ids):
        read.append(len(ids))
        return table[ids]

    queries = np.array([row * (q + 1) for q in range(asked)])
    known = np.full(rows, np.linalg.norm(row), np.float32)
    tracemalloc.start()
    found = top_k(Pass(parts_of(table, 2, 512), rows_of, known), queries, 10)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [[hit.id for hit in hits] for hits in found] == [list(range(10))] * asked
    return peak - 8 * rows, max(read)


@pytest.mark.parametrize("asked", [1, 8])
def test_memory_does_not_grow_with_the_number_of_equal_rows(asked):
    few, read_few = memory_of_equal_rows(20_000, asked)
    many, read_many = memory_of_equal_rows(100_000, asked)
    # Two threads may or may not be at their largest at once.
    assert many < 2 * few
    assert read_many == read_few <= 1024


def test_the_rank_of_an_equal_row_follows_its_id():
    table, ids = table_with_equal_rows(9000, 6000, 16)
    for place in (1, 3000, 5999):
        work = Pass(parts_of(table, 2), lambda some: table[some])
        found = rank_of(work, table[ids[0]], int(ids[place]), exclude=[int(ids[0])])
        assert found is not None
        assert found.rank == place
        assert found.rows == 8999
