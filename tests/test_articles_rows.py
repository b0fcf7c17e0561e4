"""docs/articles.md: what it says of rows is what the stored bytes give, computed apart."""

import numpy as np
import pytest
from article_blocks import DEEPSEEK_ALONE, GOLDEN, TEXT, cells, printed
from explain_builders import cosine, q8_0
from scipy.stats import spearmanr

from embtool.model import Model


@pytest.fixture(scope="module")
def stored(gemma_path):
    return Model.open("gemma-3-270m").table().stored


@pytest.fixture(scope="module")
def nearest(stored):
    """The k rows nearest to a vector by a scan of its own: decoded here, scored in float64."""

    def nearest(vector, k):
        scores = np.empty(len(stored))
        for start in range(0, len(stored), 8192):
            rows = q8_0(stored[start : start + 8192])
            scores[start : start + 8192] = rows @ vector / np.linalg.norm(rows, axis=1)
        ids = np.argsort(-scores)[:k]
        return list(zip(ids.tolist(), (scores[ids] / np.linalg.norm(vector)).tolist()))

    return nearest


def test_one_hot_vectors(stored):
    assert printed(DEEPSEEK_ALONE + '{printf "%.4f') == [f"{np.mean(np.eye(1, 129_280) == 0):.4%}"]
    zeros = dict(map(cells, printed(f"embtool explain {TEXT} | grep -E '^ (length")))["zeros"]
    assert zeros == f"{np.mean(np.eye(1, 262_144) == 0):.4%}"
    (apart,) = printed(f"embtool explain {TEXT} | grep -E '^ any two")
    eye = np.eye(5)
    assert f"{np.linalg.norm(eye[0] - eye[3]):.4f}" in apart
    ids = next(case["ids"] for case in GOLDEN["texts"] if case["text"] == TEXT)
    product = np.zeros((5, 640))
    for start in range(0, len(stored), 8192):
        numbers = np.arange(start, min(start + 8192, len(stored)))
        one_hot = np.equal.outer(ids, numbers).astype(np.float64)
        product += one_hot @ q8_0(stored[numbers[0] : numbers[-1] + 1])
    assert np.array_equal(product, q8_0(stored[ids]))
    (said,) = printed(f"embtool explain {TEXT} | grep -E '^ one-hot")
    assert said.endswith("all 262,144 rows, it is the 5 rows of E that a lookup reads, bit for bit")
    (read,) = printed(f"embtool explain {TEXT} | grep -E '^Read")
    share = len(ids) / 262_144
    assert read == f"Read for it: 5 of 262,144 rows, 3,400 bytes, {share:.4%} of the table."


def test_the_matrix_and_the_rows_beside_its_own(stored):
    ids = next(case["ids"] for case in GOLDEN["texts"] if case["text"] == TEXT)
    lines = [line.split() for line in printed(f"embtool lookup {TEXT} --dims 4")[4:9]]
    for line, row in zip(lines, q8_0(stored[ids])):
        assert line[-5:] == [f"{number:.4f}" for number in (np.linalg.norm(row), *row[:4])]
    beside = [line.split() for line in printed(f"embtool explain {TEXT} | grep -A 9")[4:]]
    for line, token_id in zip(beside, ids):
        before, row, after = q8_0(stored[token_id - 1 : token_id + 2])
        assert line[0] == str(token_id)
        assert line[3] == f"{cosine(row, before):.4f}"
        assert line[-1] == f"{cosine(row, after):.4f}"


def sample(stored):
    """The pairs that `explain` draws, and their cosines: computed here."""
    generator = np.random.default_rng(0)
    first = generator.integers(262_144, size=4_096)
    second = generator.integers(262_143, size=4_096)
    second += second >= first
    unit = [q8_0(stored[ids]) for ids in (first, second)]
    unit = [rows / np.linalg.norm(rows, axis=1)[:, None] for rows in unit]
    return np.abs(first - second), (unit[0] * unit[1]).sum(axis=1)


def test_chance_and_the_rank_of_ids(stored):
    apart, cosines = sample(stored)
    correlation = spearmanr(apart, cosines).statistic
    lines = printed(f"embtool explain {TEXT} | grep -A 1 '^Over")
    assert lines[1].startswith(f"is {correlation:.4f}: ")
    assert abs(correlation) == pytest.approx(4 / np.sqrt(4_096), rel=0.15)
    low, high = np.percentile(cosines, [1, 99])
    chance = printed("embtool similarity 猫")[-3:-1]
    assert chance[0].endswith(f" have the mean {cosines.mean():.4f}")
    assert chance[1] == (
        f"and the deviation {cosines.std():.4f}; 98 of 100 lie between {low:.4f} and {high:.4f}"
    )
    assert np.mean(cosines < 0.6455) > 0.99
    assert np.mean(cosines < 0.4362) == pytest.approx(0.97, abs=0.005)
    assert np.mean(cosines >= 0.5) == pytest.approx(1 / 50, abs=0.002)
    assert printed(f"embtool explain {TEXT} --random | grep")[-1] == (
        f"in the trained table 0.5 is {(0.5 - cosines.mean()) / cosines.std():.1f} deviations"
    )
    assert 0.5 * np.sqrt(640) > 12


