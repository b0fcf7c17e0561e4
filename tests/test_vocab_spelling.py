import pytest

from embtool.vocab.spelling import Spelling, spelling_of_gguf, spelling_of_json, unprefixed

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"}
SPACE = {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
TO_SPACE = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
FALLBACK = {"type": "ByteFallback"}
BPE = {"type": "BPE", "vocab": {}, "merges": []}


def sequence(name, *parts):
    return {"type": "Sequence", name: list(parts)}


def test_the_256_bytes_of_the_byte_alphabet():
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    spare = iter(range(256, 324))
    spelling = Spelling("bpe-bytes")
    for byte in range(256):
        character = chr(byte if byte in printable else next(spare))
        assert spelling.decode(character.encode()) == bytes([byte])


@pytest.mark.parametrize(
    ("piece", "text"),
    [
        ("Ġking", b" king"),
        ("ä»Ĭå¤©", "今天".encode()),
        ("ä»", b"\xe4\xbb"),
        ("Ċĉ", b"\n\t"),
        ("<｜end▁of▁sentence｜>", "<｜end▁of▁sentence｜>".encode()),
        ("a b", b"a b"),
        ("", b""),
    ],
)
def test_byte_level_pieces(piece, text):
    assert Spelling("bpe-bytes").decode(piece.encode()) == text


def test_a_lone_byte_is_no_piece_of_the_alphabet_and_stands_for_itself():
    assert Spelling("bpe-bytes").decode(b"\xe4") == b"\xe4"


SENTENCEPIECE = Spelling("sentencepiece", (("▁".encode(), b" "),), byte_tokens=True)


@pytest.mark.parametrize(
    ("piece", "text"),
    [
        ("▁king", b" king"),
        ("▁▁", b"  "),
        ("<0xE4>", b"\xe4"),
        ("<0x0a>", b"\n"),
        ("<0xE4>x", b"<0xE4>x"),
        ("<0xG4>", b"<0xG4>"),
    ],
)
def test_sentencepiece_pieces(piece, text):
    assert SENTENCEPIECE.decode(piece.encode()) == text


def test_wordpiece_and_clip_marks():
    wordpiece = Spelling("wordpiece", prefix=b"##")
    assert [wordpiece.decode(piece) for piece in (b"##ing", b"king", b"##", b"###")] == [
        b"ing",
        b"king",
        b"##",
        b"#",
    ]
    clip = Spelling("bpe-bytes", suffix=b"</w>")
    assert [clip.decode(piece) for piece in (b"king</w>", b"king", b"</w>")] == [
        b"king",
        b"king",
        b"</w>",
    ]


DECISIONS = {
    "gpt2": ({"decoder": BYTE_LEVEL, "model": BPE}, Spelling("bpe-bytes")),
    "byte level in a sequence": (
        {"decoder": sequence("decoders", {"type": "Fuse"}, BYTE_LEVEL), "model": BPE},
        Spelling("bpe-bytes"),
    ),
    "byte level before, no decoder": (
        {
            "decoder": None,
            "pre_tokenizer": sequence("pretokenizers", {"type": "Split"}, BYTE_LEVEL),
            "model": BPE,
        },
        Spelling("bpe-bytes"),
    ),
    "byte level as a normalizer": (
        {"normalizer": sequence("normalizers", {"type": "ByteLevel"}), "model": BPE},
        Spelling("bpe-bytes"),
    ),
    "clip": (
        {"decoder": BYTE_LEVEL, "model": {**BPE, "end_of_word_suffix": "</w>"}},
        Spelling("bpe-bytes", suffix=b"</w>"),
    ),
    "llama 2": (
        {
            "normalizer": sequence("normalizers", {"type": "Prepend", "prepend": "▁"}, TO_SPACE),
            "decoder": sequence("decoders", SPACE, FALLBACK, {"type": "Fuse"}),
            "model": {**BPE, "byte_fallback": True},
        },
        SENTENCEPIECE,
    ),
    "llama 2 without a decoder": (
        {"normalizer": TO_SPACE, "model": {**BPE, "byte_fallback": True}},
        SENTENCEPIECE,
    ),
    "t5": (
        {"decoder": METASPACE, "model": {"type": "Unigram", "vocab": []}},
        Spelling("sentencepiece", (("▁".encode(), b" "),)),
    ),
    "metaspace before, no decoder": (
        {"pre_tokenizer": METASPACE, "model": {"type": "Unigram", "vocab": []}},
        Spelling("sentencepiece", (("▁".encode(), b" "),)),
    ),
    "bert": (
        {
            "decoder": {"type": "WordPiece", "prefix": "##"},
            "model": {"type": "WordPiece", "vocab": {}, "continuing_subword_prefix": "##"},
        },
        Spelling("wordpiece", prefix=b"##"),
    ),
    "another mark": (
        {"model": {"type": "WordPiece", "vocab": {}, "continuing_subword_prefix": "@@"}},
        Spelling("wordpiece", prefix=b"@@"),
    ),
    "a word list": ({"model": {"type": "WordLevel", "vocab": {}}}, Spelling("words")),
    "old, without types": ({"model": {"vocab": {}, "merges": []}}, Spelling("pieces")),
    "plain": ({"model": BPE}, Spelling("pieces")),
    "a suffix": (
        {"decoder": {"type": "BPEDecoder", "suffix": "</w>"}, "model": BPE},
        Spelling("pieces", suffix=b"</w>"),
    ),
    "quotes before are not spelled back": (
        {
            "normalizer": {"type": "Replace", "pattern": {"String": "``"}, "content": '"'},
            "model": {"type": "Unigram", "vocab": []},
        },
        Spelling("sentencepiece"),
    ),
}


@pytest.mark.parametrize(("tokenizer", "spelling"), DECISIONS.values(), ids=DECISIONS.keys())
def test_the_sections_decide(tokenizer, spelling):
    assert spelling_of_json(tokenizer) == spelling


@pytest.mark.parametrize(
    ("kind", "spelling"),
    [
        ("llama", SENTENCEPIECE),
        ("t5", SENTENCEPIECE),
        ("gpt2", Spelling("bpe-bytes")),
        ("bert", Spelling("wordpiece", prefix="▁".encode())),
        ("rwkv", Spelling("pieces")),
    ],
)
def test_gguf_kinds(kind, spelling):
    assert spelling_of_gguf(kind) == spelling


def test_a_tokenizer_that_puts_no_space_of_its_own_stays():
    never = {**METASPACE, "prepend_scheme": "never"}
    assert unprefixed({"normalizer": TO_SPACE, "pre_tokenizer": BYTE_LEVEL, "model": BPE}) is None
    assert unprefixed({"normalizer": None, "pre_tokenizer": never, "model": BPE}) is None
    assert unprefixed({"model": BPE}) is None


def test_prepend_metaspace_and_byte_level_lose_their_space():
    prepend = {"type": "Prepend", "prepend": "▁"}
    changed = unprefixed({"normalizer": sequence("normalizers", prepend, TO_SPACE), "model": BPE})
    assert changed is not None
    assert changed["normalizer"] == sequence("normalizers", TO_SPACE)
    assert unprefixed({"normalizer": prepend, "model": BPE}) == {
        "normalizer": None,
        "pre_tokenizer": None,
        "model": BPE,
    }
    old = {"type": "Metaspace", "replacement": "▁", "add_prefix_space": True}
    split = {"type": "WhitespaceSplit"}
    for metaspace in (METASPACE, old, {**METASPACE, "prepend_scheme": "first"}):
        changed = unprefixed({"pre_tokenizer": sequence("pretokenizers", split, metaspace)})
        assert changed is not None
        expected = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never"}
        assert changed["pre_tokenizer"] == sequence("pretokenizers", split, expected)
    changed = unprefixed({"pre_tokenizer": {**BYTE_LEVEL, "add_prefix_space": True}})
    assert changed is not None
    assert changed["pre_tokenizer"] == BYTE_LEVEL
