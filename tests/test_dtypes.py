"""Every pattern of every small float, decoded a second time by the arithmetic of its format."""

import math
import struct
import tracemalloc

import numpy as np
import pytest

from embtool import dtypes
from embtool.errors import FormatError, UnsupportedError

# name: bits of the exponent, bits of the mantissa, and whether the format has infinities
FORMATS = {
    "BF16": (8, 7, True),
    "F16": (5, 10, True),
    "F8_E5M2": (5, 2, True),
    "F8_E4M3": (4, 3, False),
}


def float32_bits(name: str, code: int) -> int:
    """The float32 pattern of a code: sign x 2^(exponent - bias) x 1.mantissa, done in float64."""
    exponent_bits, mantissa_bits, has_infinity = FORMATS[name]
    sign = code >> (exponent_bits + mantissa_bits)
    exponent = code >> mantissa_bits & (1 << exponent_bits) - 1
    mantissa = code & (1 << mantissa_bits) - 1
    top = (1 << exponent_bits) - 1
    if exponent == top and (has_infinity or mantissa == (1 << mantissa_bits) - 1):
        return sign << 31 | 0xFF << 23 | mantissa << (23 - mantissa_bits)
    bias = (1 << (exponent_bits - 1)) - 1
    fraction = mantissa / (1 << mantissa_bits) + (1 if exponent else 0)
    value = math.ldexp(fraction, max(exponent, 1) - bias)
    packed: int = struct.unpack("<I", struct.pack("<f", -value if sign else value))[0]
    return packed


def all_codes(name: str) -> np.ndarray:
    """Every code once, as one row of stored bytes."""
    nbytes = dtypes.block(name)[1]
    codes = np.arange(256**nbytes, dtype=f"<u{nbytes}")
    return codes.view(np.uint8).reshape(1, -1)


@pytest.mark.format(
    "GGUF",
    kind="tables in F32, F16, BF16",
    model="GGUF files that were not quantized",
    does="each of the 65,536 patterns as an independent decoder has it",
)
@pytest.mark.parametrize("name", FORMATS)
def test_every_pattern(name):
    got = dtypes.decode(name, all_codes(name)).view(np.uint32)[0]
    want = [float32_bits(name, code) for code in range(len(got))]
    assert got.tolist() == want


@pytest.mark.parametrize("name", FORMATS)
def test_every_pattern_at_an_odd_address(name):
    stored = all_codes(name)
    shifted = np.frombuffer(b"\0" + stored.tobytes(), np.uint8)[1:].reshape(1, -1)
    got = dtypes.decode(name, shifted).view(np.uint32)
    assert got.tolist() == dtypes.decode(name, stored).view(np.uint32).tolist()


@pytest.mark.parametrize("name", ["F16", "F8_E5M2", "F8_E4M3"])
def test_finite_patterns_alone_and_specials_alone(name):
    """The special codes are looked for a step at a time, of each sign apart."""
    stored = all_codes(name).reshape(-1, dtypes.block(name)[1])
    for row in range(0, len(stored), 251):
        got = int(dtypes.decode(name, stored[row : row + 1]).view(np.uint32)[0, 0])
        assert got == float32_bits(name, row)


@pytest.mark.parametrize(
    ("name", "stored", "value"),
    [
        ("F32", "0000c03f", 1.5),
        ("F32", "0100807f", math.nan),
        ("F64", "000000000000f83f", 1.5),
        ("F64", "9a9999999999b93f", float(np.float32(0.1))),
        ("F64", "0000000000000080", -0.0),
        ("F64", "a0c8eb85f3cce17f", math.inf),  # 1e308 rounds to infinity
        ("F64", "000000000000f8ff", math.nan),
        ("BF16", "c03f", 1.5),
        ("F16", "003e", 1.5),
        ("F16", "0100", 2.0**-24),
        ("F16", "ff7b", 65504.0),
        ("F16", "007c", math.inf),
        ("F8_E5M2", "7b", 57344.0),
        ("F8_E5M2", "7c", math.inf),
        ("F8_E4M3", "7e", 448.0),
        ("F8_E4M3", "01", 2.0**-9),
        ("F8_E4M3", "ff", math.nan),
    ],
)
def test_known_values(name, stored, value):
    got = dtypes.decode(name, np.frombuffer(bytes.fromhex(stored), np.uint8).reshape(1, -1))
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, np.array([[value]], np.float32))
    if not math.isnan(value):
        assert math.copysign(1, got[0, 0]) == math.copysign(1, value)


