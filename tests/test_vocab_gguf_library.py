"""GGUF tokenizers of byte-level BPE, against the tokenizers of the models themselves."""

import json

import numpy as np
import pytest
from tokenizers import Tokenizer
from vocab_builders import (
    CONTROL,
    NORMAL,
    TEXTS,
    UNUSED,
    USER_DEFINED,
    lines_of,
    opened,
    prefixed,
    shipped,
)

from embtool.errors import FormatError, TokenError
from embtool.vocab import open_gguf_vocabulary
from embtool.vocab.cuts import cut_of


def byte_level_metadata(raw, pre, **more):
    """What llama.cpp's converter writes of a tokenizer.json."""
    tokenizer = json.loads(raw)
    pieces = {i: (piece, NORMAL) for piece, i in tokenizer["model"]["vocab"].items()}
    for token in tokenizer["added_tokens"]:
        pieces[token["id"]] = (token["content"], CONTROL if token["special"] else USER_DEFINED)
    whole = [pieces.get(i, (f"[PAD{i}]", UNUSED)) for i in range(max(pieces) + 3)]
    merges = [m if isinstance(m, str) else " ".join(m) for m in tokenizer["model"]["merges"]]
    named = {
        "model": "gpt2",
        "pre": pre,
        "tokens": [piece.encode() for piece, _ in whole],
        "token_type": np.array([kind for _, kind in whole], np.int32),
        "merges": [merge.encode() for merge in merges],
    }
    return prefixed(named | more)


def family(pre, folder, model):
    does = "ids equal to those of the model's own tokenizer"
    mark = pytest.mark.format(
        "Tokenizers", kind=f"GGUF `gpt2`, pre `{pre}`", model=model, does=does
    )
    return pytest.param(pre, folder, marks=mark, id=f"{pre}-{folder}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pre", "folder"),
    [
        family("qwen2", "qwen-3", "Qwen/Qwen3-8B"),
        family("qwen35", "qwen-3.5", "Qwen/Qwen3.5"),
        family("llama-bpe", "deepseek-r1-distill-llama-8b", "meta-llama/Llama-3.1-8B"),
        family("deepseek-llm", "deepseek-v2.5", "deepseek-ai/DeepSeek-V2.5"),
        family("deepseek-coder", "deepseek-coder-33b-base", "deepseek-ai/deepseek-coder-33b-base"),
        family("deepseek-v3", "deepseek-v3.2", "deepseek-ai/DeepSeek-V3.2"),
        family("glm4", "glm-4.5v", "zai-org/GLM-4.5V"),
        family("minimax-m2", "minimax", "MiniMaxAI/MiniMax-M2"),
    ],
)
def test_byte_level_bpe_gives_the_ids_of_the_models_own_tokenizer(pre, folder):
    raw = shipped(folder)
    own = Tokenizer.from_buffer(raw)
    own.no_truncation()
    vocabulary = opened(folder, byte_level_metadata(raw, pre))
    assert vocabulary.kind == "bpe-bytes"
    assert vocabulary.count == own.get_vocab_size(with_added_tokens=True)
    for text in [*TEXTS, *lines_of(vocabulary, 300, seed=6)]:
        assert vocabulary.encode(text) == own.encode(text, add_special_tokens=False).ids, text


def pieces_of(pre, text):
    """The pieces that a text is cut into, by the tokenizers library alone."""
    steps = {"type": "Sequence", "pretokenizers": list(cut_of(pre).steps)}
    model = {"type": "BPE", "vocab": {}, "merges": []}
    tokenizer = Tokenizer.from_str(json.dumps({"pre_tokenizer": steps, "model": model}))
    return [text[a:b] for _, (a, b) in tokenizer.pre_tokenizer.pre_tokenize_str(text)]


TEXT = "hello World's 12345 HTTPServer don't /a/b\n\n  x!!\n你好。今天"


@pytest.mark.parametrize(
    ("pre", "pieces"),
    [
        pytest.param(
            "default",
            "hello| World|'|s| |123|45| HTTPServer| don|'|t| |/|a|/|b|\n\n | x|!!|\n|你好|。|今天",
            marks=pytest.mark.format(
                "Tokenizers",
                kind="GGUF `gpt2`, pre `default`, or none named",
                model="files from before llama.cpp had names",
                does="llama.cpp's default cuts, with a note where none is named",
            ),
        ),
        pytest.param(
            "gpt-2",
            "hello| World|'s| 12345| HTTPServer| don|'t| /|a|/|b|\n\n | x|!!|\n|你好|。|今天",
            marks=pytest.mark.format(
                "Tokenizers",
                kind="GGUF `gpt2`, pre `gpt-2`",
                model="openai-community/gpt2",
                does="GPT-2's cuts",
            ),
        ),
        (
            "starcoder",
            "hello| World|'s| |1|2|3|4|5| HTTPServer| don|'t| /|a|/|b|\n\n | x|!!|\n|你好|。|今天",
        ),
        (
            # Its digits are cut after bytes have become letters, of which ½ (BD) is a number:
            # within a character, which then shows twice.
            "falcon",
            "hello| World|'|s| |123|45| HTTPServer| don|'|t| |/|a|/|b|\n\n | x|!!|\n"
            "|你|你|你好|好|。|今天",
        ),
        (
            "dbrx",
            "hello| World|'s| |123|45| HTTPServer| don|'t| /|a|/b|\n\n| | x|!!\n|你好|。今天",
        ),
        (
            "stablelm2",
            "hello| World|'s| |1|2|3|4|5| HTTPServer| don|'t| /|a|/b|\n\n| | x|!!\n|你好|。今天",
        ),
        (
            "gpt-4o",
            "hello| World's| |123|45| HTTPServer| don't| /|a|/b|\n\n| | x|!!\n|你好|。今天",
        ),
        (
            "tekken",
            "hello| World|'s| |1|2|3|4|5| HTTPServer| don|'t| /|a|/b|\n\n| | x|!!\n|你好|。今天",
        ),
        (
            "bloom",
            "hello| World's| 12345| HTTPServer| don't| /a/b|\n\n | x|!!\n|你好|。|今天",
        ),
        (
            "viking",
            "hello| World's| |1|2|3|4|5| HTTPServer| don't| /a/b|\n\n | x|!!\n|你好|。|今天",
        ),
    ],
)
def test_where_a_text_is_cut(pre, pieces):
    assert "|".join(pieces_of(pre, TEXT)) == pieces


