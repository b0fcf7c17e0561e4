"""A small model to explain, and what its numbers are compared with."""

import json

import numpy as np
import pytest
from builders import bf16, byte_tokenizer, folder_model
from cli import run

TOKENS = [*"abcdefghijklmnopqrstuvwxyz", "今天", "西安", "天气", "[/INST]"]
ROWS, WIDTH = len(TOKENS), 16
TEXT = "eczke"


def values(rows=ROWS):
    table = np.random.default_rng(8).standard_normal((rows, WIDTH)).astype(np.float32)
    return (table.view(np.uint32) & 0xFFFF0000).view(np.float32)


def model(folder, table, tokens=TOKENS, **config):
    folder_model(folder, bf16(table), config=config)
    text = byte_tokenizer([token.encode() for token in tokens])
    (folder / "tokenizer.json").write_text(text, encoding="utf-8")
    return str(folder)


def bits(table):
    """As BF16 keeps it."""
    return (np.ascontiguousarray(table).view(np.uint32) & 0xFFFF0000).view(np.float32)


def explained(capsys, *args):
    done = run(capsys, "explain", *args, "-f", "json", "-q")
    assert done.code == 0, done.err
    return json.loads(done.out, parse_constant=pytest.fail)


def cosine(a, b):
    a, b = a.astype(np.float64), b.astype(np.float64)
    return a @ b / (np.linalg.norm(a) * np.linalg.norm(b))


def q8_0(stored):
    """Rows of Q8_0, decoded here: 34 bytes a block, a half-precision scale and 32 bytes."""
    blocks = stored.reshape(len(stored), -1, 34)
    scales = blocks[:, :, :2].copy().view(np.float16).astype(np.float64)
    return (scales * blocks[:, :, 2:].view(np.int8)).reshape(len(stored), -1)
