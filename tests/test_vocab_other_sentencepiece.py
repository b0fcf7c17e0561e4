"""SentencePiece models, against the sentencepiece library on the same thousand lines."""

import io
import warnings
from pathlib import Path

import numpy as np
import pytest
from conftest import package_file
from mixed_lines import files_of, mixed_lines

from embtool.errors import FormatError, UnsupportedError
from embtool.gguf import parse
from embtool.vocab import open_files_vocabulary

with warnings.catch_warnings():
    # what SWIG made of it lacks attributes that newer releases of Python ask for
    warnings.simplefilter("ignore")
    import sentencepiece

NOWHERE = Path("nowhere")
EXACT = "ids equal to those of the sentencepiece library, 1,000 mixed lines"


def opened(raw, key, name="tokenizer.model", **beside):
    files = files_of(NOWHERE, **{name.replace(".", "_"): raw}, **beside)
    return open_files_vocabulary(f"sentencepiece-{key}", name, files)


def trained(kind, seed=3, **options):
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(mixed_lines(600, seed)),
        model_writer=out,
        model_type=kind,
        vocab_size=900,
        hard_vocab_limit=False,
        character_coverage=0.98,
        minloglevel=2,
        num_threads=1,
        **options,
    )
    return out.getvalue()


def check(vocabulary, raw, lines):
    own = sentencepiece.SentencePieceProcessor(model_proto=raw)
    assert vocabulary.size == own.get_piece_size()
    for line in lines:
        assert vocabulary.encode(line) == own.encode(line), line


@pytest.mark.format(
    "Tokenizers",
    kind="`tokenizer.model` (SentencePiece BPE)",
    model="mistralai/Mistral-7B-v0.1, mistralai/Mistral-7B-Instruct-v0.3",
    does=EXACT,
)
@pytest.mark.parametrize(
    "name", ["tokenizer.model.v1", "mistral_instruct_tokenizer_240323.model.v3"]
)
def test_a_published_model(name):
    raw = package_file("mistral_common", f"data/{name}").read_bytes()
    vocabulary = opened(raw, name)
    assert (vocabulary.kind, vocabulary.unknown_id) == ("sentencepiece", 0)
    check(vocabulary, raw, mixed_lines())
    assert vocabulary.encode("a", special=True) == [1, *vocabulary.encode("a")]
    assert vocabulary.token(vocabulary.word("king").ids[0]) == " king"


RULES = {
    "defaults": {},
    "identity": {
        "byte_fallback": True,
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
    },
    "own-pieces": {
        "user_defined_symbols": ["<sep>", "\t\t", "北京", "  ", "\u2581\u2581\u2581"],
        "byte_fallback": True,
    },
    "space-after": {"treat_whitespace_as_suffix": True},
    "folded": {
        "add_dummy_prefix": False,
        "normalization_rule_name": "nmt_nfkc_cf",
        "user_defined_symbols": ["１２", "ﬁ"],
    },
}


@pytest.mark.format(
    "Tokenizers",
    kind="`tokenizer.model`, `spiece.model`: charsmaps, bytes, user-defined pieces, spaces",
    model="models trained in the test, BPE and unigram",
    does=EXACT,
)
@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_trained_models(kind, rules):
    raw = trained(kind, **RULES[rules])
    name = "tokenizer.model" if kind == "bpe" else "spiece.model"
    vocabulary = opened(raw, f"{kind}-{rules}", name)
    lines = mixed_lines()
    check(vocabulary, raw, lines)
    again = opened(raw, f"{kind}-{rules}", name)._encoder
    assert list(again.many(lines[:200], True)) == [vocabulary.encode(x) for x in lines[:200]]


def varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(number, value):
    """A field of a message: an int as a varint, bytes as they are."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def model_of(pieces, trainer=b"", normalizer=b""):
    whole = [
        field(1, piece) + b"\x15" + np.float32(score).tobytes() + field(3, int(kind))
        for piece, score, kind in pieces
    ]
    parts = [*(field(1, each) for each in whole), field(2, trainer), field(3, normalizer)]
    return b"".join(parts)


@pytest.mark.slow
@pytest.mark.format(
    "Tokenizers",
    kind="`tokenizer.model` of 262,144 pieces",
    model="google/gemma-3-270m, from the pieces and scores of its GGUF",
    does=EXACT,
)
def test_the_pieces_of_gemma(gemma_path):
    raw = gemma_path.read_bytes()
    found = parse(raw, "gemma.gguf", len(raw)).metadata
    named = [found[f"tokenizer.ggml.{key}"] for key in ("tokens", "scores", "token_type")]
    pieces = list(zip(*(list(each) for each in named), strict=True))
    # what the converter wrote with spaces is spelled with U+2581
    pieces = [(p.replace(b" ", "▁".encode()), score, kind) for p, score, kind in pieces]
    known = set()
    kept = [p for p in pieces if not (p[0] in known or known.add(p[0]))]
    trainer = field(3, 2) + field(35, 1)
    normalizer = field(1, b"identity") + field(3, 0) + field(4, 0)
    model = model_of(kept, trainer, normalizer)
    check(opened(model, "gemma"), model, mixed_lines())


SMALL = [
    (b"<unk>", 0, 2),
    (b"<s>", 0, 3),
    (b"</s>", 0, 3),
    ("▁a".encode(), -1, 1),
    (b"a", -2, 1),
    ("▁".encode(), -3, 1),
]
BPE = field(3, 2)


def test_tokens_that_the_files_beside_add():
    decoder = {"6": {"content": "<pad>", "special": True}, "7": {"content": "<|x|>"}}
    beside = {"tokenizer_config_json": {"added_tokens_decoder": decoder, "add_eos_token": True}}
    vocabulary = opened(model_of(SMALL, BPE), "added", **beside)
    assert (vocabulary.size, vocabulary.special_ids) == (8, {0, 1, 2, 6})
    assert vocabulary.encode("a<|x|>a<pad>", special=True) == [1, 3, 7, 3, 6, 2]
    assert vocabulary.encode("<s>b") == [1, 5, 0]
    older = opened(model_of(SMALL, BPE), "older", added_tokens_json={"<pad>": 6})
    assert (older.encode("a<pad>"), older.raw(6)) == ([3, 6], "<pad>")


def test_sentinels_of_t5():
    config = {"tokenizer_class": "T5Tokenizer", "extra_ids": 3}
    vocabulary = opened(model_of(SMALL), "t5", "spiece.model", tokenizer_config_json=config)
    assert [vocabulary.raw(i) for i in (6, 7, 8)] == [f"<extra_id_{i}>" for i in (2, 1, 0)]
    assert vocabulary.encode("a<extra_id_0>", special=True) == [3, 8, 2]


@pytest.mark.format(
    "Tokenizers",
    kind="SentencePiece models of words or characters; ids that a program shifts",
    model="google/pegasus-large",
    does="says so; `id:` still has rows",
)
def test_models_that_are_not_applied():
    words = opened(model_of(SMALL, field(3, 3)), "words")
    assert words.raw(3) == "▁a"
    with pytest.raises(UnsupportedError) as caught:
        words.encode("a")
    assert caught.value.message == (
        "tokenizer.model: its model is of the type word, which embtool does not apply"
    )
    shifted = opened(
        model_of(SMALL), "shifted", "spiece.model", config_json={"model_type": "pegasus"}
    )
    assert (shifted.size, shifted.word("id:4").ids) == (0, (4,))
    with pytest.raises(UnsupportedError, match="pegasus does not number its tokens as spiece"):
        shifted.encode("a")


@pytest.mark.parametrize(
    ("raw", "what"),
    [
        (b"", "there are no pieces"),
        (b"\x0a\x05ab", "a field of 5 bytes where 2 are left"),
        (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "a field of 9223372036854775807 bytes"),
        (b"\x0a" + b"\xff" * 11, "a number that does not end"),
        (b"\x0b", "a field of the kind 3"),
        (b"<html>", "a field of the kind 4"),
        (b"\x0a\x02\x0a\x09", "a field of 9 bytes where 0 are left"),
    ],
)
def test_what_is_no_model(raw, what):
    with pytest.raises(FormatError) as caught:
        opened(raw, f"bad-{raw.hex()}").encode("a")
    assert caught.value.message.startswith(f"tokenizer.model: it is no SentencePiece model: {what}")


def test_hostile_scores_and_charsmaps():
    with pytest.raises(FormatError, match="the score of token 1 is no number"):
        opened(model_of([SMALL[0], (b"a", np.nan, 1)]), "nan").encode("a")
    for number, bad in enumerate((b"\x01", b"\x03\0\0\0abcd", b"\xfc\xff\xff\xffabcd")):
        vocabulary = opened(model_of(SMALL, BPE, field(2, bad)), f"charsmap-{number}")
        with pytest.raises(FormatError, match="its normalization has"):
            vocabulary.encode("a")
    # a trie whose every node leads out of it
    wild = (64).to_bytes(4, "little") + b"\xff" * 64 + b"x"
    assert opened(model_of(SMALL, BPE, field(2, wild)), "wild").encode("a") == [3]
