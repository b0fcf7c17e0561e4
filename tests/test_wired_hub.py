"""Quantized, pickled and classic tables on the Hub: only what is asked for is moved."""

import json

import numpy as np
import pytest
from builders import write_safetensors
from cli import run
from hub import Hub, in_process
from hub.models import config, words
from test_wired_pickles import torch_file
from test_wired_vectors import as_text

from embtool.source import wire

ROWS, WIDTH = 20_000, 64
RNG = np.random.default_rng(3)
TABLE = RNG.standard_normal((ROWS, WIDTH)).astype(np.float32)
EMBED = "model.embed_tokens"


@pytest.fixture
def hub(tmp_path, monkeypatch):
    monkeypatch.setattr(wire, "_sleep", lambda seconds, halted: None)
    with Hub() as hub:
        in_process(hub, tmp_path / "home", monkeypatch)
        yield hub


def answer(capsys, *args):
    done = run(capsys, *args, "-f", "json", "-q")
    assert done.code == 0, done.err
    return json.loads(done.out)


def moved(hub, ending):
    """Bytes that were sent of files whose name ends so."""
    return sum(asked.sent for asked in hub.log if asked.path.endswith(ending))


def vectors(capsys, model, *ids):
    text = answer(capsys, "lookup", f"id:{ids[0]}", "-m", model)
    return np.array([token["vector"] for token in text["tokens"]], np.float32)


def small(width=WIDTH):
    return {
        "config.json": config(ROWS, width),
        "tokenizer.json": words({f"w{i}": i for i in range(ROWS - 1)}),
    }


def test_a_model_of_bin_files_alone_is_read(hub, capsys):
    """Its params once came from the config, since no pickle was looked into."""
    content = torch_file({"model.norm.weight": TABLE[:2], f"{EMBED}.weight": TABLE[:-1]})
    hub.put("org/bin", {**small(), "pytorch_model.bin": content})
    record = answer(capsys, "params", "org/bin")
    assert (record["rows"], record["d_model"]) == (ROWS - 1, WIDTH)
    assert record["tables"][0]["file"] == "pytorch_model.bin"
    np.testing.assert_array_equal(vectors(capsys, "org/bin", 777), TABLE[[777]])
    assert moved(hub, ".bin") < 100_000
    near = answer(capsys, "neighbors", "id:5", "-k", "1", "-m", "org/bin")
    cosines = TABLE[:-1] @ TABLE[5] / np.linalg.norm(TABLE[:-1], axis=1)
    cosines[5] = -9
    assert near["neighbors"][0]["id"] == int(cosines.argmax())


def test_a_quantized_table_costs_its_rows_and_their_scales(hub, capsys, tmp_path):
    codes = RNG.integers(0, 1 << 32, (ROWS, WIDTH // 8), dtype=np.uint32)
    scale = RNG.standard_normal((ROWS, 1)).astype(np.float32)
    parts = {"weight": codes, "scales": scale, "biases": scale * 2}
    tensors = {f"{EMBED}.{name}": part for name, part in parts.items()}
    content = write_safetensors(tmp_path / "m", tensors).read_bytes()
    said = {"quantization": {"bits": 4, "group_size": 64}}
    hub.put("org/mlx", {**small(), "config.json": config(ROWS, WIDTH, **said),
                        "model.safetensors": content})  # fmt: skip
    numbers = codes[:, :, None] >> (4 * np.arange(8, dtype=np.uint32)) & 15
    want = numbers.reshape(ROWS, WIDTH).astype(np.float32) * scale + 2 * scale
    np.testing.assert_array_equal(vectors(capsys, "org/mlx", 19_999), want[[19_999]])
    assert moved(hub, ".safetensors") < 70_000
    record = answer(capsys, "params", "org/mlx")
    assert record["tables"][0]["dtype"] == "MLX4"
    stored = [answer(capsys, "download", "org/mlx")["stored"] for _ in range(2)][1]
    assert [one["name"] for one in stored if one["role"] == "input"] == list(tensors)
    hub.log.clear()
    assert len(answer(capsys, "neighbors", "id:5", "-m", "org/mlx", "--offline")["neighbors"]) == 10
    assert hub.log == []


def test_arrays_by_ranges_and_text_whole(hub, capsys, tmp_path):
    np.save(tmp_path / "v.npy", TABLE)
    names = [b"w%d" % row for row in range(300)]
    files = {"v.npy": (tmp_path / "v.npy").read_bytes(), "v.txt": as_text(names, TABLE[:300])}
    hub.put("org/vectors", files)
    np.testing.assert_array_equal(vectors(capsys, "org/vectors:v.npy", 19_000), TABLE[[19_000]])
    assert moved(hub, ".npy") < 200_000
    found = answer(capsys, "lookup", "w299", "-m", "org/vectors:v.txt")
    assert found["tokens"][0]["vector"] == TABLE[299].tolist()
