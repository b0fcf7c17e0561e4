"""What tells untrained rows: placeholders, norms, distances and thresholds, by their formulas."""

import numpy as np
import pytest

from embtool.space import Space, leading_components, mean_row
from embtool.undertrained import (
    agreed_direction,
    direction,
    distances,
    flat,
    impossible_bytes,
    lengths,
    placeholders,
    threshold,
    threshold_alone,
)


def _parts(rows, step=100):
    starts = range(0, len(rows), step)
    return [((start, rows[start : start + step]) for start in starts)]


@pytest.mark.parametrize(
    "raw",
    [
        *("<unused7>", "[unused0]", "[unused993]", "<|reserved_special_token_12|>"),
        *("<reserved_106>", "<｜place▁holder▁no▁7｜>", "<|placeholder1|>", "<|dummy_84|>"),
        *("<madeupword3>", ">>UNUSED_106<<", "[control_8]", "[PAD151646]", "<unused_token_1>"),
    ],
)
def test_spellings_that_stand_for_nothing(raw):
    assert placeholders(["the", None, raw]) == [2]


@pytest.mark.parametrize(
    "raw",
    [
        "unused",
        "reserved",
        "<pad>",
        "[PAD]",
        "<mask>",
        "<extra_id_0>",
        "<0xC0>",
        "[control]",
        "<u>",
    ],
)
def test_spellings_that_stand_for_something(raw):
    assert placeholders([raw]) == []


def test_bytes_that_utf8_does_not_use():
    texts = [bytes([byte]) for byte in range(256)]
    expected = [0xC0, 0xC1, 0xF5, 0xF6, 0xF7, 0xF8, 0xF9, 0xFA, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF]
    assert impossible_bytes([*texts, None, b"", b"\xf5\xf5"]) == expected


def test_lengths_and_flat_norms():
    rows = np.array([[3, 4], [0, 0], [np.nan, 1], [np.inf, 0], [1e-30, 0]], np.float32)
    found = lengths(_parts(rows, 2), 5)
    assert found[:2].tolist() == [5, 0]
    assert np.isnan(found[2:4]).all()
    assert found[4] == pytest.approx(1e-30)
    assert flat(np.array([1.0, 0.96, np.nan])) == "all norms lie within 4.0% of each other"
    assert flat(np.array([1.0, 0.9])) is None
    assert flat(np.array([0.0, 0.0])) == "every row is zero"


def test_distances_equal_the_formula():
    rng = np.random.default_rng(3)
    rows = (rng.standard_normal((400, 12)) * np.geomspace(4, 1, 12) + 1).astype(np.float32)
    rows[7], rows[8], rows[9, 0] = 0, np.nan, np.inf
    ids = np.array([3, 50, 399])
    good = np.isfinite(rows).all(axis=1)
    mean = rows[good].mean(axis=0, dtype=np.float64)
    centred = rows[good].astype(np.float64) - mean
    first = np.linalg.eigh(centred.T @ centred)[1][:, -1]
    moved = rows.astype(np.float64) - mean
    moved[~good] = 0
    moved -= np.outer(moved @ first, first)
    target = moved[ids].mean(axis=0)
    expected = 1 - moved @ target / (np.linalg.norm(moved, axis=1) * np.linalg.norm(target) + 1e-99)

    found = direction(Space(mean, first[None]), ids, lambda ids: rows[ids])
    values = distances(_parts(rows), 400, found)
    assert np.isnan(values[[7, 8, 9]]).all()
    kept = np.delete(np.arange(400), [7, 8, 9])
    assert values[kept] == pytest.approx(expected[kept], abs=1e-12)
    for place, row in enumerate(ids):
        others = moved[np.delete(ids, place)].sum(axis=0)
        cosine = moved[row] @ others / np.linalg.norm(moved[row]) / np.linalg.norm(others)
        assert found.apart[place] == pytest.approx(1 - cosine, abs=1e-12)


def test_a_component_that_is_the_references_own_is_left_in():
    rng = np.random.default_rng(4)
    rows = rng.standard_normal((600, 32))
    rows[:60] = 6 * np.eye(32)[0] + 0.1 * rng.standard_normal((60, 32))
    rows = rows.astype(np.float32)
    mean = mean_row(_parts(rows))
    whole = Space(mean, leading_components(_parts(rows), mean, 1))
    found, left_in = agreed_direction(whole, np.arange(20), lambda ids: rows[ids])
    assert left_in
    assert len(found.space.components) == 0
    assert found.apart.max() < 0.03
    calm = rows.copy()
    calm[20:60] = rng.standard_normal((40, 32))
    calm[:, 5] *= 20
    calm[:20, 5] = 20 * rng.standard_normal(20)
    mean = mean_row(_parts(calm))
    whole = Space(mean, leading_components(_parts(calm), mean, 1))
    found, left_in = agreed_direction(whole, np.arange(20), lambda ids: calm[ids])
    assert not left_in
    assert found.apart.max() < 0.03


def test_the_threshold_stands_in_the_gap_above_the_references():
    references = np.array([0.1, 0.11, 0.12, 0.13, np.nan, 5.0])  # the last was used after all
    others = np.array([0.12, 0.15, 0.16, 0.9, *np.linspace(1, 2, 50), np.nan])
    assert threshold(references, others).value == pytest.approx((0.16 * 0.9) ** 0.5)
    others = np.array([0.0, 0.001, *np.linspace(1, 2, 51)])
    # what is below a hundredth of the median counts as that
    expected = (np.median(others) / 100 * 1) ** 0.5
    assert threshold(np.zeros(3), others).value == pytest.approx(expected)


def test_no_threshold_where_nothing_sets_the_references_apart():
    found = threshold(np.array([1.0, 1.1, 1.2]), np.linspace(0.5, 1.5, 99))
    assert found == (None, "half of the other rows lie as low as the references (1.2)")
    assert threshold(np.array([np.nan]), np.array([1.0])).value is None


def test_a_threshold_without_references():
    values = np.concatenate([[0, 0.02, 0.04], np.linspace(1, 2, 60), [np.nan]])
    assert threshold_alone(values).value == pytest.approx(0.2)
    assert threshold_alone(np.linspace(1, 2, 60)).value is None
    assert threshold_alone(np.array([])).value is None
