"""Tiny models on disk: tables, configs and tokenizers of known content."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import serialize_file

Stored = tuple[str, NDArray]

_NAMES = {"float32": "F32", "float16": "F16", "float64": "F64", "int64": "I64", "uint32": "U32"}


def bf16(values: NDArray) -> Stored:
    """float32 values cut to their upper 16 bits, as a BF16 tensor."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return "BF16", (bits >> 16).astype(np.uint16)


def write_safetensors(path: Path, tensors: Mapping[str, NDArray | Stored]) -> Path:
    """A file of safetensors' own writer; a (dtype, array) names a dtype that numpy lacks."""
    entries = {}
    for name, value in tensors.items():
        dtype, array = (
            value if isinstance(value, tuple) else (_NAMES[value.dtype.name], value)
        )
        entries[name] = {
            "dtype": _RUST[dtype],
            "shape": list(array.shape),
            "data": np.ascontiguousarray(array).tobytes(),
        }
    serialize_file(entries, str(path))
    return path


_RUST = {
    "F32": "float32",
    "F16": "float16",
    "F64": "float64",
    "BF16": "bfloat16",
    "I64": "int64",
    "U32": "uint32",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
}


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
