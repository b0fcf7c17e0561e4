"""GGUF vocabularies: Gemma's against the tokenizers library, made ones against each rule."""

import mmap
import random
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from tokenizers import AddedToken, Tokenizer
from tokenizers.models import BPE
from tokenizers.normalizers import Replace

from embtool.errors import FormatError, UnsupportedError
from embtool.gguf import parse
from embtool.vocab import open_gguf_vocabulary, unescape

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)


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


def library_tokenizer(tokens, types, scores, unknown):
    """The library's own BPE, with the merges that follow from the scores."""
    normal = {t: s for t, s, kind in zip(tokens, scores, types, strict=True) if kind == NORMAL}
    merges = [
        (-score, -cut, piece[:cut], piece[cut:])
        for piece, score in normal.items()
        for cut in range(1, len(piece))
        if piece[:cut] in normal and piece[cut:] in normal
    ]
    merges.sort()
    vocab = {token: i for i, token in enumerate(tokens)}
    pairs = [(left, right) for _, _, left, right in merges]
    model = BPE(vocab, pairs, byte_fallback=True, unk_token=unknown, fuse_unk=True)
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = Replace(" ", "▁")
    whole = [t for t, kind in zip(tokens, types, strict=True) if kind in (CONTROL, USER_DEFINED)]
    tokenizer.add_tokens([AddedToken(token, normalized=False) for token in whole])
    return tokenizer


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


@pytest.mark.parametrize("seed", range(4))
def test_made_vocabularies_equal_the_library(seed):
    rnd = random.Random(seed)
    letters = "abc▁"
    pieces = {"".join(rnd.choices(letters, k=rnd.randint(2, 4))) for _ in range(30)}
    tokens = ["<unk>", "<s>", *letters, *sorted(pieces)]
    tokens += [f"<0x{byte:02X}>" for byte in range(256)]
    types = [UNKNOWN, CONTROL, *[NORMAL] * (4 + len(pieces)), *[BYTE] * 256]
    scores = np.array(rnd.sample(range(-1000, 0), len(tokens)), np.float32)
    vocabulary = made(f"library-{seed}", tokens, scores, types, add_space_prefix=False)
    library = library_tokenizer(tokens, types, scores.tolist(), "<unk>")
    lines = ["".join(rnd.choices("abc d", k=rnd.randint(1, 20))) for _ in range(2000)]
    assert [vocabulary.encode(line) for line in lines] == [library.encode(x).ids for x in lines]


def made(key, tokens, scores=None, types=None, kind="llama", **rules):
    metadata = {
        "tokenizer.ggml.model": kind,
        "tokenizer.ggml.tokens": [t if isinstance(t, bytes) else t.encode() for t in tokens],
        **{f"tokenizer.ggml.{name}": value for name, value in rules.items()},
    }
    if scores is not None:
        metadata["tokenizer.ggml.scores"] = np.asarray(scores, np.float32)
    if types is not None:
        metadata["tokenizer.ggml.token_type"] = np.asarray(types, np.int32)
    return open_gguf_vocabulary(f"made-{key}", "made.gguf", lambda: metadata)


SMALL = ["<unk>", "<s>", "</s>", "▁", "a", "b", "▁a", "ab", "▁ab", "<x>", "aa", "<0xC3>", "<0xA9>"]
SMALL_TYPES = [2, 3, 3, 1, 1, 1, 1, 1, 1, 4, 1, 6, 6]
SMALL_SCORES = [0, 0, 0, -9, -9, -9, -3, -2, -1, 0, -4, 0, 0]


def small(key, **rules):
    return made(f"small-{key}", SMALL, SMALL_SCORES, SMALL_TYPES, **rules)


def test_a_space_of_its_own_before_a_text_and_never_before_a_word():
    vocabulary = small("prefix")
    assert vocabulary.encode("ab") == [8]
    assert vocabulary.encode(" ab") == [3, 8]
    assert vocabulary.encode("ab<x>ab") == [8, 9, 8]
    assert vocabulary.encode("") == []
    assert vocabulary.form_ids("ab", "bare") == [7]
    assert vocabulary.form_ids("ab", "spaced") == [8]
    assert small("no-prefix", add_space_prefix=False).encode("ab") == [7]


def test_special_tokens_follow_the_rules():
    assert small("bos").encode("a", special=True) == [1, 6]
    both = small("both", add_eos_token=True, bos_token_id=1, eos_token_id=2)
    assert both.encode("a", special=True) == [1, 6, 2]
    assert both.encode("a") == [6]
    assert small("none", add_bos_token=False).encode("a", special=True) == [6]