def test_float32_keeps_its_bits():
    stored = np.arange(256, dtype=np.uint8).reshape(4, 64)
    assert dtypes.decode("F32", stored).tobytes() == stored.tobytes()


def test_out_is_filled_and_returned():
    stored = np.array([[0x80, 0x3F, 0x00, 0xC0], [0x00, 0x00, 0x80, 0xBF]], np.uint8)
    out = np.full((3, 2), 7, np.float32)
    got = dtypes.decode("BF16", stored, out)
    assert got.base is out
    assert got.tolist() == [[1.0, -2.0], [0.0, -1.0]]
    assert out[2].tolist() == [7, 7]


def test_out_must_fit():
    stored = np.zeros((2, 8), np.uint8)
    unfit = (np.zeros((2, 3), np.float32), np.zeros((2, 8), np.float32)[:, ::2])
    for out in (*unfit, np.zeros((1, 4), np.float32)):
        with pytest.raises(ValueError, match="does not fit"):
            dtypes.decode("BF16", stored, out)
    with pytest.raises(ValueError, match="does not fit"):
        dtypes.decode("Q8_0", np.zeros((2, 33), np.uint8))


@pytest.mark.parametrize("name", ["F32", "F64", "BF16", "F16", "F8_E4M3", "F8_E5M2", "Q8_0"])
@pytest.mark.parametrize("rows", [0, 1, 300])
def test_any_number_of_rows(name, rows):
    """More elements than one step holds come out as row by row."""
    rng = np.random.default_rng(rows)
    stored = rng.integers(0, 256, (rows, dtypes.row_nbytes(name, 1024)), np.uint8)
    got = dtypes.decode(name, stored)
    assert got.shape == (rows, 1024)
    for row in range(0, rows, 37):
        one = dtypes.decode(name, stored[row : row + 1])
        np.testing.assert_array_equal(got[row : row + 1], one)


@pytest.mark.parametrize("name", ["F32", "F64", "BF16", "F16", "F8_E4M3", "F8_E5M2", "Q8_0"])
def test_no_large_temporary(name):
    stored = np.zeros((4096, dtypes.row_nbytes(name, 1024)), np.uint8)
    out = np.empty((4096, 1024), np.float32)
    dtypes.decode(name, stored, out)
    tracemalloc.start()
    dtypes.decode(name, stored, out)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


def test_rows_wider_than_a_step():
    stored = np.zeros((3, 2 * 70_000), np.uint8)
    stored[2, -1] = 0x40
    got = dtypes.decode("BF16", stored)
    assert got[2, -1] == 2.0
    assert np.count_nonzero(got) == 1


def test_block_of_every_safetensors_dtype():
    bits = {
        **dict.fromkeys(("BOOL", "I8", "U8", "F8_E4M3", "F8_E5M2", "F8_E8M0"), 8),
        **dict.fromkeys(("F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
        **dict.fromkeys(("I16", "U16", "F16", "BF16"), 16),
        **dict.fromkeys(("I32", "U32", "F32"), 32),
        **dict.fromkeys(("I64", "U64", "F64", "C64"), 64),
        **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6),
        "F4": 4,
    }
    for name, width in bits.items():
        elements, nbytes = dtypes.block(name)
        assert nbytes * 8 == elements * width, name


def test_row_nbytes():
    assert dtypes.row_nbytes("BF16", 7168) == 14336
    assert dtypes.row_nbytes("Q8_0", 640) == 680
    assert dtypes.row_nbytes("F4", 6) == 3
    with pytest.raises(FormatError) as caught:
        dtypes.row_nbytes("Q8_0", 100)
    assert caught.value.message == "a row of 100 elements is no multiple of Q8_0's block of 32"


def test_unknown_dtype_is_named():
    with pytest.raises(UnsupportedError) as caught:
        dtypes.block("F7_E1M5")
    assert caught.value.message == "the dtype 'F7_E1M5' is not known"


def test_known_dtype_that_is_not_read_is_named():
    with pytest.raises(UnsupportedError) as caught:
        dtypes.decode("I8", np.zeros((1, 4), np.uint8))
    assert caught.value.message == "a table stored as I8 is not read"


def test_nothing_to_decode_still_names_the_dtype():
    with pytest.raises(UnsupportedError):
        dtypes.decode("I8", np.zeros((0, 4), np.uint8))
