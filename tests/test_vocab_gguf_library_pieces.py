"""GGUF tokenizers of word pieces and unigrams, against the models' own and SentencePiece."""

import io
import json
import warnings

import numpy as np
import pytest
from tokenizers import Tokenizer
from vocab_builders import CONTROL, NORMAL, TEXTS, lines_of, opened, prefixed

from embtool.errors import FormatError, TokenError, UnsupportedError
from embtool.vocab import open_vocabulary

with warnings.catch_warnings():
    # what SWIG made of it lacks attributes that newer releases of Python ask for
    warnings.simplefilter("ignore")
    import sentencepiece


def bert_metadata(raw, **more):
    """What llama.cpp's converter writes of a WordPiece tokenizer.json."""
    tokenizer = json.loads(raw)
    special = {token["content"] for token in tokenizer["added_tokens"]}
    tokens, types = [], []
    for piece, _ in sorted(tokenizer["model"]["vocab"].items(), key=lambda entry: entry[1]):
        types.append(CONTROL if piece in special else NORMAL)
        phantom = piece if piece in special else f"▁{piece}"
        tokens.append((piece[2:] if piece.startswith("##") else phantom).encode())
    named = {"model": "bert", "tokens": tokens, "token_type": np.array(types, np.int32)}
    named |= {"bos_token_id": 101, "seperator_token_id": 102, "unknown_token_id": 100}
    return prefixed(named | more)


@pytest.mark.format(
    "Tokenizers",
    kind="GGUF `bert` (WordPiece)",
    model="sentence-transformers/all-MiniLM-L6-v2",
    does="ids equal to those of the model's own tokenizer",
)
def test_word_pieces_give_the_ids_of_the_models_own_tokenizer(minilm_folder):
    raw = (minilm_folder / "tokenizer.json").read_bytes()
    own = Tokenizer.from_buffer(raw)
    own.no_truncation()
    own.no_padding()
    vocabulary = opened("minilm", bert_metadata(raw))
    for text in [*TEXTS, *lines_of(vocabulary, 600, seed=7)]:
        assert vocabulary.encode(text) == own.encode(text, add_special_tokens=False).ids, text
        assert vocabulary.encode(text, special=True) == own.encode(text).ids, text
    assert (vocabulary.word("King").form, vocabulary.word("King").ids) == ("bare", (2332,))
    as_json = open_vocabulary("library-minilm-json", "tokenizer.json", lambda: raw)
    assert np.array_equal(vocabulary.reachable(), as_json.reachable())


def cased(**more):
    tokens = ["[PAD]", "[UNK]", "▁King", "▁king", "s", "▁é", "▁e"]
    named = {"model": "bert", "tokens": [token.encode() for token in tokens]}
    named["token_type"] = np.array([CONTROL, CONTROL, *[NORMAL] * 5], np.int32)
    return prefixed(named | {"unknown_token_id": 1, "add_bos_token": False} | more)


def test_word_pieces_with_and_without_capitals():
    assert opened("cased", cased()).encode("Kings king é") == [2, 4, 3, 5]
    key = {"normalizer.lowercase": True, "normalizer.strip_accents": True}
    assert opened("lowered", cased(**key)).encode("Kings king é") == [3, 4, 3, 6]
    uncased = cased(tokens=[b"[PAD]", b"[UNK]", "▁Ķ".encode(), "▁king".encode(), b"s", b"x", b"y"])
    assert opened("uncased", uncased).encode("KINGS") == [3, 4]
    assert opened("unknown-word", cased()).encode("queen") == [1]


def trained(**options):
    """A small unigram model, trained by SentencePiece on the texts above."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([text for text in TEXTS if text.strip()] * 5),
        model_writer=model,
        model_type="unigram",
        hard_vocab_limit=False,
        minloglevel=2,
        **({"vocab_size": 400} | options),
    )
    return model.getvalue()


def fields(message):
    """(number, value) of a protocol buffer's fields: an int, or bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        nbytes = {1: 8, 5: 4}.get(key & 7) or varint()
        yield key >> 3, message[at : at + nbytes]
        at += nbytes