def test_cosines(stored):
    words, matrix = GOLDEN["similarity"]["words"], GOLDEN["similarity"]["matrix"]
    lines = [cells(line) for line in printed("embtool similarity 猫")[2:8]]
    names = lines[0][1:]
    for line in lines[2:]:
        for name, shown in zip(names, line[1:]):
            expected = matrix[words.index(line[0])][words.index(name)]
            assert float(shown) == pytest.approx(expected, abs=6e-5)
    rows = q8_0(stored[[3425, 7445, 6962]])  # " hot", " cold", " warm"
    lines = [cells(line) for line in printed("embtool similarity hot cold warm")[4:7]]
    for line, row in zip(lines, rows):
        assert line[1:] == [f"{cosine(row, other):.4f}" for other in rows]
    assert cosine(rows[0], rows[1]) > cosine(rows[0], rows[2])


@pytest.mark.parametrize(
    ("words", "ids", "golden"),
    [
        ("king man woman", (9615, 880, 3875), [" king", " man", " woman"]),
        ("国王 男人 女人", (146935, 62626, 56891), ["国王", "男人", "女人"]),
    ],
)
def test_analogies_with_words_left_out_and_not(stored, nearest, words, ids, golden):
    case = next(case for case in GOLDEN["analogies"] if case["terms"] == golden)
    lines = [cells(line) for line in printed(f"embtool analogy {words} -k 3")[4:7]]
    assert [int(line[1]) for line in lines] == [answer["id"] for answer in case["top"][:3]]
    scores = [answer["score"] for answer in case["top"][:3]]
    assert [float(line[-1]) for line in lines] == pytest.approx(scores, abs=6e-5)
    a, b, c = q8_0(stored[list(ids)])
    lines = [cells(line) for line in printed(f"for word in {words};")[4:7]]
    expected = [(str(row), f"{score:.4f}") for row, score in nearest(a - b + c, 3)]
    assert [(line[1], line[-1]) for line in lines] == expected


def test_dimensions(stored):
    (king,) = q8_0(stored[[9615]])
    order = np.argsort(-np.abs(king), kind="stable")[:3]
    lines = [cells(line) for line in printed("embtool dimensions king")[4:7]]
    for line, dimension in zip(lines, order):
        share = king[dimension] ** 2 / (king @ king)
        assert line[1:4] == [str(dimension), f"{king[dimension]:.4f}", f"{share:.4f}"]
    # Dimension 583 is byte 7 of block 18 of each row.
    scales = stored[:, 18 * 34 : 18 * 34 + 2].copy().view(np.float16)[:, 0].astype(np.float64)
    column = scales * stored[:, 18 * 34 + 2 + 7].view(np.int8)
    lines = [line.split() for line in printed("embtool dimensions --index 583")[4:14]]
    ids = np.arange(len(column))
    ends = [np.lexsort((ids, -column))[:5], np.lexsort((ids, column))[:5]]
    expected = [(str(row), f"{column[row]:.4f}") for row in np.concatenate(ends)]
    assert [(line[2], line[-1]) for line in lines] == expected
    rows = f"over 262,144 rows its mean is {column.mean():.4f}, its deviation {column.std():.4f}"
    assert printed("embtool dimensions --index 583")[-2] == rows


def test_order_and_context(stored):
    ids = [237169, 238606, 68004]
    golden = {case["text"]: case["ids"] for case in GOLDEN["texts"]}
    assert (golden["我吃苹果"], golden["苹果吃我"]) == (ids, ids[::-1])
    assert sorted(golden["狗咬人"]) == sorted(golden["人咬狗"])
    lines = printed("embtool compare 我吃苹果 苹果吃我")
    assert lines[-2:] == [
        "B is A's rows in another order: 2 1 0",
        "Their mean rows are identical, bit for bit: no order is in the rows.",
    ]
    texts = [[68004, 34079, 237089, 237365, 24103], [237169, 238606, 42607, 68004]]
    means = [q8_0(stored[ids]).mean(axis=0) for ids in texts]
    lines = printed("embtool compare 苹果发布了新设备 我吃了一个苹果")
    shown = [line.split() for line in lines[4:9]]
    assert [int(line[1]) for line in shown] == texts[0]
    assert [int(line[3]) for line in shown[:4]] == texts[1]
    assert lines[-1] == f"Their mean rows have the cosine {cosine(*means):.4f}."
