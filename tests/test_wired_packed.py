"""Quantized tables from a folder, through Model and every kind of command."""

import importlib.util
import json

import numpy as np
import pytest
from builders import word_tokenizer, write_safetensors
from cli import run
from conftest import package_file
from packed_builders import DTYPES, decoded, same_bits

from embtool import Model
from embtool.errors import UnsupportedError
from embtool.packed import Claims

RNG = np.random.default_rng(5)
ROWS, WIDTH = 48, 128
WORDS = [f"w{i}" for i in range(ROWS)]
EMBED, HEAD = "model.embed_tokens", "lm_head"


def codes(shape, high=256):
    return RNG.integers(0, high, shape).astype(np.uint8)


def integers(shape):
    return RNG.integers(-(1 << 31), 1 << 31, shape).astype(np.int32)


def floats(shape, kind=np.float32):
    return RNG.standard_normal(shape).astype(kind)


def small(shape):
    """FP8 codes of numbers that are neither NaN nor huge."""
    return "F8_E4M3", codes(shape, 0x60)


def nf4():
    state = {"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", "shape": [ROWS, WIDTH]}
    return {
        "weight": codes((ROWS * WIDTH // 2, 1)),
        "weight.absmax": np.abs(floats(ROWS * WIDTH // 64)),
        "weight.quant_map": np.sort(floats(16)),
        "weight.quant_state.bitsandbytes__nf4": np.frombuffer(json.dumps(state).encode(), np.uint8),
    }


def mlx(bits, group):
    scale = floats((ROWS, WIDTH // group))
    words = integers((ROWS, WIDTH * bits // 32)).view(np.uint32)
    return {"weight": words, "scales": scale, "biases": scale + 1}


def gptq():
    return {
        "qweight": integers((WIDTH * 4 // 32, ROWS)),
        "qzeros": integers((2, ROWS * 4 // 32)),
        "scales": floats((2, ROWS), np.float16),
    }


def awq():
    turned = {"qweight": integers((WIDTH, ROWS // 8)), "qzeros": integers((2, ROWS // 8))}
    return turned | {"scales": floats((2, ROWS), np.float16)}


# dtype in `params`, the module's tensors, what its config says of them.
SCHEMES = {
    "FP8, blocks": (
        "F8_E4M3",
        {"weight": small((ROWS, WIDTH)), "weight_scale_inv": floats((1, 1))},
        {},
    ),
    "FP8, rows": (
        "F8_E4M3",
        {"weight": small((ROWS, WIDTH)), "weight_scale": floats((ROWS, 1))},
        {},
    ),
    "INT8": ("I8", {"weight": codes((ROWS, WIDTH)).view(np.int8), "weight_scale": floats(1)}, {}),
    "MLX 4": ("MLX4", mlx(4, 64), {"quantization": {"bits": 4, "group_size": 64}}),
    "MLX 6": ("MLX6", mlx(6, 32), {"quantization": {"bits": 6, "group_size": 32}}),
    "MLX MXFP4": (
        "MXFP4",
        {
            "weight": integers((ROWS, WIDTH // 8)).view(np.uint32),
            "scales": codes((ROWS, WIDTH // 32), 130),
        },
        {},
    ),
    "compressed-tensors": (
        "INT4",
        {
            "weight_packed": integers((ROWS, WIDTH // 8)),
            "weight_scale": floats((ROWS, 2)),
            "weight_shape": np.array([ROWS, WIDTH]),
        },
        {"quantization_config": {"config_groups": {"g": {"weights": {"num_bits": 4}}}}},
    ),
    "NVFP4": (
        "NVFP4",
        {
            "weight": codes((ROWS, WIDTH // 2)),
            "weight_scale": small((ROWS, WIDTH // 16)),
            "weight_scale_2": floats(1),
        },
        {},
    ),
    "GPTQ": ("GPTQ4", gptq(), {}),
    "AWQ": ("AWQ4", awq(), {}),
    "NF4": ("NF4", nf4(), {}),
    "LLM.int8": (
        "INT8",
        {"weight": codes((ROWS, WIDTH)).view(np.int8), "SCB": np.abs(floats(ROWS))},
        {},
    ),
}


def stored(tensors):
    """Tensors as `write_safetensors` takes them."""
    named = {
        name: value if isinstance(value, tuple) else (DTYPES[value.dtype.name], value)
        for name, value in tensors.items()
    }
    return named


def folder(path, tensors, config=None):
    """A model of one table, and a norm behind it."""
    path.mkdir(exist_ok=True)
    norm = {"model.norm.weight": ("F32", np.ones(WIDTH, np.float32))}
    write_safetensors(path / "model.safetensors", stored(tensors) | norm)
    claims = {"model_type": "llama", "vocab_size": ROWS, "hidden_size": WIDTH}
    claims |= {"tie_word_embeddings": True, **(config or {})}
    (path / "config.json").write_text(json.dumps(claims))
    (path / "tokenizer.json").write_text(word_tokenizer([*WORDS[:-1], "[UNK]"]))
    return path


def inside(module, tensors):
    return {f"{module}.{name}": value for name, value in tensors.items()}


def params(capsys, *models):
    done = run(capsys, "params", *map(str, models), "-f", "json")
    assert done.code == 0, done.err
    return json.loads(done.out)


@pytest.mark.parametrize("name", SCHEMES)
def test_every_scheme_from_a_folder(capsys, tmp_path, name):
    dtype, parts, config = SCHEMES[name]
    tensors = inside(EMBED, parts)
    want = decoded(tensors, Claims(width=WIDTH, bits=config.get("quantization", {}).get("bits")))
    path = folder(tmp_path / "m", tensors, config)
    table = Model.open(str(path)).table()
    assert (table.shape, table.dtype) == ((ROWS, WIDTH), dtype)
    same_bits(table.rows([7, 0, 7]), want[[7, 0, 7]])
    blocks = [(first, block.copy()) for first, block in table.blocks(5, 40)]
    same_bits(np.concatenate([block for _, block in blocks]), want[5:40])
    same_bits(np.concatenate([b.copy() for part in table.parts(3) for _, b in part]), want)
    record = params(capsys, path)
    nbytes = sum((v[1] if isinstance(v, tuple) else v).nbytes for v in parts.values())
    assert (record["rows"], record["d_model"], record["params"]) == (ROWS, WIDTH, ROWS * WIDTH)
    (facts,) = record["tables"]
    assert (facts["dtype"], facts["params"], facts["stored_bytes"]) == (dtype, ROWS * WIDTH, nbytes)
    done = run(capsys, "lookup", "w3", "-m", str(path), "-f", "json")
    np.testing.assert_array_equal(json.loads(done.out)["tokens"][0]["vector"], want[3].tolist())
    near = json.loads(run(capsys, "neighbors", "w3", "-k", "1", "-m", str(path), "-f", "json").out)
    rows = want.astype(np.float64)
    lengths = np.linalg.norm(rows, axis=1)
    cosines = rows @ rows[3] / np.where(lengths, lengths, np.inf) / lengths[3]
    cosines[3] = -2
    assert near["neighbors"][0]["id"] == int(cosines.argmax())
    done = run(capsys, "download", str(path), "-f", "json")
    tables = [one for one in json.loads(done.out)["stored"] if one["role"] == "input"]
    assert sum(one["nbytes"] for one in tables) == nbytes


def test_both_tables_packed_are_compared_by_their_numbers(capsys, tmp_path):
    parts = SCHEMES["MLX 4"][1]
    config = {**SCHEMES["MLX 4"][2], "tie_word_embeddings": False}
    both = inside(EMBED, parts) | inside(HEAD, parts)
    record = params(capsys, folder(tmp_path / "same", both, config))
    assert (record["tied"], len(record["tables"])) == (True, 2)
    both[f"{HEAD}.scales"] = both[f"{HEAD}.scales"] * np.float32(2)
    record = params(capsys, folder(tmp_path / "other", both, config))
    assert record["tied"] is False
    plain = inside(EMBED, parts) | {f"{HEAD}.weight": floats((ROWS, WIDTH))}
    record = params(capsys, folder(tmp_path / "plain", plain, config))
    assert [(t["dtype"], t["rows"]) for t in record["tables"]] == [("MLX4", ROWS), ("F32", ROWS)]
    flat = inside(EMBED, nf4()) | {f"{HEAD}.weight": floats((ROWS, WIDTH))}
    record = params(capsys, folder(tmp_path / "flat", flat, {"tie_word_embeddings": False}))
    assert [(t["dtype"], t["rows"]) for t in record["tables"]] == [("NF4", ROWS), ("F32", ROWS)]


def test_scales_in_another_shard(tmp_path):
    tensors = stored(inside(EMBED, SCHEMES["MLX 4"][1]))
    folder(tmp_path, {}, SCHEMES["MLX 4"][2])
    (tmp_path / "model.safetensors").unlink()
    where = {name: f"model-{place}.safetensors" for place, name in enumerate(tensors)}
    for name, shard in where.items():
        write_safetensors(tmp_path / shard, {name: tensors[name]})
    index = {"weight_map": where}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    want = decoded(inside(EMBED, SCHEMES["MLX 4"][1]), Claims(width=WIDTH))
    same_bits(Model.open(str(tmp_path)).table().rows([1, 47]), want[[1, 47]])


def test_claims_of_modelopt_stand_in_a_file_of_their_own(tmp_path):
    # 5 bits in groups of 64, or 10 words in groups of 32 by what the config says: never guessed.
    parts = {"weight": integers((ROWS, 16)).view(np.uint32), "scales": floats((ROWS, 2))}
    parts["biases"] = parts["scales"]
    path = folder(tmp_path / "m", inside(EMBED, parts), {"hidden_size": None})
    with pytest.raises(UnsupportedError, match="fit several ways of packing"):
        Model.open(str(path)).table()
    said = {"quantization": {"bits": 4, "group_size": 64}}
    (path / "hf_quant_config.json").write_text(json.dumps(said))
    assert Model.open(str(path)).table().shape == (ROWS, 128)


def test_rows_that_tokens_share(capsys, tmp_path):
    tensors = {
        "embeddings": codes((9, WIDTH)).view(np.int8),
        "mapping": RNG.integers(0, 9, ROWS),
        "weights": floats(ROWS),
    }
    path = folder(tmp_path / "m", tensors)
    same_bits(Model.open(str(path)).table().rows([3, 47]), decoded(tensors)[[3, 47]])
    record = params(capsys, path)
    assert (record["rows"], record["d_model"], record["params"]) == (ROWS, WIDTH, 9 * WIDTH)
    assert record["tables"][0]["stored_bytes"] == 9 * WIDTH + 8 * ROWS + 4 * ROWS


def test_a_real_model_whose_tokens_share_rows(capsys):
    """A table of I8 in 10,000 rows for 276,326 tokens, with a factor for each token."""
    if importlib.util.find_spec("static_model") is None:
        pytest.skip("tokenlearn-static-model has wheels for some machines alone")
    path = package_file("static_model", "model/model.safetensors")
    raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    where = {
        name: (v["dtype"], *v["data_offsets"])
        for name, v in json.loads(raw[8 : 8 + size]).items()
        if name[0] != "_"
    }
    kinds = {"I8": np.int8, "I64": np.int64, "F64": np.float64, "F32": np.float32}
    parts = {
        name: np.frombuffer(raw[8 + size + a : 8 + size + b], kinds[dtype])
        for name, (dtype, a, b) in where.items()
    }
    ids = [0, 60_095, 184_747, 276_325]
    want = parts["embeddings"].reshape(-1, 64)[parts["mapping"][ids]].astype(np.float32)
    want *= parts["weights"][ids].astype(np.float32)[:, None]
    same_bits(Model.open(str(path.parent)).table().rows(ids), want)
    record = params(capsys, path.parent)
    assert (record["rows"], record["d_model"], record["tokens"]) == (276_326, 64, 276_326)
    assert record["params"] == 10_000 * 64
    assert record["tables"][0]["stored_bytes"] == sum(part.nbytes for part in parts.values())


UNKNOWN = {
    "codes": ({"weight": integers((ROWS, 16))}, "holds codes of a kind that is not known"),
    "parts": ({"weight": floats((ROWS, WIDTH)), "weight.rank": floats(3)}, "weight.rank"),
    "scales": (
        {"weight": small((ROWS, WIDTH)), "weight_scale": floats((7, 3))},
        "has scales of shape [7, 3], which do not fit it",
    ),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_not_understood_is_refused_and_never_printed(capsys, tmp_path, name):
    parts, said = UNKNOWN[name]
    path = str(folder(tmp_path / "m", inside(EMBED, parts)))
    for args in (["lookup", "w3"], ["neighbors", "w3"], ["stats"], ["lookup", "id:3"]):
        done = run(capsys, *args, "-m", path, "-q")
        assert (done.code, done.out) == (1, "")
        first, second = done.err.splitlines()
        assert first.startswith("error: ")
        assert said in first
        assert second.startswith("  try: ")
    record = params(capsys, path)
    assert (record["rows"], record["d_model"]) == (ROWS, WIDTH)
    assert any(said in note for note in record["notes"])
