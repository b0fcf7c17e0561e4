"""Packed integers against the arithmetic of their specifications, number by number."""

import json
from itertools import product

import numpy as np
import pytest
from packed_builders import bf16, decoded, same_bits, stream, table_of

from embtool.errors import FormatError
from embtool.packed import Claims, values

RNG = np.random.default_rng(11)


@pytest.mark.parametrize("bits", range(1, 9))
def test_a_stream_of_every_width(bits):
    numbers = RNG.integers(0, 1 << bits, (5, 96))
    packed = stream(numbers, bits).view(np.uint8)
    np.testing.assert_array_equal(values.codes(packed, bits, 90), numbers[:, :90])
    places = np.array([0, 1, 7, 8, 9, 31, 32, 50, 95])
    np.testing.assert_array_equal(values.codes_at(packed, bits, places * bits), numbers[:, places])


def test_int8_with_zero_points():
    stored = np.resize(np.arange(-128, 128), (10, 64)).astype(np.int8)
    scale = RNG.standard_normal((10, 1)).astype(np.float16)
    zero = RNG.integers(-128, 128, (10, 1)).astype(np.int8)
    tensors = {"m.weight": stored, "m.weight_scale": scale, "m.weight_zero_point": zero}
    want = (stored.astype(np.float32) - zero) * scale.astype(np.float32)
    same_bits(decoded(tensors), want)


# --- MLX -----------------------------------------------------------------------------------


@pytest.mark.format(
    "Quantized",
    kind="MLX, 2 to 8 bits",
    model="lmstudio-community/Qwen3-14B-MLX-4bit",
    does="read; rows are as wide as the model, not as the packed tensor",
)
@pytest.mark.parametrize(("bits", "group"), list(product([2, 3, 4, 5, 6, 8], [32, 64, 128])))
def test_mlx(bits, group):
    numbers = RNG.integers(0, 1 << bits, (6, 2 * group))
    numbers[0], numbers[1] = 0, (1 << bits) - 1
    _, scale = bf16(RNG.standard_normal((6, 2)))
    biases, bias = bf16(RNG.standard_normal((6, 2)))
    scale[2] = 0
    tensors = {"m.weight": stream(numbers, bits), "m.scales": bf16(scale)[0], "m.biases": biases}
    want = numbers.astype(np.float32) * np.repeat(scale, group, 1) + np.repeat(bias, group, 1)
    same_bits(decoded(tensors, Claims(width=2 * group)), want)
    same_bits(decoded(tensors, Claims(bits=bits, group=group)), want)


def test_mlx_alone_is_read_only_where_one_way_of_packing_fits():
    numbers = RNG.integers(0, 16, (3, 64))
    scale = np.ones((3, 1), np.float32)
    packed, _ = table_of({"m.weight": stream(numbers, 5), "m.scales": scale, "m.biases": scale})
    assert packed.scheme == "MLX: 5 bits, groups of 64"
    assert packed.shape == (3, 64)
    with pytest.raises(Exception, match="fit several ways of packing"):
        table_of({"m.weight": stream(numbers, 4), "m.scales": scale, "m.biases": scale})


# --- compressed-tensors --------------------------------------------------------------------


@pytest.mark.format(
    "Quantized",
    kind="compressed-tensors, packed integers",
    model="RedHatAI models whose embeddings are w4a16",
    does="read, with and without zero points",
)
@pytest.mark.parametrize(("bits", "zeros"), list(product([2, 3, 4, 5, 6, 8], [True, False])))
def test_compressed_tensors(bits, zeros):
    rows, width, groups, half = 70, 192, 3, 1 << (bits - 1)
    numbers = RNG.integers(-half, half, (rows, width))
    numbers[0], numbers[1] = -half, half - 1
    scale = RNG.standard_normal((rows, groups)).astype(np.float32)
    zero = RNG.integers(-half, half, (rows, groups)) if zeros else np.zeros((rows, groups), int)
    tensors = {
        "m.weight_packed": stream(numbers + half, bits, "<i4"),
        "m.weight_scale": scale,
        "m.weight_shape": np.array([rows, width]),
    }
    if zeros:
        down = stream((zero + half).T, bits, "<i4").T
        tensors["m.weight_zero_point"] = np.ascontiguousarray(down)
    want = (numbers - np.repeat(zero, 64, 1)).astype(np.float32) * np.repeat(scale, 64, 1)
    same_bits(decoded(tensors, Claims(bits=bits)), want)


def test_a_weight_shape_that_lies_is_refused():
    tensors = {
        "m.weight_packed": np.zeros((4, 8), np.int32),
        "m.weight_scale": np.ones((4, 1), np.float32),
        "m.weight_shape": np.array([5, 64]),
    }
    with pytest.raises(FormatError, match="is no table of 5 x 64"):
        table_of(tensors)


# --- GPTQ and AWQ --------------------------------------------------------------------------


