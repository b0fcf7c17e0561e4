"""A Chinese word in the other characters: suggested where it has a row, and only then."""

import sys

import pytest
from cli import run

from embtool.vocab.han import other_spellings


@pytest.mark.parametrize(
    ("text", "others"),
    [
        ("對象", ["对象"]),
        ("对象", ["對象"]),
        ("因为", ["因爲", "因為"]),
        ("這裏", ["这里", "這裡"]),
        ("国王", ["國王"]),
        ("今天", []),
        ("king", []),
        ("カタカナ", []),
        ("", []),
    ],
)
def test_the_other_spellings(text, others):
    assert other_spellings(text) == others


def test_none_without_opencc(monkeypatch):
    monkeypatch.setitem(sys.modules, "opencc", None)
    assert other_spellings("對象") == []


def test_a_traditional_word_is_answered_with_the_simplified_one_that_has_a_row(capsys, gemma_path):
    done = run(capsys, "neighbors", "對象", "-m", "gemma-3-270m")
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        "error: 對象 is 2 tokens: 對|象\n"
        '  try: type 对象, " 对象", or take the mean of its tokens with --pool mean\n'
    )
    # 国际关系 is no token either, so there is nothing to suggest.
    done = run(capsys, "neighbors", "國際關係", "-m", "gemma-3-270m")
    assert done.err == (
        "error: 國際關係 is 2 tokens: 國際|關係\n"
        "  try: take the mean of its tokens with --pool mean\n"
    )
