"""`compare`: what two texts' matrices share, against what numpy makes of the rows."""

import json

import numpy as np
import pytest
from cli import run
from explain_builders import ROWS, WIDTH, cosine, model, values


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return model(tmp_path_factory.mktemp("tiny") / "m", values())


def compared(capsys, *args):
    done = run(capsys, "compare", *args, "-f", "json", "-q")
    assert done.code == 0, done.err
    return json.loads(done.out, parse_constant=pytest.fail)


def places(found):
    return [(place["id"], place["in_a"], place["in_b"]) for place in found]


def test_two_orders_of_the_same_rows(capsys, tmp_path):
    table = np.full((ROWS, WIDTH), 2.0**-53, np.float32)
    table[0] = 1  # 1 and a small row is 1 again, but small rows first add up to more than that
    folder = model(tmp_path / "m", table)
    found = compared(capsys, "abcdefghij", "jbdcaefhgi", "-m", folder)
    assert found["a"]["shape"] == found["b"]["shape"] == [10, WIDTH]
    ids = [[token["id"] for token in found[side]["tokens"]] for side in "ab"]
    assert ids == [list(range(10)), [9, 1, 3, 2, 0, 4, 5, 7, 6, 8]]
    assert found["permutation"] == [9, 1, 3, 2, 0, 4, 5, 7, 6, 8]
    first, second = (table[each] for each in ids)
    assert np.array_equal(first[found["permutation"]], second)
    # Summed in the order that they stand in, rounding would tell the two apart.
    sums = [rows.astype(np.float64).cumsum(axis=0)[-1] for rows in (first, second)]
    assert not np.array_equal(*sums)
    assert found["mean"] == {"identical": True, "distance": 0.0, "cosine": pytest.approx(1)}
    assert (found["only_a"], found["only_b"], found["same_rows"]) == ([], [], True)
    assert places(found["common"]) == [(i, [i], [ids[1].index(i)]) for i in range(10)]


def test_texts_that_share_a_row(capsys, tiny):
    found = compared(capsys, "abca", "dcxac", "-m", tiny)
    assert places(found["common"]) == [(0, [0, 3], [3]), (2, [2], [1, 4])]
    assert places(found["only_a"]) == [(1, [1], [])]
    assert places(found["only_b"]) == [(3, [], [0]), (23, [], [2])]
    assert (found["same_rows"], found["permutation"]) == (True, None)
    table = values().astype(np.float64)
    means = table[[0, 1, 2, 0]].mean(axis=0), table[[3, 2, 23, 0, 2]].mean(axis=0)
    assert found["mean"]["identical"] is False
    assert found["mean"]["cosine"] == pytest.approx(cosine(*means), abs=1e-12)
    distance = np.linalg.norm(means[0] - means[1])
    assert found["mean"]["distance"] == pytest.approx(distance, rel=1e-12)


def test_repeated_rows_keep_their_own_order_in_a_permutation(capsys, tiny):
    found = compared(capsys, "abab", "bbaa", "-m", tiny)
    assert found["permutation"] == [1, 3, 0, 2]
    assert compared(capsys, "abab", "aabbb", "-m", tiny)["permutation"] is None
    found = compared(capsys, "abab", "ab", "-m", tiny)
    assert (found["permutation"], found["same_rows"]) == (None, True)


def test_texts_that_share_nothing(capsys, tiny):
    found = compared(capsys, "a", "b", "-m", tiny)
    assert (found["common"], found["same_rows"], found["permutation"]) == ([], None, None)
    found = compared(capsys, "a", "", "-m", tiny)
    assert found["mean"] == {"identical": False, "distance": None, "cosine": None}


def test_the_page_to_the_letter(capsys, tiny):
    done = run(capsys, "compare", "abc", "cab", "-m", tiny)
    assert (done.code, done.err) == (0, "")
    assert (
        done.out
        == f"""\
A: abc, B: cab: 3 × 16 and 3 × 16, {tiny}

 position   id in A   A   id in B   B
 ────────────────────────────────────
        0         0   a         2   c
        1         1   b         0   a
        2         2   c         1   b

Rows of model.embed_tokens.weight, and where they stand

 id   token   in A   in B
 ────────────────────────
  0   a       0      1
  1   b       1      2
  2   c       2      0

In common: 3 (a, b, c); only in A: none; only in B: none.
A row in common is one and the same in both, bit for bit: no context is in it.
B is A's rows in another order: 2 0 1
Their mean rows are identical, bit for bit: no order is in the rows.

"""
    )
    page = run(capsys, "compare", "ab", "a", "-m", tiny).out
    lines = page.splitlines()
    assert lines[5].split() == ["1", "1", "b"]
    assert "In common: 1 (a); only in A: 1 (b); only in B: none." in lines
    table = values().astype(np.float64)
    mean = cosine(table[:2].mean(axis=0), table[0])
    assert f"Their mean rows have the cosine {mean:.4f}." in lines
    assert "order" not in page
    page = run(capsys, "compare", "abcdefghijklmnop", "abcdefghijklmnop", "-m", tiny).out
    assert "... and 4 more positions: -f json has them\n" in page
    assert "... and 4 more rows: -f json has them\n" in page
    assert "B is A's rows in the same order: 0 1 2 3 4 5 6 7 8 9 10 11 ...\n" in page
    assert "In common: 16 (a, b, c, d, ...); only in A: none; only in B: none.\n" in page


@pytest.mark.parametrize(
    ("a", "b", "order"),
    [("我吃苹果", "苹果吃我", [2, 1, 0]), ("狗咬人", "人咬狗", [2, 1, 0])],
)
def test_gemma_does_not_know_who_eats_whom(capsys, gemma_path, a, b, order):
    found = compared(capsys, a, b, "-m", "gemma-3-270m")
    assert found["permutation"] == order
    assert found["mean"]["identical"] is True
    assert (found["only_a"], found["only_b"]) == ([], [])


def test_gemma_has_one_row_for_the_fruit_and_the_firm(capsys, gemma_path):
    texts = ("苹果发布了新设备", "我吃了一个苹果")
    found = compared(capsys, *texts, "-m", "gemma-3-270m")
    assert [(place["id"], place["token"]) for place in found["common"]] == [(68004, "苹果")]
    assert (found["same_rows"], found["permutation"]) == (True, None)
    assert [len(found[side]) for side in ("only_a", "only_b")] == [4, 3]
