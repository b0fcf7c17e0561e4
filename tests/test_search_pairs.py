"""Random pairs, rank correlation, one-hot products and dimensions, against numpy and scipy."""

import numpy as np
import pytest
from scipy.stats import spearmanr
from search_tables import awkward_table, parts_of

from embtool.search.blocks import Pass
from embtool.search.ends import dimension_ends
from embtool.search.one_hot import one_hot_product
from embtool.search.pairs import pair_cosines, random_pairs, random_rows, rank_correlation


def work_on(table, count=1, step=64, **more):
    return Pass(parts_of(table, count, step), lambda ids: table[ids], **more)


def test_pairs_are_of_two_different_candidates_and_each_as_likely():
    candidates = np.array([3, 5, 8, 13])
    first, second = random_pairs(candidates, 120_000, seed=1)
    assert (first != second).all()
    pairs, counts = np.unique(np.stack([first, second]), axis=1, return_counts=True)
    assert pairs.shape == (2, 12)
    assert set(pairs.ravel().tolist()) == {3, 5, 8, 13}
    assert np.abs(counts - 10_000).max() < 500
    again = random_pairs(candidates, 120_000, seed=1)
    assert np.array_equal(first, again[0])
    assert np.array_equal(second, again[1])
    assert not np.array_equal(first, random_pairs(candidates, 120_000, seed=2)[0])


@pytest.mark.parametrize("count", [0, 1])
def test_one_candidate_makes_no_pair(count):
    first, second = random_pairs(np.arange(count), 10, seed=0)
    assert (len(first), len(second)) == (0, 0)


def test_pair_cosines_in_steps_and_without_a_direction(monkeypatch):
    monkeypatch.setattr("embtool.search.pairs._ELEMENTS", 24 * 2 * 7)
    table, _ = awkward_table()
    rng = np.random.default_rng(5)
    first, second = rng.integers(len(table), size=(2, 300))
    first[:4] = [3, 4, 6, 8]
    second[:4] = [20, 20, 20, 9]
    found = pair_cosines(lambda ids: table[ids], first, second)
    assert np.isnan(found[:3]).all()
    for cosine, i, j in zip(found.tolist(), first, second):
        a, b = table[i].astype(np.float64), table[j].astype(np.float64)
        if i in (3, 4, 6, 7) or j in (3, 4, 6, 7):
            assert np.isnan(cosine)
        else:
            expected = a @ b / (np.linalg.norm(a) * np.linalg.norm(b))
            assert cosine == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("distinct", [3, 20, 10**9])
def test_rank_correlation_is_that_of_scipy(distinct):
    rng = np.random.default_rng(distinct)
    these = rng.integers(distinct, size=500)
    those = these % 7 + rng.standard_normal(500)
    expected = spearmanr(these, those).statistic
    assert rank_correlation(these, those) == pytest.approx(expected, abs=1e-12)


def test_rank_correlation_of_too_little_is_none():
    assert rank_correlation(np.arange(1), np.arange(1)) is None
    assert rank_correlation(np.ones(5), np.arange(5)) is None
    assert rank_correlation(np.arange(5), np.arange(5) ** 3) == 1
    assert rank_correlation(np.arange(5), -np.arange(5)) == -1


def test_an_untrained_row_depends_on_its_id_and_the_seed_alone():
    rows = random_rows(np.array([7, 3, 7]), 4096, seed=0)
    assert rows.dtype == np.float32
    assert np.array_equal(rows[0], rows[2])
    assert np.array_equal(rows[1], random_rows(np.array([3]), 4096, seed=0)[0])
    assert not np.array_equal(rows[1], random_rows(np.array([3]), 4096, seed=1)[0])
    assert rows[:2].std() == pytest.approx(0.02, rel=0.05)
    assert rows[:2].mean() == pytest.approx(0, abs=0.001)


@pytest.mark.parametrize(("parts", "step"), [(1, 64), (2, 1), (3, 700), (7, 13)])
def test_a_one_hot_product_is_the_row_to_the_last_bit(parts, step):
    rng = np.random.default_rng(3)
    table = (rng.standard_normal((700, 24)) * 10.0 ** rng.integers(-30, 30, (700, 1))).astype("f4")
    ids = [0, 699, 350, 350, 12]
    work = work_on(table, parts, step)
    found = one_hot_product(work, ids)
    assert (found.dtype, found.tobytes()) == (np.float32, table[ids].tobytes())
    lengths = np.linalg.norm(table.astype(np.float64), axis=1)
    assert work.norms == pytest.approx(lengths, rel=1e-5)


def test_a_one_hot_product_loses_the_signs_of_zeros_and_meets_every_infinity():
    table = np.array([[-0.0, 1], [2, 3]], np.float32)
    found = one_hot_product(work_on(table), [0])
    assert found.tolist() == [[0, 1]]
    assert not np.signbit(found[0, 0])
    table[1, 1] = np.inf
    found = one_hot_product(work_on(table), [0])
    assert found[0, 0] == 0
    assert np.isnan(found[0, 1])


@pytest.mark.parametrize(("parts", "step"), [(1, 64), (2, 1), (4, 700)])
@pytest.mark.parametrize("known", [True, False])
def test_the_ends_of_dimensions(parts, step, known):
    table, _ = awkward_table()
    allowed = np.ones(len(table), bool)
    allowed[[15, 650]] = False
    wide = table.astype(np.float64)
    with np.errstate(all="ignore"):
        norms = np.sqrt(np.square(wide).sum(axis=1)).astype(np.float32)
    ranks = np.isfinite(norms) & (norms > 0) & allowed
    work = work_on(table, parts, step, norms=norms if known else None, allowed=allowed)
    dimensions = [5, 0, 23]
    for dimension, found in zip(dimensions, dimension_ends(work, dimensions, 205)):
        ids = np.flatnonzero(ranks)
        values = wide[ids, dimension]
        assert found.rows == len(ids)
        assert found.mean == pytest.approx(values.mean(), rel=1e-9)
        assert found.deviation == pytest.approx(values.std(), rel=1e-9)
        for hits, order in (
            (found.highest, np.lexsort((ids, -values))),
            (found.lowest, np.lexsort((ids, values))),
        ):
            assert [hit.id for hit in hits] == ids[order][:205].tolist()
            assert [hit.score for hit in hits] == values[order][:205].tolist()
