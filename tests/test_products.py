"""Products with rows as they are stored, against the rows in float64; and what becomes of ranks."""

import numpy as np
import pytest
from cli import run

from embtool import dtypes
from embtool.products import products
from embtool.search.blocks import Pass, row_norms
from embtool.search.nearest import top_k
from embtool.search.rank import rank_of

ROWS, WIDTH = 700, 96
DTYPES = ["F32", "BF16", "F16", "F8_E4M3", "F8_E5M2", "Q8_0"]
# The codes of infinity and NaN, and subnormal numbers and zeros, in the smallest formats.
SPECIAL = {"F8_E4M3": [0x7F, 0xFF], "F8_E5M2": [*range(0x7C, 0x80), *range(0xFC, 0x100)]}


def stored_rows(dtype, rows=ROWS, width=WIDTH, seed=0):
    """Finite rows of a dtype as bytes, (rows, row bytes)."""
    random = np.random.default_rng(seed)
    values = random.standard_normal((rows, width)).astype(np.float32)
    values[rows // 2] = 0
    if dtype == "F32":
        return values.view(np.uint8)
    if dtype == "BF16":
        return (values.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
    if dtype == "F16":
        values[1] *= np.float32(2.0**-22)  # subnormal numbers
        return values.astype(np.float16).view(np.uint8)
    if dtype == "Q8_0":
        blocks = random.integers(0, 256, (rows, width // 32, 34), np.uint8)
        scales = random.uniform(-2, 2, (rows, width // 32, 1)).astype(np.float16)
        blocks[:, :, :2] = scales.view(np.uint8).reshape(rows, width // 32, 2)
        return blocks.reshape(rows, -1)
    codes = random.integers(0, 256, (rows, width), np.uint8)
    codes[np.isin(codes, SPECIAL[dtype])] = 1
    return codes


def decoded(dtype, stored):
    return dtypes.decode(dtype, stored)


def all_products(dtype, stored, vectors, step=32, bounds=None):
    found = products(dtype, stored, vectors, step, bounds or [0, 300, len(stored)])
    assert found is not None
    pieces = [piece for part in found.parts for piece in part]
    assert [first for first, _ in pieces] == sorted({first for first, _ in pieces})
    return np.concatenate([piece for _, piece in pieces], axis=1), found.slack


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("dtype", DTYPES)
def test_products_are_those_of_the_rows(dtype, count):
    stored = stored_rows(dtype)
    vectors = np.random.default_rng(9).standard_normal((count, WIDTH)).astype(np.float32)
    vectors[-1] *= np.float32(1e-6)
    wide = decoded(dtype, stored).astype(np.float64)
    expected = vectors.astype(np.float64) @ wide.T
    lengths = np.linalg.norm(wide, axis=1)
    for step, bounds in ((32, [0, 300, ROWS]), (7, [0, ROWS]), (ROWS, [0, 1, 1, ROWS])):
        found, slack = all_products(dtype, stored, vectors, step, bounds)
        assert found.shape == (count, ROWS)
        assert found.dtype == np.float32
        rounding = 1e-5 * np.linalg.norm(vectors, axis=1)[:, None] * lengths
        assert (np.abs(found - expected) <= slack[:, None] * lengths + rounding).all()
        assert (slack > 0).all() == (dtype == "BF16")


@pytest.mark.parametrize("asked", [0, 1])
def test_the_slack_of_bf16_is_for_the_worst_neighbours(asked):
    """Neighbours of ones and of zeros push what is asked for as far off as they can."""
    random = np.random.default_rng(4)
    cases = ((0xFF7F, 0x3F80, 0.8), (0, 0x3F80, 0.8), (0, 0x3FFF, 0.8), (0xFF7F, 0x3FFF, 0))
    for neighbour, number, least in cases:
        bits = np.full((ROWS, WIDTH), neighbour, np.uint16)
        bits[:, asked::2] = number
        stored = bits.view(np.uint8)
        vectors = np.zeros((1, WIDTH), np.float32)
        vectors[0, asked::2] = random.uniform(0, 1, WIDTH // 2)
        wide = decoded("BF16", stored).astype(np.float64)
        found, slack = all_products("BF16", stored, vectors)
        # Only every other number is asked for, so that their lengths are what the slack is of.
        lengths = np.linalg.norm(wide[:, asked::2], axis=1)
        apart = np.abs(found - vectors.astype(np.float64) @ wide.T) / lengths
        assert least * slack[0] <= apart.max() <= slack[0]


@pytest.mark.parametrize("dtype", ["BF16", "F32"])
def test_words_that_are_not_where_the_processor_expects_them_are_widened(dtype):
    nbytes = stored_rows(dtype).shape[1]
    shifted = np.zeros(ROWS * nbytes + 2, np.uint8)[2:].reshape(ROWS, nbytes)
    vectors = np.ones((1, WIDTH), np.float32)
    assert products(dtype, shifted, vectors, 32, [0, ROWS]) is None
    assert products(dtype, stored_rows(dtype), vectors, 32, [0, ROWS]) is not None


def test_an_odd_width_of_bf16_is_widened():
    stored = stored_rows("BF16", 64, 31)
    assert products("BF16", stored, np.ones((1, 31), np.float32), 32, [0, 64]) is None


@pytest.mark.parametrize("dtype", ["F64", "Q4_K", "IQ1_S", "I8"])
def test_other_dtypes_are_widened(dtype):
    stored = np.zeros((4, 1024), np.uint8)
    assert products(dtype, stored, np.ones((1, 256), np.float32), 32, [0, 4]) is None


def passes(dtype, stored, **more):
    """A pass that widens, and one that may multiply rows as they are; and what that one did."""
    table = decoded(dtype, stored)
    asked = []

    def multiply(vectors):
        asked.append(len(vectors))
        return products(dtype, stored, vectors, 32, [0, len(stored) // 3, len(stored)])

    def parts():
        third = len(stored) // 3
        return [iter([(0, table[:third])]), iter([(third, table[third:])])]

    def work(**way):
        return Pass(parts(), lambda ids: table[ids], row_norms(table), **more, **way)

    return work(), work(multiply=multiply), asked


@pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_neighbours_are_the_same_either_way(dtype, metric):
    stored = stored_rows(dtype, seed=3)
    queries = np.random.default_rng(1).standard_normal((2, WIDTH))
    allowed = np.random.default_rng(2).random(ROWS) < 0.7
    slow, fast, asked = passes(dtype, stored, allowed=allowed)
    exclude = [[5, 6], [7]]
    assert top_k(fast, queries, 12, metric, exclude) == top_k(slow, queries, 12, metric, exclude)
    assert asked == [2]


@pytest.mark.parametrize("dtype", DTYPES)
def test_ranks_are_the_same_either_way(dtype):
    stored = stored_rows(dtype, seed=5)
    query = np.random.default_rng(1).standard_normal(WIDTH)
    for target in (0, 17, 400):
        slow, fast, asked = passes(dtype, stored)
        assert rank_of(fast, query, target, exclude=[3]) == rank_of(
            slow, query, target, exclude=[3]
        )
        assert asked == [1]


@pytest.mark.parametrize("dtype", ["BF16", "F16", "F32"])
def test_rows_that_are_not_finite_do_not_rank_either_way(dtype):
    stored = stored_rows(dtype).copy()
    elements = stored.view({"BF16": "<u2", "F16": "<u2", "F32": "<u4"}[dtype])
    infinite = {"BF16": 0x7F80, "F16": 0x7C00, "F32": 0x7F80_0000}[dtype]
    elements[10, 3] = infinite
    elements[11, 2] = infinite + 1
    elements[12, :] = infinite
    query = np.random.default_rng(8).standard_normal((1, WIDTH))
    slow, fast, _ = passes(dtype, stored)
    found = top_k(fast, query, ROWS)
    assert found == top_k(slow, query, ROWS)
    assert len(found[0]) == ROWS - 4  # and the row of zeros
    assert not {10, 11, 12} & {hit.id for hit in found[0]}


def test_bf16_rows_that_differ_less_than_the_slack_are_ranked_exactly():
    random = np.random.default_rng(6)
    row = random.standard_normal(WIDTH).astype(np.float32)
    bits = np.repeat((row.view(np.uint32) >> 16).astype(np.uint16)[None], ROWS, axis=0)
    bits[np.arange(ROWS), random.integers(0, WIDTH, ROWS)] ^= 1  # the last bit of one element
    stored = bits.view(np.uint8)
    slow, fast, asked = passes("BF16", stored)
    assert top_k(fast, row[None], 20) == top_k(slow, row[None], 20)
    assert asked == [1]
    slow, fast, _ = passes("BF16", stored)
    assert rank_of(fast, row, 99) == rank_of(slow, row, 99)


def test_bf16_rows_too_short_for_the_slack_are_widened():
    bits = stored_rows("BF16").view(np.uint16).copy()
    bits[20] = 1  # the smallest numbers there are
    bits[20, 0::2] = 0x00FF
    stored = bits.view(np.uint8)
    query = np.random.default_rng(8).standard_normal((1, WIDTH))
    slow, fast, _ = passes("BF16", stored)
    assert top_k(fast, query, ROWS) == top_k(slow, query, ROWS)


def test_many_queries_and_unknown_norms_are_for_the_matrix_product():
    stored = stored_rows("Q8_0")
    queries = np.random.default_rng(1).standard_normal((4, WIDTH))
    slow, fast, asked = passes("Q8_0", stored)
    assert top_k(fast, queries, 5) == top_k(slow, queries, 5)
    slow, fast, asked_first = passes("Q8_0", stored)
    fast.norms = None
    assert top_k(fast, queries[:1], 5) == top_k(slow, queries[:1], 5)
    assert asked == asked_first == []


def test_a_second_question_widens_hardly_any_row(capsys, gemma_path, monkeypatch):
    question = ("analogy", "国王", "男人", "女人", "-m", "gemma-3-270m", "-q")
    first = run(capsys, *question)
    widened = []
    decode = dtypes.decode

    def counted(dtype, stored, out=None):
        widened.append(len(stored))
        return decode(dtype, stored, out)

    monkeypatch.setattr(dtypes, "decode", counted)
    assert run(capsys, *question) == first
    assert sum(widened) < 100
