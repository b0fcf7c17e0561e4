"""Gemma's vocabulary as its GGUF file describes it, against the tokenizers library."""

import mmap
import random
from pathlib import Path

import numpy as np
import pytest
from vocab_builders import library_tokenizer

from embtool.gguf import parse
from embtool.vocab import open_gguf_vocabulary, unescape


def gemma_metadata(path):
    with Path(path).open("rb") as file:
        return parse(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), "gemma.gguf").metadata


@pytest.fixture(scope="module")
def gemma(gemma_path):
    return open_gguf_vocabulary("test-gemma", "gemma.gguf", lambda: gemma_metadata(gemma_path))


GOLDEN = {
    "今天西安的天气怎么样？": [22601, 181629, 101251, 238190, 114172, 237536],
    "user_count = 10": [2364, 236779, 2861, 578, 236743, 236770, 236771],
    " king": [9615],
    "king": [8971],
    "naïve café — ½": [1789, 238527, 560, 33443, 2192, 47041],
    "𝒳 👩‍👩‍👧 \t\n end": [
        *(478, 395, 384, 417, 236743, 243767, 237243, 243767),
        *(237243, 244814, 236743, 255968, 107, 1345),
    ],
    "人工智能正在改变软件开发。": [136119, 34775, 44309, 32464, 24549, 236924],
    "我吃苹果": [237169, 238606, 68004],
    "The quick brown fox.": [818, 3823, 8864, 37423, 236761],
    "": [],
}


@pytest.mark.parametrize(("text", "ids"), GOLDEN.items(), ids=ascii)
def test_gemma_golden(gemma, text, ids):
    assert gemma.encode(text) == ids
    assert b"".join(gemma.text(token_id) for token_id in ids).decode() == text


def test_gemma_special_tokens_only_when_asked(gemma):
    assert gemma.encode("king", special=True) == [2, 8971]
    assert gemma.encode("<bos>king<unused7>") == [2, 8971, 13]


def test_gemma_sizes_and_forms(gemma):
    assert (gemma.size, gemma.count, gemma.kind, gemma.unknown_id) == (
        262144,
        262144,
        "sentencepiece",
        3,
    )
    assert len(gemma.special_ids) == 6249
    assert [gemma.raw(i) for i in (9615, 108, 482, 139, 2)] == [
        "▁king",
        r"\n\n",
        "<0xF4>",
        "   ",
        "<bos>",
    ]
    assert [gemma.token(i) for i in (9615, 108, 482, 139, 2)] == [
        " king",
        r"\n\n",
        r"\xF4",
        "   ",
        "<bos>",
    ]
    assert gemma.token(262144) is None
    assert gemma.token(-1) is None


def test_gemma_backslashes_come_back(gemma, gemma_path):
    pieces = list(gemma_metadata(gemma_path)["tokenizer.ggml.tokens"])
    with_backslash = [i for i, piece in enumerate(pieces) if b"\\" in piece]
    assert len(with_backslash) == 573
    assert [unescape(gemma.raw(i)) for i in with_backslash] == [pieces[i] for i in with_backslash]
    assert [gemma.id_of(gemma.raw(i)) for i in with_backslash] == with_backslash
    assert all("\\\\" in gemma.token(i) for i in with_backslash)


CURATED = [
    "def f(x):\n    return x ** 2  # naïve\n\n\n\tpass",
    "  two  spaces   three    four     ",
    "\n" * 40,
    "\t" * 40 + " " * 40 + "\n",
    "<bos><eos><unused7><unused6241><unused9999><start_of_image>[multimodal]<h1><h7>",
    "<b<b>>< b><table><tab",
    "<0xE4><0x0A> <0x",
    "\x00\x01\x1b[31m\x7f\x85\u2028\u202e\ufeff\ufffd\uffff\U0010ffff",
    "👩‍👩‍👧‍👦🏳️‍🌈🇫🇷👍🏽",
    "اَلْعَرَبِيَّةُ עִבְרִית हिन्दी ภาษาไทย 한국어 ქართული",
    "ba\u0301r \u1e9b\u0323 ﬁ Ａ１ ㍻",
    "▁▁ ▁king▁ ▁",
    "aaaaaaaaaaaaaaaaaaaaaaaaaa hahahahahaha bananananana",
    "0123456789 3.14159 1e-10 $1,000.00",
    "https://example.org/?q=1&r=%20#x",
    "supercalifragilisticexpialidocious antidisestablishmentarianism",
    "𠮷野家 𓀀 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 \U000e0041",
]


def lines_of(pieces, count, seed=20):
    """Curated lines, and lines of pieces of the vocabulary in every neighbourhood."""
    rnd = random.Random(seed)
    short = [piece for piece in pieces if len(piece) <= 4]
    joints = ["", "", "", " ", "  ", "\n", "\t", "<bos>", "é", "\u0301"]
    lines = list(CURATED)
    while len(lines) < count:
        kind = rnd.randrange(5)
        chosen = rnd.choices(short if kind < 3 else pieces, k=rnd.randint(1, 8))
        if kind == 0:
            line = chosen[0] * rnd.randint(2, 12) + chosen[-1]
        elif kind == 1:
            line = "".join(rnd.choices(chosen[:2], k=rnd.randint(3, 12)))
        elif kind == 2:
            line = "".join(chr(rnd.choice([rnd.randrange(0x20, 0xD7FF), 0x20])) for _ in chosen)
        else:
            line = "".join(piece + rnd.choice(joints) for piece in chosen)
        lines.append(line.replace("▁", rnd.choice([" ", " ", "▁"])))
    return lines


@pytest.mark.slow
def test_gemma_equals_the_library_on_thousands_of_lines(gemma, gemma_path):
    metadata = gemma_metadata(gemma_path)
    tokens = [piece.decode() for piece in metadata["tokenizer.ggml.tokens"]]
    types = metadata["tokenizer.ggml.token_type"].tolist()
    scores = metadata["tokenizer.ggml.scores"].tolist()
    library = library_tokenizer(tokens, types, scores, "<unk>")
    lines = lines_of(tokens, 6000)
    expected = [encoding.ids for encoding in library.encode_batch(lines)]
    differ = [line for line, ids in zip(lines, expected, strict=True) if gemma.encode(line) != ids]
    assert differ == []
    # on end, which takes the way of long texts
    page = "".join(lines)
    assert gemma.encode(page) == library.encode(page).ids


@pytest.mark.slow
def test_gemma_tokens_that_encode_back_to_themselves(gemma):
    own = gemma.reachable()
    assert own.shape == (262144,)
    assert int(own.sum()) == 261902
    not_own = np.flatnonzero(~own).tolist()
    # lone bytes cannot be typed, and those of ASCII are pieces of their own; of the others, four
    # are always passed over for other merges
    others = [i for i in not_own if not gemma.raw(i).startswith("<0x")]
    assert {gemma.raw(i): gemma.encode(gemma.text(i).decode()) for i in others} == {
        "▁YYYY": [895, 33990, 236874],
        "▁yyyy": [570, 13828, 236762],
        "▁diffformul": [1098, 736, 741, 575],
        "▁::::::::": [1017, 26686, 51203],
    }
    rnd = random.Random(3)
    for token_id in rnd.sample(range(262144), 3000):
        text = gemma.text(token_id)
        try:
            ids = gemma.encode(text.decode())
        except UnicodeDecodeError:
            ids = []
        assert own[token_id] == (ids == [token_id])
    again = open_gguf_vocabulary("test-gemma", "gemma.gguf", lambda: pytest.fail("read again"))
    assert again.reachable().tolist() == own.tolist()
