"""Tiny models on disk: tables, configs and tokenizers of known content."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Stored = tuple[str, NDArray]

_NAMES = {"float32": "F32", "float16": "F16", "float64": "F64", "int64": "I64", "uint32": "U32"}


def bf16(values: NDArray) -> Stored:
    """float32 values cut to their upper 16 bits, as a BF16 tensor."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return "BF16", (bits >> 16).astype(np.uint16)


def write_safetensors(path: Path, tensors: Mapping[str, NDArray | Stored]) -> Path:
    """A file as the format's specification lays it out: length, JSON header, bytes.

    A (dtype, array) names a dtype that numpy lacks; the array holds its bits.
    """
    header: dict[str, object] = {}
    chunks: list[bytes] = []
    start = 0
    for name, value in tensors.items():
        dtype, array = value if isinstance(value, tuple) else (_NAMES[value.dtype.name], value)
        chunks.append(np.ascontiguousarray(array).tobytes())
        stop = start + len(chunks[-1])
        header[name] = {"dtype": dtype, "shape": array.shape, "data_offsets": [start, stop]}
        start = stop
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(chunks))
    return path


def word_tokenizer(words: Sequence[str], unknown: str | None = None) -> str:
    """A tokenizer.json that knows whole words only, id = position."""
    model = {
        "type": "WordLevel",
        "vocab": {word: i for i, word in enumerate(words)},
        "unk_token": unknown or "[UNK]",
    }
    return json.dumps({"version": "1.0", "added_tokens": [], "model": model}, ensure_ascii=False)


def folder_model(
    folder: Path,
    table: NDArray | Stored,
    words: Sequence[str] = (),
    config: Mapping[str, object] | None = None,
) -> Path:
    """A folder like a repository of the Hub: config, table, and a word-list tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    write_safetensors(folder / "model.safetensors", {"model.embed_tokens.weight": table})
    rows, width = (table[1] if isinstance(table, tuple) else table).shape
    claims = {"model_type": "llama", "vocab_size": rows, "hidden_size": width}
    claims |= {"tie_word_embeddings": True, **(config or {})}
    (folder / "config.json").write_text(json.dumps(claims))
    if words:
        (folder / "tokenizer.json").write_text(word_tokenizer(words), encoding="utf-8")
    return folder


def byte_alphabet() -> dict[int, str]:
    """GPT-2's spelling of the 256 bytes: printable ones stand for themselves, the rest from 256."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    spare = iter(range(256, 512))
    return {byte: chr(byte if byte in printable else next(spare)) for byte in range(256)}


def byte_tokenizer(tokens: Sequence[bytes]) -> str:
    """A byte-level BPE tokenizer.json of these tokens, id = position, without merges."""
    alphabet = byte_alphabet()
    vocab = {"".join(alphabet[byte] for byte in token): i for i, token in enumerate(tokens)}
    assert len(vocab) == len(tokens)
    level = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": False,
    }
    model = {"type": "BPE", "vocab": vocab, "merges": [], "dropout": None, "unk_token": None}
    model |= {"continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": False}
    model |= {"byte_fallback": False, "ignore_merges": True}
    parts = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": []}
    parts |= {"normalizer": None, "pre_tokenizer": level, "post_processor": None, "decoder": level}
    return json.dumps(parts | {"model": model}, ensure_ascii=False)
