"""Packed tables against the arithmetic of their specifications, number by number."""

import json
from itertools import product

import numpy as np
import pytest
from packed_builders import Stored, decoded, rounded_to_bf16, same_bits, table_of

from embtool.errors import FormatError
from embtool.packed import Claims, values

RNG = np.random.default_rng(11)
# OCP Microscaling Formats 1.0, table 5, and its signs.
E2M1 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
E2M1 += [-value for value in E2M1]


def bf16(values):
    """float32 numbers as a BF16 tensor, and what they are once rounded to it."""
    rounded = rounded_to_bf16(np.asarray(values, np.float32))
    return ("BF16", (rounded.view(np.uint32) >> 16).astype(np.uint16)), rounded


def stream(numbers, bits, words="<u4"):
    """Integers (n, count) as one long little-endian integer a row, cut into words."""
    nbytes = -(-numbers.shape[1] * bits // 32) * 4
    rows = [sum(int(q) << bits * i for i, q in enumerate(row)) for row in numbers]
    raw = b"".join(row.to_bytes(nbytes, "little") for row in rows)
    return np.frombuffer(raw, words).reshape(len(numbers), -1).astype(words[1:])


def e4m3(code):
    """FP8 E4M3 by its definition (arXiv:2209.05433): bias 7, no infinity."""
    sign, exponent, mantissa = -1.0 if code & 128 else 1.0, code >> 3 & 15, code & 7
    if exponent == 15 and mantissa == 7:
        return np.nan
    size = mantissa / 8 * 2.0**-6 if exponent == 0 else (1 + mantissa / 8) * 2.0 ** (exponent - 7)
    return sign * size


ALL_E4M3 = np.array([e4m3(code) for code in range(256)], np.float32)


@pytest.mark.parametrize("bits", range(1, 9))
def test_a_stream_of_every_width(bits):
    numbers = RNG.integers(0, 1 << bits, (5, 96))
    packed = stream(numbers, bits).view(np.uint8)
    np.testing.assert_array_equal(values.codes(packed, bits, 90), numbers[:, :90])
    places = np.array([0, 1, 7, 8, 9, 31, 32, 50, 95])
    np.testing.assert_array_equal(values.codes_at(packed, bits, places * bits), numbers[:, places])


def test_all_four_bit_floats_low_half_first():
    packed = np.arange(256, dtype=np.uint8)[None]
    want = [E2M1[half] for byte in range(256) for half in (byte & 15, byte >> 4)]
    out = np.empty((1, 512), np.float32)
    values.e2m1(packed, out)
    same_bits(out[0], np.array(want))


def test_all_exponents():
    got = values.scales("F8_E8M0", np.arange(256, dtype=np.uint8)[None])[0]
    assert [got[0], got[1], got[126], got[127], got[128], got[254]] == [
        2.0**-127,
        2.0**-126,
        0.5,
        1.0,
        2.0,
        2.0**127,
    ]
    assert np.isnan(got[255])


# --- FP8 and INT8 with scales --------------------------------------------------------------


@pytest.mark.format(
    "Quantized",
    kind="FP8 with a scale for each block of 128 x 128",
    model="deepseek-ai/DeepSeek-V3 (its linear layers)",
    does="read by row and block",
)
@pytest.mark.parametrize(("rows", "width"), [(256, 256), (300, 200), (129, 384), (5, 64)])
@pytest.mark.parametrize("name", ["weight_scale_inv", "weight_scale", "scale"])
def test_fp8_in_blocks_of_128(rows, width, name):
    stored = RNG.integers(0, 256, (rows, width)).astype(np.uint8)
    scale = RNG.standard_normal((-(-rows // 128), -(-width // 128))).astype(np.float32)
    scale[0, 0] = 0
    got = decoded({"m.weight": ("F8_E4M3", stored), f"m.{name}": scale})
    per_number = np.kron(scale, np.ones((128, 128), np.float32))[:rows, :width]
    same_bits(got, ALL_E4M3[stored] * per_number)


def test_the_config_s_block_decides_where_several_fit():
    stored = RNG.integers(0, 126, (64, 64)).astype(np.uint8)
    scale = RNG.standard_normal((2, 4)).astype(np.float32)
    tensors = {"m.weight": ("F8_E4M3", stored), "m.weight_scale_inv": scale}
    got = decoded(tensors, Claims(block=(32, 16)))
    same_bits(got, ALL_E4M3[stored] * np.kron(scale, np.ones((32, 16), np.float32)))
    with pytest.raises(Exception, match=r"m.weight .* has scales of shape \[2, 4\]"):
        table_of(tensors)


@pytest.mark.format(
    "Quantized",
    kind="FP8 with a scale for all, for a row or for a run",
    model="nvidia/Llama-3.1-70B-Instruct-FP8 (its linear layers)",
    does="read, whichever the shape of the scales says",
)
@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (40,), (40, 1), (40, 3)])
def test_fp8_with_a_scale_for_all_for_a_row_or_for_a_run(shape):
    stored = RNG.integers(0, 256, (40, 96)).astype(np.uint8)
    tensor, scale = bf16(RNG.standard_normal(shape))
    got = decoded({"m.weight": ("F8_E4M3", stored), "m.weight_scale": tensor})
    grid = scale.reshape(40, -1) if scale.size > 1 else scale.reshape(1, 1)
    each = np.repeat(grid, 96 // grid.shape[1], axis=1)
    same_bits(got, ALL_E4M3[stored] * each)


@pytest.mark.format(
    "Quantized",
    kind="MXFP8",
    model="mlx-community models of mode mxfp8",
    does="read by the OCP specification",
)
def test_mxfp8_has_exponents_for_32_numbers():
    stored = RNG.integers(0, 256, (9, 64)).astype(np.uint8)
    exponents = np.array([[0, 255], *RNG.integers(100, 150, (8, 2))], np.uint8)
    got = decoded({"m.weight": ("F8_E4M3", stored), "m.weight_scale": exponents})
    scale = np.ldexp(np.float32(1), exponents[1:].astype(int) - 127)
    same_bits(got[1:], ALL_E4M3[stored[1:]] * np.repeat(scale, 32, axis=1))
    assert np.isnan(got[0, 32:]).all()


def test_int8_with_zero_points():
    stored = np.resize(np.arange(-128, 128), (10, 64)).astype(np.int8)
    scale = RNG.standard_normal((10, 1)).astype(np.float16)
    zero = RNG.integers(-128, 128, (10, 1)).astype(np.int8)
    tensors = {"m.weight": stored, "m.weight_scale": scale, "m.weight_zero_point": zero}
    want = (stored.astype(np.float32) - zero) * scale.astype(np.float32)
    same_bits(decoded(tensors), want)


# --- NVFP4, MXFP4 --------------------------------------------------------------------------


@pytest.mark.format(
    "Quantized",
    kind="NVFP4, of ModelOpt or compressed-tensors",
    model="nvidia/DeepSeek-V3.1-NVFP4 (its linear layers)",
    does="read with both scales",
)
@pytest.mark.parametrize(
    "names", [("weight", "weight_scale_2"), ("weight_packed", "weight_global_scale")]
)
def test_nvfp4(names):
    packed = np.resize(np.arange(256), (16, 32)).astype(np.uint8)
    codes = np.resize(np.arange(256), (16, 4)).astype(np.uint8)
    second = np.array([0.37], np.float32)
    tensors = {f"m.{names[0]}": packed, "m.weight_scale": ("F8_E4M3", codes)}
    got = decoded(tensors | {f"m.{names[1]}": second})
    scale = ALL_E4M3[codes]
    scale = scale * second if names[1] == "weight_scale_2" else scale / second
    numbers = np.array(E2M1, np.float32)[np.stack([packed & 15, packed >> 4], -1)].reshape(16, 64)
    same_bits(got, numbers * np.repeat(scale, 16, axis=1))


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


# --- rows shared by tokens -----------------------------------------------------------------


@pytest.mark.format(
    "Quantized",
    kind="tokens that share rows",
    model="minishlab models with a quantized vocabulary (`mapping`)",
    does="each token gives its row; `params` counts the distinct ones",
)
def test_tokens_that_share_rows():
    rows = RNG.integers(-127, 128, (5, 8)).astype(np.int8)
    mapping = np.array([4, 0, 0, 3, 1, 2, 4], np.int64)
    factors = RNG.standard_normal(7).astype(np.float32)
    tensors = {"embeddings": rows, "mapping": mapping, "weights": factors}
    packed, _ = table_of(tensors)
    assert (packed.shape, packed.shared, packed.params) == ((7, 8), (5, 8), 40)
    assert packed.nbytes == 40 + 56 + 28
    same_bits(decoded(tensors), rows[mapping].astype(np.float32) * factors[:, None])
    del tensors["weights"]
    same_bits(decoded(tensors), rows[mapping].astype(np.float32))


@pytest.mark.parametrize("row", [-1, 5, 1 << 62])
def test_a_mapping_that_leaves_the_table_is_refused(row):
    tensors = {"embeddings": np.ones((5, 8), np.int8), "mapping": np.array([0, row])}
    packed, stored = table_of(tensors)
    with pytest.raises(FormatError, match=f"mapping names row {row}, and embeddings has 5 rows"):
        packed.rows(stored.fetch, range(2))


# --- only what is needed is read -----------------------------------------------------------


def test_a_row_costs_its_own_bytes_and_its_scales():
    numbers = RNG.integers(0, 16, (1000, 128))
    scale = np.ones((1000, 2), np.float32)
    tensors = {"m.weight": stream(numbers, 4), "m.scales": scale, "m.biases": scale}
    packed, stored = table_of(tensors, Claims(width=128))
    packed.rows(stored.fetch, [5, 999])
    assert stored.read == {"m.weight": 128, "m.scales": 16, "m.biases": 16}


def test_a_row_in_blocks_costs_one_row_of_scales():
    stored = RNG.integers(0, 126, (1280, 256)).astype(np.uint8)
    scale = np.ones((10, 2), np.float32)
    packed, held = table_of({"m.weight": ("F8_E4M3", stored), "m.weight_scale_inv": scale})
    packed.rows(held.fetch, [0, 1, 127, 128])
    assert held.read == {"m.weight": 1024, "m.weight_scale_inv": 16}


def test_memory_beside_the_rows_stays_bounded():
    import tracemalloc

    held = Stored(
        {
            "m.weight": np.zeros((40_000, 128), np.uint32),
            "m.scales": np.ones((40_000, 16), np.float16),
        }
    )
    held.infos["m.biases"] = held.infos["m.scales"]
    from embtool.packed import recognise

    packed = recognise("m.weight", held.infos, held.fetch, Claims(width=1024))
    out = np.empty((20_000, 1024), np.float32)
    tracemalloc.start()
    packed.rows(held.fetch, range(20_000), out)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 << 20
