"""Merging by scores, against the rule said as plainly as it can be."""

import random
from itertools import pairwise

import pytest

from embtool.vocab.spm import merge
from embtool.vocab.spm_many import encode_many, table_of


def plainly(text, scores):
    pieces = list(text)
    while True:
        pairs = [
            (scores[left + right], -at)
            for at, (left, right) in enumerate(pairwise(pieces))
            if left + right in scores
        ]
        if not pairs:
            return pieces
        at = -max(pairs)[1]
        pieces[at : at + 2] = [pieces[at] + pieces[at + 1]]


def test_the_highest_score_is_joined_first_and_of_equals_the_leftmost():
    assert merge("abab", {"ab": -1.0, "ba": -2.0}.get) == ["ab", "ab"]
    assert merge("abab", {"ab": -2.0, "ba": -1.0}.get) == ["a", "ba", "b"]
    assert merge("aaaaa", {"aa": -1.0}.get) == ["aa", "aa", "a"]
    assert merge("aaa", {"aa": -1.0, "aaa": -5.0}.get) == ["aaa"]
    assert merge("天气", {"天气": 0.0}.get) == ["天气"]
    assert merge("", {}.get) == []
    assert merge("x", {}.get) == ["x"]


@pytest.mark.parametrize("seed", range(5))
def test_one_by_one_and_all_at_once_as_plainly(seed):
    rnd = random.Random(seed)
    letters = "ab天\U0001f451"
    pieces = {"".join(rnd.choices(letters, k=rnd.randint(2, 5))) for _ in range(60)}
    # few scores, so that many are equal
    scores = {piece: float(rnd.randint(-8, 0)) for piece in sorted(pieces)}
    lines = ["".join(rnd.choices(letters, k=rnd.randint(0, 24))) for _ in range(1500)]
    expected = [plainly(line, scores) for line in lines]
    assert [merge(line, scores.get) for line in lines] == expected
    whole = {**dict.fromkeys(letters, -99.0), **scores}
    ids = {piece: token_id for token_id, piece in enumerate(whole)}
    expected = [[ids[piece] for piece in plainly(line, whole)] for line in lines]
    assert encode_many(lines, table_of(whole, ids)) == expected


def test_a_text_with_an_unknown_character_is_left_to_the_other_way():
    table = table_of({"a": 0.0, "b": 0.0, "ab": -1.0}, {"a": 0, "b": 1, "ab": 2})
    assert encode_many(["ab", "axb", "", "b", "x"], table) == [[2], None, [], [1], None]
    assert encode_many([], table) == []
    assert encode_many(["", ""], table) == [[], []]
    assert encode_many(["a", ""], table_of({}, {})) == [None, []]
