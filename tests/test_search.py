"""top_k against a float64 scan of all rows: any metric, blocks, threads and number of queries."""

import numpy as np
import pytest
from search_tables import awkward_table, best_of, parts_of, scores_of

from embtool.search.blocks import Pass, block_rows, norms, row_norms
from embtool.search.nearest import Hit, top_k
from embtool.space import Space

TABLE, EQUAL = awkward_table()
METRICS = ["cosine", "dot", "euclidean"]


def search(queries, k, metric="cosine", exclude=(), *, count=1, step=64, table=TABLE, **given):
    work = Pass(parts_of(table, count, step), lambda ids: table[ids], **given)
    return top_k(work, queries, k, metric, exclude)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("step", [1, 7, 64, 5000])
@pytest.mark.parametrize("asked", [1, 3, 40])
def test_the_k_nearest_are_those_of_a_float64_scan(metric, count, step, asked):
    rng = np.random.default_rng(asked)
    ids = rng.choice(np.arange(10, len(TABLE)), asked, replace=False)
    exclude = [rng.choice(len(TABLE), rng.integers(0, 4)).tolist() for _ in ids]
    found = search(TABLE[ids], 10, metric, exclude, count=count, step=step)
    for row, left_out, hits in zip(ids, exclude, found, strict=True):
        scores = scores_of(TABLE, TABLE[row], metric)
        assert [hit.id for hit in hits] == best_of(scores, 10, left_out)
        shown = np.abs(scores) if metric == "euclidean" else scores
        np.testing.assert_allclose(
            [hit.score for hit in hits], shown[[hit.id for hit in hits]], rtol=1e-12, atol=1e-12
        )


@pytest.mark.parametrize("metric", METRICS)
def test_the_answer_is_the_same_to_the_last_bit_however_it_is_computed(metric):
    queries = TABLE[10:60]
    together = search(queries, 30, metric)
    assert together == search(queries, 30, metric, count=2, step=13)
    known = norms(parts_of(TABLE, 2, 50))
    assert together == search(queries, 30, metric, count=3, norms=known)
    assert together == [search(query[None], 30, metric, count=2)[0] for query in queries]
    assert together == search(queries.astype(np.float64), 30, metric)


@pytest.mark.parametrize("k", [1, 199, 200, 205, 690, 10**9])
def test_k_up_to_all_rows_and_beyond(k):
    query = TABLE[EQUAL[:1]]
    (hits,) = search(query, k, count=2)
    assert [hit.id for hit in hits] == best_of(scores_of(TABLE, query[0]), k)
    assert len(hits) == min(k, len(TABLE) - 4)


def test_only_allowed_rows_answer():
    allowed = np.zeros(len(TABLE), bool)
    allowed[[3, 4, 11, 12, 13, 600]] = True
    for queries in (TABLE[10:11], TABLE[10:15]):
        found = search(queries, 5, allowed=allowed, count=2)
        for query, hits in zip(queries, found, strict=True):
            ids = best_of(scores_of(TABLE, query), 5, allowed=allowed)
            assert [hit.id for hit in hits] == ids
            assert sorted(ids) == [11, 12, 13, 600]


def test_a_pass_leaves_the_norms_it_computed():
    work = Pass(parts_of(TABLE, 2), lambda ids: TABLE[ids], allowed=np.arange(len(TABLE)) < 9)
    top_k(work, TABLE[10:11], 3)
    with np.errstate(over="ignore", invalid="ignore"):
        wide = np.sqrt(np.square(TABLE.astype(np.float64)).sum(axis=1)).astype(np.float32)
    assert work.norms.dtype == np.float32
    assert work.norms[3] == 0
    assert not np.isfinite(work.norms[[4, 6, 7]]).any()
    np.testing.assert_allclose(np.delete(work.norms, [4, 6, 7]), np.delete(wide, [4, 6, 7]), 1e-6)
    np.testing.assert_array_equal(work.norms, norms(parts_of(TABLE, 1, 9)))
    np.testing.assert_array_equal(work.norms, row_norms(TABLE))


def test_a_row_has_its_own_score_for_itself():
    assert search(TABLE[10:11], 1) == [[Hit(10, pytest.approx(1, abs=1e-15))]]
    assert search(TABLE[10:11], 1, "euclidean") == [[Hit(10, 0.0)]]


def test_rows_whose_squares_leave_float32_still_rank():
    hits = search(TABLE[[8, 9, 10, 11]], 1)
    assert [best[0].id for best in hits] == [8, 9, 10, 11]
    assert search(TABLE[10:11], 1, "dot")[0][0].id == 9 or TABLE[9] @ TABLE[10] < 0


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("asked", [1, 20])
def test_near_ties_are_settled_in_float64(metric, asked):
    rng = np.random.default_rng(5)
    table = rng.standard_normal((2000, 64)).astype(np.float32)
    table[500:1500] = table[500] * np.linspace(1, 1 + 3e-7, 1000, dtype=np.float32)[:, None]
    table[500:1500, ::7] += rng.integers(-1, 2, (1000, 10)) * np.float32(1e-6)
    queries = table[500] + rng.standard_normal((asked, 64)).astype(np.float32)
    found = search(queries, 25, metric, table=table, count=2)
    for query, hits in zip(queries, found, strict=True):
        assert [hit.id for hit in hits] == best_of(scores_of(table, query, metric), 25)


@pytest.mark.parametrize("asked", [1, 2, 9])
@pytest.mark.parametrize("metric", METRICS)
def test_in_a_space_rows_are_compared_as_it_moves_them(metric, asked):
    rng = np.random.default_rng(3)
    table = (rng.standard_normal((300, 16)) + 2).astype(np.float32)
    table[0] = 0
    table[1, 1] = np.nan
    mean = table[2:].mean(axis=0, dtype=np.float64)
    table[2] = mean
    components = np.linalg.qr(rng.standard_normal((16, 2)))[0].T
    for space in (Space(mean, components), Space(mean, components[:0]), Space(None, components)):
        moved = space.apply(table)
        queries = moved[10 : 10 + asked]
        found = search(queries, 8, metric, table=table, space=space, count=2)
        known = norms(parts_of(table), space)
        assert found == search(queries, 8, metric, table=table, space=space, norms=known)
        for query, hits in zip(queries, found, strict=True):
            scores = scores_of(moved, query, metric)
            never = [0, 1, 2] if space.mean is not None else [0, 1]
            assert [hit.id for hit in hits] == best_of(scores, 8, never)


@pytest.mark.parametrize("bad", [0, np.nan, np.inf])
def test_a_query_without_a_direction_is_refused(bad):
    queries = np.ones((2, 24))
    queries[1] = bad
    with pytest.raises(ValueError, match="zero or not finite"):
        search(queries, 1)
    with pytest.raises(ValueError, match="k 0 below 1"):
        search(queries[:1], 0)


def test_tables_and_questions_of_nothing():
    assert search(np.empty((0, 24)), 5) == []
    assert search(TABLE[10:12], 5, table=TABLE[:0]) == [[], []]
    assert search(TABLE[10:12], 5, allowed=np.zeros(len(TABLE), bool)) == [[], []]
    assert search(TABLE[10:15], 5, table=TABLE[3:5], count=2) == [[]] * 5


def test_blocks_stay_below_what_blas_gives_to_threads_of_its_own():
    assert block_rows(7168) == 64
    assert block_rows(640) == 716
    assert block_rows(10**7) == 1
