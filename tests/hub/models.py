"""Models for the loopback Hub as the command line meets them: with config, tokenizer and tables.

Their numbers follow from their position, as in `contents`, and are all finite.
"""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import numpy as np

from hub import Hub
from hub.contents import Content, Shape, Virtual, header_of, shard

INPUT, OUTPUT = "model.embed_tokens.weight", "lm_head.weight"
INDEX, SINGLE = "model.safetensors.index.json", "model.safetensors"
Tensors = Mapping[str, tuple[str, Shape]]


class Finite(Virtual):
    """Bytes of which every two make a bfloat16 between 2^-7 and 2, with either sign."""

    _BLOCK = np.random.default_rng(8).choice(
        np.array([*range(0x3C, 0x40), *range(0xBC, 0xC0)], np.uint8), 1_048_583
    )
    _TWICE = np.concatenate([_BLOCK, _BLOCK]).tobytes()


def finite(tensors: Tensors, header_nbytes: int | None = None) -> Finite:
    """A safetensors file of bfloat16 tensors."""
    head, nbytes = header_of(tensors, header_nbytes)
    return Finite(head, len(head) + nbytes)


def config(rows: int, width: int, **more: object) -> bytes:
    """A config.json of a model with a tied head."""
    claims = {"model_type": "llama", "vocab_size": rows, "hidden_size": width}
    claims |= {"tie_word_embeddings": True, "torch_dtype": "bfloat16", **more}
    return json.dumps(claims).encode()


def words(ids: Mapping[str, int]) -> bytes:
    """A tokenizer.json of whole words with spaces between them."""
    model = {"type": "WordLevel", "vocab": dict(ids), "unk_token": "[UNK]"}
    parts = {"version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "WhitespaceSplit"}}
    return json.dumps({**parts, "model": model}, ensure_ascii=False).encode()


def put_single(
    hub: Hub,
    name: str = "org/model",
    *,
    rows: int = 1000,
    width: int = 64,
    before: int = 40,
    tokenizer: bytes | Path | None = None,
    header_nbytes: int | None = None,
    extra: Mapping[str, bytes | Path | Content] | None = None,
    **facts: object,
) -> Content:
    """A model of one file, whose table stands behind a tensor of `before` rows; returns the file.

    The words of its tokenizer are w0, w1, ... unless another is given.
    """
    tensors = {"model.layers.0.a": ("BF16", (before, width)), INPUT: ("BF16", (rows, width))}
    content = finite(tensors, header_nbytes)
    files: dict[str, bytes | Path | Content] = {
        "config.json": config(rows, width),
        "tokenizer.json": tokenizer or words({f"w{i}": i for i in range(min(rows, 1000))}),
        SINGLE: content,
    }
    hub.put(name, files | dict(extra or {}), **facts)
    return content


def rows_of(content: Content, rows: int, width: int, ids: Iterable[int]) -> np.ndarray:
    """Rows of the last table of a bfloat16 file, (len(ids), width) float32."""
    start = len(content) - rows * width * 2
    at = [start + row * width * 2 for row in ids]
    stored = b"".join(content[first : first + width * 2] for first in at)
    bits = np.frombuffer(stored, "<u2").astype(np.uint32) << 16
    return bits.view(np.float32).reshape(-1, width)


def put_deepseek(hub: Hub, tokenizer: bytes | Path) -> dict[str, Content]:
    """163 shards, an index of 9 MB, the head in shard 160, second copies of both tables in 163."""
    shards, index = _deepseek()
    claims = {"model_type": "deepseek_v3", "tie_word_embeddings": False}
    files: dict[str, bytes | Path | Content] = {
        "config.json": config(129_280, 7168, **claims, quantization_config={"quant_method": "fp8"}),
        "tokenizer.json": tokenizer,
        INDEX: index,
    }
    hub.put("deepseek-ai/DeepSeek-V3", files | shards, total_params=684_531_386_000)
    return shards


@cache
def _deepseek() -> tuple[dict[str, Content], bytes]:
    name = "model-{:05}-of-000163.safetensors".format
    table = ("BF16", (129_280, 7168))
    layers = {f"model.layers.{i}.a": ("BF16", (8, 8)) for i in range(300)}
    mtp = {f"model.layers.61.{copy}": table for copy in ("embed_tokens.weight", "shared_head.head")}
    shards: dict[str, Content] = {
        name(i): shard({f"model.layers.{i}.b": ("BF16", (8, 8))}) for i in range(2, 163)
    }
    shards[name(1)] = finite(layers | {INPUT: table})
    shards[name(160)] = finite({"model.norm.weight": ("BF16", (7168,)), OUTPUT: table})
    shards[name(163)] = finite(mtp)
    weights = {INPUT: name(1)} | dict.fromkeys(layers, name(1))
    for layer in range(61):
        for expert in range(256):
            for kind in ("down", "gate", "up"):
                tensor = f"model.layers.{layer}.mlp.experts.{expert}.{kind}_proj.weight"
                weights |= dict.fromkeys((tensor, tensor + "_scale_inv"), name(2 + layer * 2))
    weights |= dict.fromkeys(mtp, name(163)) | {OUTPUT: name(160), "model.norm.weight": name(160)}
    described = {"metadata": {"total_size": 688_586_727_753}, "weight_map": weights}
    index = json.dumps(described, indent=2).encode()
    assert 8_900_000 < len(index) < 10 << 20
    return shards, index
