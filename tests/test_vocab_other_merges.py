"""vocab.json and merges.txt, against the models' own tokenizers and tiktoken."""

import json
import unicodedata
from itertools import pairwise
from pathlib import Path

import pytest
import tiktoken
from mixed_lines import files_of, mixed_lines, qwen_ranks
from tokenizers import Tokenizer
from vocab_builders import shipped

from embtool.errors import FormatError, TokenError, UnsupportedError
from embtool.vocab import open_files_vocabulary
from embtool.vocab.spelling import in_alphabet

EXACT = "ids equal to those of {}, 1,000 mixed lines"


def opened(key, **beside):
    files = files_of(Path("nowhere"), **beside)
    return open_files_vocabulary(f"merges-{key}", "vocab.json", files)


def split(raw):
    """The vocab.json and the merges.txt of a tokenizer.json."""
    model = json.loads(raw)["model"]
    merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    return json.dumps(model["vocab"]).encode(), "\n".join(["#version: 0.2", *merges, ""]).encode()


@pytest.mark.slow
@pytest.mark.format(
    "Tokenizers",
    kind="`vocab.json` and `merges.txt`, Qwen's way",
    model="Qwen/Qwen3-8B",
    does=EXACT.format("its own tokenizer.json"),
)
def test_merges_of_qwen():
    raw = shipped("qwen-3")
    vocab, merges = split(raw)
    decoder = {str(t["id"]): t for t in json.loads(raw)["added_tokens"]}
    vocabulary = opened(
        "qwen-merges",
        vocab_json=vocab,
        merges_txt=merges,
        tokenizer_config_json={
            "tokenizer_class": "Qwen2Tokenizer",
            "added_tokens_decoder": decoder,
            "add_bos_token": False,
        },
    )
    own = Tokenizer.from_buffer(raw)
    assert vocabulary.count == own.get_vocab_size(with_added_tokens=True)
    for line in [*mixed_lines(), "<|im_start|>user\n<think>a</think><|im_end|>"]:
        assert vocabulary.encode(line) == own.encode(line, add_special_tokens=False).ids, line


GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


@pytest.mark.slow
@pytest.mark.format(
    "Tokenizers",
    kind="`vocab.json` and `merges.txt`, GPT-2's way",
    model="openai-community/gpt2, FacebookAI/roberta-base",
    does=EXACT.format("tiktoken's with GPT-2's pattern") + "; a note where no file names the way",
)
def test_merges_of_gpt2(capsys):
    """Over the first of Qwen's ranks: of each token the last pair that makes it is its merge."""
    ranks = dict(list(qwen_ranks().items())[:20000])
    own = tiktoken.Encoding("gpt2", pat_str=GPT2, mergeable_ranks=ranks, special_tokens={})
    merges = []
    for token, rank in ranks.items():
        parts = [bytes([byte]) for byte in token]
        while len(parts) > 2:
            pairs = [ranks.get(a + b, rank) for a, b in pairwise(parts)]
            at = min(range(len(pairs)), key=pairs.__getitem__)
            assert pairs[at] < rank
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        if len(parts) == 2:
            merges.append(" ".join(map(in_alphabet, parts)))
    vocab = {in_alphabet(token): rank for token, rank in ranks.items()} | {"<|endoftext|>": 20000}
    beside = {"vocab_json": vocab, "merges_txt": "\n".join(merges).encode()}
    vocabulary = opened("gpt2-merges", **beside)
    for line in mixed_lines():
        assert vocabulary.encode(line) == own.encode(line), line
    assert vocabulary.encode("a<|endoftext|>") == [*own.encode("a"), 20000]
    note = "note: nothing says how vocab.json cuts texts: they are cut in GPT-2's way\n"
    assert capsys.readouterr().err == note


LETTERS = {in_alphabet(bytes([byte])): byte for byte in range(256)}


def merged(key, **beside):
    vocab = LETTERS | {"hi": 256, "Ġhi": 257, "<s>": 258, "</s>": 259, "<mask>": 260}
    given = {"vocab_json": vocab, "merges_txt": "#version: 0.2\nh i\nĠ hi\n".encode()}
    return opened(f"merged-{key}", **given | beside)


def test_special_tokens_and_prefixes_of_families():
    roberta = merged("roberta", config_json={"model_type": "roberta"})
    assert roberta.encode("hi <mask> hi", special=True) == [258, 256, 260, 257, 259]
    config = {"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": True}
    spaced = merged("prefix", tokenizer_config_json=config)
    assert (spaced.encode("hi"), spaced.word("hi", form="bare").ids) == ([257], (256,))
    added = merged("added", added_tokens_json={"<x>": 300}, config_json={"model_type": "gpt2"})
    assert (added.encode("hi<x>"), added.size, added.count) == ([256, 300], 301, 262)
    qwen = merged("nfc", tokenizer_config_json={"tokenizer_class": "Qwen2TokenizerFast"})
    text = "e\u0301"
    assert qwen.encode(text) == list(unicodedata.normalize("NFC", text).encode())


def test_families_that_cut_or_spell_otherwise():
    other = merged("other", config_json={"model_type": "brand_new"})
    assert other.encode("hi") == [256]
    with pytest.raises(
        TokenError, match=r"the pre-tokenizer brand_new of vocab\.json is not known"
    ):
        other.encode("hi hi")
    clip = {"vocab_json": LETTERS | {"i</w>": 256, "hi</w>": 257}, "merges_txt": b"h i</w>\n"}
    with pytest.raises(UnsupportedError, match="marks the ends of words with </w>"):
        merged("clip", **clip).encode("hi")


@pytest.mark.parametrize(
    ("beside", "message"),
    [
        ({"vocab_json": b"[1]"}, "vocab.json: it is no JSON object"),
        ({"vocab_json": b"{"}, "vocab.json: it is no JSON: "),
        ({"vocab_json": {"a": "b"}}, "vocab.json: it maps no pieces to ids"),
        ({"vocab_json": {"a": -1}}, "vocab.json: the token id -1 is not in 0 to"),
        ({"merges_txt": None}, "there is no merges.txt beside it"),
        ({"merges_txt": b"a b c"}, "merges.txt: its line 1 is no two pieces"),
        ({"merges_txt": b"a nowhere"}, "vocab.json: it is no tokenizer: "),
        ({"added_tokens_json": {"x": -5}}, "added_tokens.json: an added token has the id -5"),
        ({"added_tokens_json": b"\xff"}, "added_tokens.json: it is no JSON: "),
        (
            {"tokenizer_config_json": {"added_tokens_decoder": {"7": {}}}},
            "tokenizer_config.json: the added token 7 has no content",
        ),
    ],
)
def test_malformed_files(beside, message):
    key = "-".join(["bad", *message.split()[:3], *beside])
    with pytest.raises(FormatError) as caught:
        merged(key, **beside).encode("a")
    assert caught.value.message.startswith(message)