def test_bytes_unknown_and_ties():
    vocabulary = small("bytes", add_space_prefix=False)
    assert vocabulary.encode("é") == [11, 12]
    assert vocabulary.encode("aé天b") == [4, 11, 12, 0, 5]
    # of equal scores the leftmost pair is joined first
    assert vocabulary.encode("aaa") == [10, 4]
    assert vocabulary.encode("<x") == [0, 0]


def test_a_whole_token_is_the_longest_that_begins_there():
    tokens = ["<unk>", "<", "<<", "<<<x", "x", "\n", "\n\n\n"]
    vocabulary = made("longest", tokens, [0] * 7, [2, 4, 4, 4, 1, 4, 4], add_space_prefix=False)
    assert vocabulary.encode("<<<x") == [3]
    assert vocabulary.encode("<<<<x") == [2, 2, 4]
    assert vocabulary.encode("x<<\n\n\n\nx") == [4, 2, 6, 5, 4]


def test_without_types_and_scores():
    vocabulary = made("plain", ["<unk>", "a", "b", "ab", "<0x09>"], add_space_prefix=False)
    assert vocabulary.encode("ab\t") == [3, 4]
    assert vocabulary.token(4) == r"\t"
    assert vocabulary.special_ids == frozenset()


def test_a_long_text_takes_the_same_way():
    vocabulary = small("long", add_space_prefix=False)
    part = "ab aab é<x> \\ 天"
    ids = vocabulary.encode(part)
    assert vocabulary.encode(part * 2000) == ids * 2000


def test_hostile_pieces_of_a_gguf():
    tokens = [b"<unk>", b"\xe4", b"\xff\xfe", b"a\xe4", b"\\", b"a", b"", b"\0", b"\n", b"a"]
    types = [2, 1, 1, 1, 1, 1, 1, 1, 4, 1]
    vocabulary = made("hostile", tokens, [0] * 10, types, add_space_prefix=False)
    assert [vocabulary.raw(i) for i in range(10)] == [
        *("<unk>", r"\xE4", r"\xFF\xFE", r"a\xE4", r"\\", "a", "", r"\x00", r"\n", "a"),
    ]
    assert [vocabulary.text(i) for i in range(10)] == tokens
    assert vocabulary.encode("a\n\\ ") == [5, 8, 4, 0]
    assert vocabulary.encode("a\n\\ " * 4000) == [5, 8, 4, 0] * 4000
    assert vocabulary.id_of("a") == 5
    own = vocabulary.reachable().tolist()
    assert own == [True, False, False, False, True, True, False, True, True, False]


def test_kinds_that_are_shown_but_not_applied():
    gpt2 = made("gpt2", ["Ġking", "ä»", "<|end|>", "Ċ"], types=[1, 1, 3, 1], kind="gpt2")
    assert [gpt2.token(i) for i in range(4)] == [" king", r"\xE4\xBB", "<|end|>", r"\n"]
    assert [gpt2.raw(i) for i in range(4)] == ["Ġking", "ä»", "<|end|>", "Ċ"]
    assert gpt2.word("raw:Ġking").ids == (0,)
    assert gpt2.word("id:2").tokens == ("<|end|>",)
    with pytest.raises(UnsupportedError) as raised:
        gpt2.word("king")
    assert raised.value.message == (
        "made.gguf: its tokenizer is of the kind gpt2, which embtool does not apply"
    )
    bert = made("bert", ["▁king", "ing", "[CLS]"], types=[1, 1, 3], kind="bert")
    assert (bert.kind, bert.token(0), bert.token(1)) == ("wordpiece", "king", "ing")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokens": []}, "bad.gguf: it describes no tokenizer"),
        ({"tokens": [1, 2]}, "bad.gguf: it describes no tokenizer"),
        ({"model": None}, "bad.gguf: it describes no tokenizer"),
        ({"scores": np.zeros(3, np.float32)}, "bad.gguf: 2 tokens, but scores has 3 entries"),
        ({"token_type": [1]}, "bad.gguf: 2 tokens, but token_type has 1 entries"),
        (
            {"scores": np.array([0, np.nan], np.float32)},
            "bad.gguf: the score of token 1 is no number",
        ),
    ],
)
def test_malformed(changes, message):
    metadata = {"model": "llama", "tokens": [b"a", b"b"], **changes}
    metadata = {f"tokenizer.ggml.{k}": v for k, v in metadata.items() if v is not None}
    vocabulary = open_gguf_vocabulary("bad", "bad.gguf", lambda: metadata)
    with pytest.raises(FormatError, match=f"^{re.escape(message)}$"):
        vocabulary.encode("a")


def test_the_library_is_not_needed(gemma):
    assert "embtool.vocab.tokenizer" in sys.modules
    assert "tokenizers" not in vars(sys.modules["embtool.vocab.tokenizer"])