@pytest.mark.format(
    "Quantized",
    kind="GPTQ",
    model="models quantized with their head",
    does="read, in either order of groups",
)
@pytest.mark.parametrize(("bits", "form"), list(product([2, 3, 4, 8], ["gptq", "gptq_v2", None])))
@pytest.mark.parametrize("ordered", [True, False])
def test_gptq(bits, form, ordered):
    width, rows, groups = 64, 96, 2
    numbers = RNG.integers(0, 1 << bits, (rows, width))
    zero = RNG.integers(1, 1 << bits, (rows, groups))
    scale = RNG.standard_normal((rows, groups)).astype(np.float16)
    group = np.arange(width) // 32 if ordered else RNG.permutation(np.arange(width) % groups)
    tensors = {
        "m.qweight": np.ascontiguousarray(stream(numbers, bits, "<i4").T),
        "m.qzeros": stream((zero - (form != "gptq_v2")).T, bits, "<i4"),
        "m.scales": np.ascontiguousarray(scale.T),
    }
    if not ordered:
        tensors["m.g_idx"] = group.astype(np.int32)
    want = (numbers - zero[:, group]).astype(np.float32) * scale.astype(np.float32)[:, group]
    same_bits(decoded(tensors, Claims(form=form)), want)


def test_a_group_that_is_not_there_is_refused():
    tensors = {
        "m.qweight": np.zeros((8, 32), np.int32),
        "m.qzeros": np.zeros((2, 4), np.int32),
        "m.scales": np.zeros((2, 32), np.float16),
        "m.g_idx": np.full(64, 2, np.int32),
    }
    packed, stored = table_of(tensors)
    assert not packed.by_row
    with pytest.raises(FormatError, match=r"m\.g_idx names groups 2 to 2, and there are 2"):
        packed.rows(stored.fetch, [0])


@pytest.mark.format(
    "Quantized",
    kind="AWQ",
    model="models quantized with their head",
    does="read",
)
def test_awq():
    width, rows, groups = 64, 48, 2
    numbers = RNG.integers(0, 16, (rows, width))
    zero = RNG.integers(0, 16, (rows, groups))
    scale = RNG.standard_normal((rows, groups)).astype(np.float16)
    order = [0, 2, 4, 6, 1, 3, 5, 7]

    def across(matrix):  # (rows, n) -> (n, rows / 8)
        return stream(matrix.reshape(rows // 8, 8, -1)[:, order].reshape(rows, -1).T, 4, "<i4")

    tensors = {
        "m.qweight": across(numbers),
        "m.qzeros": across(zero),
        "m.scales": np.ascontiguousarray(scale.T),
    }
    want = (numbers - np.repeat(zero, 32, 1)).astype(np.float32)
    same_bits(decoded(tensors), want * np.repeat(scale.astype(np.float32), 32, 1))


# --- bitsandbytes --------------------------------------------------------------------------


@pytest.mark.format(
    "Quantized",
    kind="bitsandbytes NF4 and FP4, scales nested or not",
    model="reubzdubz/Molmo7B_D_NF4Quant (its linear layers)",
    does="read",
)
@pytest.mark.parametrize("run", [32, 64, 128, 512])
@pytest.mark.parametrize("nested", [True, False])
def test_four_bits_of_bitsandbytes(run, nested):
    rows, width = 24, 128
    numbers = RNG.integers(0, 16, (rows * width))
    levels = np.sort(RNG.standard_normal(16)).astype(np.float32)
    blocks = rows * width // run
    state = {"quant_type": "nf4", "blocksize": run, "dtype": "bfloat16", "shape": [rows, width]}
    tensors = {"m.weight": (numbers[0::2] << 4 | numbers[1::2]).astype(np.uint8).reshape(-1, 1)}
    maxima = np.abs(RNG.standard_normal(blocks)).astype(np.float32)
    tensors |= {"m.weight.absmax": maxima, "m.weight.quant_map": levels}
    if nested:
        table = np.sort(RNG.standard_normal(256)).astype(np.float32)
        codes = RNG.integers(0, 256, blocks).astype(np.uint8)
        outer = np.abs(RNG.standard_normal(-(-blocks // 16))).astype(np.float32)
        maxima = table[codes] * np.repeat(outer, 16)[:blocks] + np.float32(0.0625)
        tensors |= {"m.weight.absmax": codes, "m.weight.nested_absmax": outer}
        tensors["m.weight.nested_quant_map"] = table
        state |= {"nested_blocksize": 16, "nested_dtype": "float32", "nested_offset": 0.0625}
    raw = np.frombuffer(json.dumps(state).encode(), np.uint8)
    tensors["m.weight.quant_state.bitsandbytes__nf4"] = raw
    want = (levels[numbers] * np.repeat(maxima, run)).reshape(rows, width)
    same_bits(decoded(tensors), want)


@pytest.mark.format(
    "Quantized",
    kind="bitsandbytes INT8",
    model="models loaded with `load_in_8bit` and saved",
    does="read",
)
def test_int8_of_bitsandbytes():
    numbers = np.resize(np.arange(-128, 128), (6, 128)).astype(np.int8)
    scale = np.array([0, 1, 127, 1e-40, 3.3, 1e30], np.float32)
    want = numbers.astype(np.float32) * scale[:, None] * np.float32(1 / 127)
    same_bits(decoded({"m.weight": numbers, "m.SCB": scale}), want)
