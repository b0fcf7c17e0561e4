"""GGUF vocabularies: made ones against each rule, and against the tokenizers library."""

import random
import re

import numpy as np
import pytest
from vocab_builders import BYTE, CONTROL, NORMAL, UNKNOWN, library_tokenizer, made

from embtool.errors import FormatError, UnsupportedError
from embtool.vocab import open_gguf_vocabulary


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
    rwkv = made("rwkv", ["king", "<|end|>"], types=[1, 3], kind="rwkv")
    assert [rwkv.token(i) for i in range(2)] == ["king", "<|end|>"]
    assert rwkv.word("raw:king").ids == (0,)
    assert rwkv.word("id:1").tokens == ("<|end|>",)
    with pytest.raises(UnsupportedError) as raised:
        rwkv.word("king")
    assert raised.value.message == (
        "made.gguf: its tokenizer is of the kind rwkv, which embtool does not apply"
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
