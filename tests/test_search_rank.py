"""The rank of a row is its place in the whole ranking; cosines are those of float64."""

import numpy as np
import pytest
from search_tables import awkward_table, best_of, parts_of, scores_of

from embtool.search.blocks import Pass
from embtool.search.nearest import top_k
from embtool.search.rank import rank_of, similarity
from embtool.space import Space

TABLE, EQUAL = awkward_table(seed=2)


def a_pass(count=1, step=64, **given):
    return Pass(parts_of(TABLE, count, step), lambda ids: TABLE[ids], **given)


@pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean"])
@pytest.mark.parametrize(("count", "step"), [(1, 700), (2, 13)])
def test_a_rank_is_the_place_in_the_whole_ranking(metric, count, step):
    query = int(EQUAL[1])
    scores = scores_of(TABLE, TABLE[query], metric)
    order = best_of(scores, 700, [query])
    for target in [*order[:3], *order[::97], order[-1]]:
        work = a_pass(count, step)
        found = rank_of(work, TABLE[query], target, metric, exclude=[query])
        assert found is not None
        assert found.rank == order.index(target) + 1
        assert found.rows == len(order) == 695
        assert found.score == pytest.approx(
            abs(scores[target]) if metric == "euclidean" else scores[target], rel=1e-12
        )
        again = rank_of(
            a_pass(count, step, norms=work.norms), TABLE[query], target, metric, exclude=[query]
        )
        assert again == found


def test_a_rank_counts_only_allowed_rows_and_agrees_with_the_search():
    allowed = np.arange(700) % 2 == 0
    space = Space(TABLE[10:].mean(axis=0, dtype=np.float64), np.empty((0, 24)))
    query = space.apply(TABLE[10:11])
    (hits,) = top_k(a_pass(2, allowed=allowed, space=space), query, 700, exclude=[[10]])
    for place in (0, 5, 200, len(hits) - 1):
        work = a_pass(2, allowed=allowed, space=space)
        found = rank_of(work, query[0], hits[place].id, exclude=[10])
        assert found == (place + 1, hits[place].score, len(hits))


@pytest.mark.parametrize("target", [3, 4, 6, 10, 11])
def test_a_row_that_does_not_rank_has_no_rank(target):
    allowed = np.arange(700) != 11
    assert rank_of(a_pass(2, allowed=allowed), TABLE[10], target, exclude=[10]) is None


def test_a_query_without_a_direction_is_refused():
    with pytest.raises(ValueError, match="zero or not finite"):
        rank_of(a_pass(), TABLE[3], 10)


def test_similarity_is_the_matrix_of_cosines():
    these, those = TABLE[10:14], TABLE[[10, 3, 4, 15, 16]]
    got = similarity(these, those)
    want = np.array([scores_of(those, row) for row in these])
    assert got.dtype == np.float64
    assert got.shape == (4, 5)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-15)
    assert np.isnan(got[:, 1:3]).all()
    assert got[0, 0] == pytest.approx(1, abs=1e-15)
