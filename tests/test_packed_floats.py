"""FP8 and FP4 with their scales against the arithmetic of their specifications."""

import numpy as np
import pytest
from packed_builders import bf16, decoded, same_bits, table_of

from embtool.packed import Claims, values

RNG = np.random.default_rng(11)
# OCP Microscaling Formats 1.0, table 5, and its signs.
E2M1 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
E2M1 += [-value for value in E2M1]


def e4m3(code):
    """FP8 E4M3 by its definition (arXiv:2209.05433): bias 7, no infinity."""
    sign, exponent, mantissa = -1.0 if code & 128 else 1.0, code >> 3 & 15, code & 7
    if exponent == 15 and mantissa == 7:
        return np.nan
    size = mantissa / 8 * 2.0**-6 if exponent == 0 else (1 + mantissa / 8) * 2.0 ** (exponent - 7)
    return sign * size


ALL_E4M3 = np.array([e4m3(code) for code in range(256)], np.float32)


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


# --- FP8 with scales -----------------------------------------------------------------------


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
