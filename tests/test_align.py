"""Rows side by side: what is equal, what was rounded, and which rotation aligns them."""

import numpy as np
import pytest
from align_builders import _nearest_bf16, _rows

from embtool.align import (
    agreement,
    compare,
    explanation,
    overlap,
    paired,
    procrustes,
    roundings,
)


def _cut(rows, *sizes):
    """The rows in blocks of these sizes, over and over, in a buffer that is reused."""
    buffer = np.full((max(sizes), rows.shape[1]), np.nan, np.float32)
    first = turn = 0
    while first < len(rows):
        some = rows[first : first + sizes[turn % len(sizes)]]
        buffer[: len(some)] = some
        yield first, buffer[: len(some)]
        first, turn = first + len(some), turn + 1


def _q8_0(values):
    blocks = values.reshape(len(values), -1, 32)
    scale = (np.abs(blocks).max(axis=2, keepdims=True) / 127).astype(np.float16).astype(np.float32)
    return (np.round(blocks / scale) * scale).reshape(values.shape).astype(np.float32)


@pytest.mark.parametrize("sizes", [(7, 1, 50), (300,), (64,)])
def test_blocks_that_are_cut_differently_are_paired_by_row(sizes):
    a, b = _rows(1), _rows(2)[:271]
    seen = [(first, x.copy(), y.copy()) for first, x, y in paired(_cut(a, *sizes), _cut(b, 9, 32))]
    assert np.array_equal(np.concatenate([x for _, x, _ in seen]), a[:271])
    assert np.array_equal(np.concatenate([y for _, _, y in seen]), b)
    lengths = np.cumsum([0, *(len(x) for _, x, _ in seen)])
    assert [first for first, _, _ in seen] == lengths[:-1].tolist()
    assert list(paired(iter(()), _cut(a, 3))) == []


def _compare(a, b, tried=()):
    half = len(a) // 2
    parts = [
        paired(_cut(a[:half], 40), _cut(b[:half], 40)),
        ((first + half, x, y) for first, x, y in paired(_cut(a[half:], 7), _cut(b[half:], 9))),
    ]
    return compare(parts, len(a), tried)


def test_cosine_and_change_equal_float64():
    a = _rows(3)
    b = a.copy()
    b[10:200] += _rows(4)[10:200] * np.float32(0.01)
    b[250], a[251], b[252, 3], a[253] = 0, 0, np.nan, np.inf
    found = _compare(a, b)
    assert np.flatnonzero(~found.equal).tolist() == [*range(10, 200), 250, 251, 252, 253]
    old, new = a[10:200].astype(np.float64), b[10:200].astype(np.float64)
    lengths = np.linalg.norm(old, axis=1), np.linalg.norm(new, axis=1)
    expected = np.einsum("ij,ij->i", old, new) / lengths[0] / lengths[1]
    assert found.cosine[10:200] == pytest.approx(expected, abs=1e-14)
    expected = np.linalg.norm(new - old, axis=1) / lengths[0]
    assert found.change[10:200] == pytest.approx(expected, rel=1e-12)
    assert np.isnan(found.cosine[250:254]).all()
    assert found.change[250] == 1
    assert np.isnan(found.change[251:254]).all()


def test_the_sign_of_a_zero_and_a_nan_are_bits():
    a = np.array([[0, 1], [np.nan, 1]], np.float32)
    b = np.array([[-0.0, 1], [np.nan, 1]], np.float32)
    assert _compare(a, b).equal.tolist() == [False, True]


ROUNDED = [
    ("F32", "BF16", _nearest_bf16, "rounded to BF16"),
    ("F32", "BF16", lambda v: (v.view(np.uint32) & 0xFFFF0000).view(np.float32), "cut to BF16"),
    ("F32", "F16", lambda v: v.astype(np.float16).astype(np.float32), "rounded to F16"),
    ("F32", "Q8_0", _q8_0, "within a step of Q8_0"),
    ("BF16", "Q8_0", _q8_0, "within a step of Q8_0"),
]


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(("one", "other", "rounding", "name"), ROUNDED)
def test_a_change_of_precision_is_told_from_changed_rows(one, other, rounding, name, swapped):
    a = _rows(5) * np.float32(0.03)
    b = rounding(a)
    changed = [3, 77, 299]
    b[changed] = rounding(a[changed] + _rows(6)[changed] * np.float32(0.002))
    if swapped:
        a, b, one, other = b, a, other, one
    tried = roundings(one, other)
    found = _compare(a, b, tried)
    place = explanation(found, tried)
    assert tried[place].name == name
    assert np.flatnonzero(~found.equal & ~found.rounded[place]).tolist() == changed


def test_where_most_rows_are_equal_nothing_was_rounded():
    a = _rows(7)
    b = a.copy()
    b[[5, 6]] *= np.float32(1.0001)
    tried = roundings("F32", "Q8_0")
    found = _compare(a, b, tried)
    assert found.rounded[0].sum() == 2
    assert explanation(found, tried) is None
    assert roundings("BF16", "BF16") == []


def test_procrustes_finds_a_rotation_again():
    a = _rows(8, 500, 20)
    turn = np.linalg.qr(np.random.default_rng(9).standard_normal((20, 20)))[0]
    b = (a.astype(np.float64) @ turn).astype(np.float32)
    pieces = [(a[i : i + 77], b[i : i + 77]) for i in range(0, 500, 77)]
    rotation = procrustes(pieces)
    assert np.abs(rotation.matrix - turn).max() < 1e-6
    assert agreement(rotation, a, b) == pytest.approx(np.ones(500), abs=1e-10)
    with pytest.raises(ValueError, match="no rows to align"):
        procrustes([])


def test_a_rotation_between_widths_keeps_what_the_narrower_holds():
    a = _rows(10, 400, 8)
    into = np.linalg.qr(np.random.default_rng(11).standard_normal((30, 8)))[0].T
    b = (a.astype(np.float64) @ into).astype(np.float32)
    b[7] = 0
    rotation = procrustes([(a, b)])
    assert rotation.matrix.shape == (8, 30)
    assert rotation.matrix @ rotation.matrix.T == pytest.approx(np.eye(8), abs=1e-9)
    assert np.delete(agreement(rotation, a, b), 7).min() > 0.999
    assert agreement(procrustes([(b, a)]), b, a)[:7].min() > 0.999


def test_overlap_is_the_part_of_shared_neighbours():
    one = [np.array([1, 2, 3, 4]), np.array([5, 6, 7, 8])]
    other = [np.array([4, 9, 2, 8]), np.array([1, 2, 3, 4])]
    assert overlap(one, other).tolist() == [0.5, 0]