def small(**more):
    tokens = ["h", "i", "hi", "Ġ", "Ġhi", "<|end|>", "<tool>", "ä", "½", "ł", "ä½ł", "[PAD11]"]
    types = [NORMAL] * 5 + [CONTROL, USER_DEFINED] + [NORMAL] * 4 + [UNUSED]
    named = {
        "model": "gpt2",
        "pre": "gpt-2",
        "tokens": [token.encode() for token in tokens],
        "token_type": np.array(types, np.int32),
        "merges": [b"h i", "Ġ hi".encode()],
        "bos_token_id": 5,
        "eos_token_id": 5,
    }
    return prefixed(named | more)


@pytest.mark.format(
    "Tokenizers",
    kind="GGUF, a pre-tokenizer that is not known",
    model="models newer than this program",
    does="says so; texts that are a whole token, `raw:` and `id:` still have rows",
)
def test_an_unknown_pre_tokenizer_leaves_whole_tokens(capsys):
    vocabulary = opened("unknown", small(pre="brand-new\n"), "new.gguf")
    assert vocabulary.encode("hi") == [2]
    assert vocabulary.encode("") == []
    assert vocabulary.word("hi").ids == (4,)
    assert vocabulary.word("hi", form="bare").ids == (2,)
    assert vocabulary.word("你").ids == (10,)
    assert vocabulary.word("raw:ä½ł").ids == (10,)
    assert vocabulary.encode("<|end|>") == [5]
    limits = (
        r"the pre-tokenizer brand-new\n of new.gguf is not known, so that only whole tokens are "
        "read"
    )
    with pytest.raises(TokenError) as caught:
        vocabulary.encode("hi hi")
    assert caught.value.message == f"hi hi is no token: {limits}"
    with pytest.raises(TokenError) as caught:
        vocabulary.word("hih")
    assert caught.value.message == f"hih has no token: {limits}"
    assert vocabulary.reachable().tolist() == [
        *(True, True, True, True, True, True, True, False, False, False, True, False)
    ]
    assert capsys.readouterr().err == ""


def test_no_named_pre_tokenizer_is_said_once(capsys):
    vocabulary = opened("unnamed", small(pre=None), "old.gguf")
    assert vocabulary.encode("hi hi") == [2, 4]
    assert capsys.readouterr().err == (
        "note: old.gguf names no pre-tokenizer: texts are cut in llama.cpp's default way\n"
    )
    assert opened("unnamed", small(pre=None), "old.gguf").encode("hi hi") == [2, 4]


def test_special_tokens_and_fillers():
    vocabulary = opened("specials", small(), "s.gguf")
    assert vocabulary.encode("hi", special=True) == [2]
    assert vocabulary.encode("hi<tool>hi<|end|>") == [2, 6, 2, 5]
    assert (vocabulary.size, vocabulary.count) == (12, 11)
    assert (vocabulary.token(11), vocabulary.raw(11)) == (None, None)
    assert vocabulary.token(8) == r"\xBD"
    both = opened("both", small(add_bos_token=True, add_eos_token=True), "s.gguf")
    assert both.encode("hi", special=True) == [5, 2, 5]
    begins = opened("begins", small(pre="llama-bpe"), "s.gguf")
    assert begins.encode("hi", special=True) == [5, 2]
    nowhere = opened("nowhere", small(pre="llama-bpe", bos_token_id=99), "s.gguf")
    assert nowhere.encode("hi", special=True) == [2]


def test_a_piece_that_is_a_token_is_not_merged_where_the_model_says_so():
    """No merge leads to the third: `ignore_merges` takes it whole."""
    assert opened("whole", small(pre="llama-bpe"), "w.gguf").encode("你") == [10]
    assert opened("merged", small(pre="dbrx"), "w.gguf").encode("你") == [7, 8, 9]


@pytest.mark.parametrize("merge", [b"hi", b"h nowhere", b"h i i", b"h \xff"])
def test_malformed_merges(merge):
    vocabulary = opened(f"bad-{merge.hex()}", small(merges=[merge]), "bad.gguf")
    assert vocabulary.token(2) == "hi"
    with pytest.raises(FormatError, match=r"^bad\.gguf: it is no tokenizer: "):
        vocabulary.encode("hi hi")


def test_merges_that_are_no_texts():
    vocabulary = opened("no-texts", small(merges=np.arange(3)), "bad.gguf")
    with pytest.raises(FormatError, match=r"^bad\.gguf: merges holds something else than texts"):
        vocabulary.encode("hi hi")


def test_a_kept_index_is_enough_for_texts_asked_before():
    opened("kept", small(), "k.gguf").encode("hi hi")

    def read():
        raise AssertionError("the file is read again")

    again = open_gguf_vocabulary("library-kept", "k.gguf", read)
    assert again.encode("hi hi") == [2, 4]
    assert again.token(4) == " hi"