def unigram_metadata(model, **more):
    """What llama.cpp's converter writes of a SentencePiece model."""
    tokens, scores, types, spec = [], [], [], {}
    for number, value in fields(model):
        if number == 1:
            piece = dict(fields(value))
            tokens.append(piece[1])
            scores.append(np.frombuffer(piece.get(2, bytes(4)), "<f4")[0])
            types.append(piece.get(3, NORMAL))
        elif number == 3:
            spec = dict(fields(value))
    charsmap = np.frombuffer(spec[2], np.uint8) if spec.get(2) else None
    named = {"model": "t5", "tokens": tokens, "scores": np.array(scores, np.float32)}
    named |= {"token_type": np.array(types, np.int32), "precompiled_charsmap": charsmap}
    named |= {"add_space_prefix": bool(spec.get(3, 1)), "unknown_token_id": 0, "eos_token_id": 2}
    return prefixed(named | {"remove_extra_whitespaces": bool(spec.get(4, 1))} | more)


# The library normalizes whole characters with their marks, SentencePiece letter by letter; models
# that come with a tokenizer.json have the library's way. Of equal scores either may win.
PLAIN = [text for text in TEXTS if not {"\u0323", "\r"} & set(text) and "\n\n\n" not in text]


@pytest.mark.format(
    "Tokenizers",
    kind="GGUF `t5` (unigram)",
    model="google/flan-t5-small, BAAI/bge-m3",
    does="ids equal to SentencePiece's, its normalization included",
)
@pytest.mark.parametrize(
    "options",
    [
        {"user_defined_symbols": ["<think>"]},
        {"normalization_rule_name": "identity"},
        {"remove_extra_whitespaces": False},
        {"add_dummy_prefix": False},
    ],
    ids=lambda options: next(iter(options)),
)
def test_unigram_gives_the_ids_of_sentencepiece(options):
    model = trained(**options)
    own = sentencepiece.SentencePieceProcessor(model_proto=model)
    key = f"unigram-{next(iter(options))}"
    vocabulary = opened(key, unigram_metadata(model))
    assert vocabulary.kind == "sentencepiece"
    lines = [*PLAIN, " king", "king", "ｆｕｌｌ　ｗｉｄｔｈ ㍻ ﬁ", "x  y\n z ", "ж ½"]
    for text in lines:
        assert vocabulary.encode(text) == own.encode(text), text
        assert vocabulary.encode(text, special=True) == [*own.encode(text), 2]
    if options.get("add_dummy_prefix", True):
        assert vocabulary.raw(vocabulary.encode("the")[0]).startswith("▁")
        assert vocabulary.word("jumps", form="bare", pool="mean").form == "bare"
        assert vocabulary.raw(vocabulary.form_ids("the", "bare")[0])[0] != "▁"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"precompiled_charsmap": np.arange(9, dtype=np.uint8)}, "9 bytes, its trie 50462976"),
        ({"precompiled_charsmap": "text"}, "precompiled_charsmap holds something else than num"),
        ({"scores": np.zeros(3, np.float32)}, "tokens, but scores has 3 entries"),
    ],
    ids=["short", "text", "scores"],
)
def test_hostile_normalization_and_scores(change, message):
    model = trained(normalization_rule_name="identity")
    with pytest.raises(FormatError, match=rf"^made\.gguf: .*{message}"):
        opened(f"hostile-{message}", unigram_metadata(model, **change)).encode("a")


def test_a_trie_that_leads_nowhere_is_an_error():
    model = trained(normalization_rule_name="identity")
    # the library itself panics over a trie that leads nowhere
    trie = np.frombuffer((8).to_bytes(4, "little") + b"\xff" * 8 + b"a\0", np.uint8)
    lost = opened("lost-charsmap", unigram_metadata(model, precompiled_charsmap=trie))
    with pytest.raises((FormatError, TokenError), match=r"made\.gguf: "):
        lost.encode("abc")


@pytest.mark.format(
    "Tokenizers",
    kind="GGUF of another kind (`rwkv`, `plamo2`, ...)",
    model="RWKV-6-World",
    does="refused by name for texts; ids, spellings and `--tokenizer` work",
)
def test_other_kinds_are_refused_by_name():
    rwkv = opened("rwkv", prefixed({"model": "rwkv", "tokens": [b"a", b"b"]}), "r.gguf")
    with pytest.raises(UnsupportedError) as caught:
        rwkv.encode("ab")
    assert caught.value.message == (
        "r.gguf: its tokenizer is of the kind rwkv, which embtool does not apply"
    )
    assert rwkv.word("id:1").tokens == ("b",)


def test_a_file_without_a_tokenizer_knows_ids_alone():
    nothing = opened("nothing", {"general.architecture": "clip"})
    assert (nothing.kind, nothing.size, nothing.word("id:3").tokens) == ("none", 0, (None,))
