"""Mean, components and what a space makes of rows, against float64 numpy."""

import numpy as np
import pytest
from search_tables import parts_of

from embtool.space import Space, covariance, leading_components, mean_row

RNG = np.random.default_rng(11)
# Directions of clearly different size, far from the origin.
TABLE = (RNG.standard_normal((3000, 40)) * np.linspace(9, 1, 40) + 5).astype(np.float32)
TABLE[7] = np.nan
TABLE[8, 3] = np.inf
TABLE[9] = 0
FINITE = np.delete(TABLE, [7, 8], axis=0).astype(np.float64)


@pytest.mark.parametrize(("count", "step"), [(1, 3000), (2, 17), (3, 1500)])
def test_mean_and_covariance_leave_out_rows_that_are_not_finite(count, step):
    mean = mean_row(parts_of(TABLE, count, step))
    assert mean.dtype == np.float64
    np.testing.assert_allclose(mean, FINITE.mean(axis=0), rtol=2e-6)
    want = np.cov(FINITE, rowvar=False, bias=True)
    got = covariance(parts_of(TABLE, count, step), FINITE.mean(axis=0))
    np.testing.assert_allclose(got, want, atol=2e-6 * want.diagonal().max())
    np.testing.assert_array_equal(got, got.T)


def test_a_table_wider_than_a_panel_has_the_same_covariance():
    wide = RNG.standard_normal((200, 1100)).astype(np.float32)
    got = covariance(parts_of(wide, 2, 30), np.zeros(1100))
    want = wide.astype(np.float64).T @ wide / 200
    np.testing.assert_allclose(got, want, atol=1e-5)


def test_leading_components_are_the_main_directions_largest_first():
    mean = FINITE.mean(axis=0)
    got = leading_components(parts_of(TABLE, 2), mean, 3)
    _, vectors = np.linalg.eigh(np.cov(FINITE, rowvar=False, bias=True))
    want = vectors.T[::-1][:3]
    np.testing.assert_allclose(np.abs(np.sum(got * want, axis=1)), 1, atol=1e-8)
    np.testing.assert_allclose(got @ got.T, np.eye(3), atol=1e-12)
    assert (got[np.arange(3), np.abs(got).argmax(axis=1)] > 0).all()
    assert leading_components(parts_of(TABLE), mean, 0).shape == (0, 40)
    with pytest.raises(ValueError, match="41 components"):
        leading_components(parts_of(TABLE), mean, 41)


def test_components_of_a_wide_table():
    rng = np.random.default_rng(6)
    axes = np.linalg.qr(rng.standard_normal((1100, 60)))[0].T
    inner = rng.standard_normal((1500, 60)) * np.geomspace(30, 1, 60)
    wide = (inner @ axes).astype(np.float32)
    vectors = np.linalg.eigh(np.cov(inner, rowvar=False))[1].T[::-1][:4] @ axes
    got = leading_components(parts_of(wide, 2), mean_row(parts_of(wide)), 4)
    np.testing.assert_allclose(np.abs(np.sum(got * vectors, axis=1)), 1, atol=1e-10)
    np.testing.assert_allclose(got @ got.T, np.eye(4), atol=1e-12)


def test_a_space_takes_off_the_mean_and_the_components():
    mean, components = FINITE.mean(axis=0), np.linalg.qr(RNG.standard_normal((40, 3)))[0].T
    moved = Space(mean, components).apply(TABLE[:5])
    centred = TABLE[:5].astype(np.float64) - mean
    np.testing.assert_allclose(moved, centred - centred @ components.T @ components, atol=1e-12)
    np.testing.assert_allclose(moved @ components.T, 0, atol=1e-12)
    np.testing.assert_array_equal(Space(mean, components[:0]).apply(TABLE[:5]), centred)
    np.testing.assert_array_equal(Space(None, components[:0]).apply(TABLE[:5]), TABLE[:5])


def test_equal_rows_stay_equal_to_the_last_bit():
    table = np.repeat(TABLE[:1], 1003, axis=0)
    space = Space(FINITE.mean(axis=0), np.linalg.qr(RNG.standard_normal((40, 5)))[0].T)
    moved = space.apply(table)
    assert (moved == moved[0]).all()
    np.testing.assert_array_equal(space.apply(table[:1])[0], moved[0])


def test_a_table_without_rows_has_no_mean():
    with pytest.raises(ValueError, match="without rows"):
        mean_row(parts_of(TABLE[:0]))
