"""Packed schemes against arithmetic by hand and, in every bit, against the gguf package."""

import mmap

import gguf as peer
import numpy as np
import pytest

from embtool import dtypes, gguf, quant

SCHEMES = sorted(quant.SCHEMES)
# The package has no quantizer for the K and IQ types.
QUANTIZERS = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "TQ1_0", "TQ2_0", "MXFP4"]


def assert_same_bits(got, want):
    """Equal float32 patterns; any NaN equals any other, whose payload no format defines."""
    nan = np.isnan(want)
    np.testing.assert_array_equal(np.isnan(got), nan)
    np.testing.assert_array_equal(got.view(np.uint32)[~nan], want.view(np.uint32)[~nan])


def by_the_package(name, stored):
    with np.errstate(all="ignore"):
        return peer.quants.dequantize(stored, peer.GGMLQuantizationType[name])


def random_rows(name, rows, blocks):
    nbytes = quant.BLOCKS[name][1]
    return np.random.default_rng(rows).integers(0, 256, (rows, blocks * nbytes), np.uint8)


def test_block_sizes_are_the_package_s():
    for kind, size in peer.GGML_QUANT_SIZES.items():
        assert dtypes.block(kind.name) == size, kind.name


@pytest.mark.format(
    "GGUF",
    kind="tables in Q4_0 Q4_1 Q5_0 Q5_1 Q8_0, Q2_K to Q6_K, IQ4_NL, IQ4_XS, MXFP4, TQ1_0, TQ2_0",
    model="every GGUF repository; gpt-oss (MXFP4), BitNet (TQ1_0)",
    does="decoded to the same bits as by the `gguf` package",
)
@pytest.mark.parametrize("name", SCHEMES)
def test_random_blocks(name):
    """All bit patterns, so also scales that are infinite, NaN or subnormal."""
    stored = random_rows(name, 300, 4)
    assert_same_bits(dtypes.decode(name, stored), by_the_package(name, stored))


@pytest.mark.parametrize("name", SCHEMES)
def test_one_block(name):
    stored = random_rows(name, 1, 1)
    assert_same_bits(dtypes.decode(name, stored), by_the_package(name, stored))


@pytest.mark.parametrize("name", SCHEMES)
def test_an_odd_address_and_rows_that_lie_apart(name):
    nbytes = quant.BLOCKS[name][1]
    stored = random_rows(name, 64, 3)
    wide = np.zeros((64, 3 * nbytes + 1), np.uint8)
    wide[:, 1:] = stored
    np.testing.assert_array_equal(
        dtypes.decode(name, wide[:, 1:]).view(np.uint32),
        dtypes.decode(name, stored).view(np.uint32),
    )


@pytest.mark.parametrize("name", SCHEMES)
def test_out_is_filled_and_no_more(name):
    stored = random_rows(name, 5, 2)
    out = np.full((7, 2 * quant.BLOCKS[name][0]), 3, np.float32)
    dtypes.decode(name, stored, out)
    np.testing.assert_array_equal(out[:5], dtypes.decode(name, stored))
    assert (out[5:] == 3).all()


def test_q8_0_by_hand():
    block = np.float16(0.5).tobytes() + np.arange(-16, 16, dtype=np.int8).tobytes()
    got = dtypes.decode("Q8_0", np.frombuffer(block, np.uint8).reshape(1, -1))
    assert got.tolist() == [[i / 2 for i in range(-16, 16)]]


def test_q4_0_by_hand():
    """Byte i holds element i below and element i + 16 above, both plus 8."""
    block = np.float16(2).tobytes() + bytes(range(0xF0, 0x100))
    got = dtypes.decode("Q4_0", np.frombuffer(block, np.uint8).reshape(1, -1))
    assert got.tolist() == [[2.0 * (i - 8) for i in range(16)] + [14.0] * 16]


def test_q6_k_by_hand():
    low = bytes([0x21]) + bytes(127)  # element 0 is 1, element 64 is 2, in their low bits
    high = bytes([0b11_00_01_10]) + bytes(63)  # elements 0, 32, 64, 96: 2, 1, 0, 3
    scales = np.array([1, 2, 3, 4, -5, *range(6, 17)], np.int8).tobytes()
    block = low + high + scales + np.float16(0.25).tobytes()
    got = dtypes.decode("Q6_K", np.frombuffer(block, np.uint8).reshape(1, -1))[0]
    assert got[0] == 0.25 * 1 * (1 + 2 * 16 - 32)
    assert got[32] == 0.25 * 3 * (0 + 1 * 16 - 32)
    assert got[64] == 0.25 * -5 * (2 + 0 * 16 - 32)
    assert got[96] == 0.25 * 7 * (0 + 3 * 16 - 32)
    assert got[255] == 0.25 * 16 * -32


def gemma_rows(path, ids):
    """The stored bytes of rows of Gemma's table: (n, 680)."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole:
        table = gguf.parse(whole, path.name).tensors["token_embd.weight"]
        nbytes = dtypes.row_nbytes(table.dtype, table.shape[1])
        starts = [table.start + row * nbytes for row in ids]
        return np.frombuffer(b"".join(whole[at : at + nbytes] for at in starts), np.uint8).reshape(
            len(ids), nbytes
        )


@pytest.mark.format(
    "GGUF",
    kind="a Q8_0 table",
    model="gemma-3-270m",
    does="decoded to the same bits as by the `gguf` package",
)
def test_gemma_s_own_rows(gemma_path):
    ids = range(0, 262_144, 257)
    stored = gemma_rows(gemma_path, ids)
    got = dtypes.decode("Q8_0", stored)
    assert got.shape == (1021, 640)
    assert_same_bits(got, by_the_package("Q8_0", stored))


@pytest.mark.parametrize("name", QUANTIZERS)
def test_gemma_s_rows_requantized(name, gemma_path):
    rows = dtypes.decode("Q8_0", gemma_rows(gemma_path, range(1000, 262_144, 1024)))
    rows = rows.reshape(-1, 1280)  # 640 is no multiple of 256
    stored = peer.quants.quantize(rows, peer.GGMLQuantizationType[name])
    got = dtypes.decode(name, stored)
    assert_same_bits(got, by_the_package(name, stored))
    error = np.abs(got - rows).max(axis=1)
    # Two ternary levels lose most of a value; no scheme is off by more than its largest.
    assert (error <= np.abs(rows).max(axis=1)).all()


@pytest.mark.parametrize("name", ["Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS"])
def test_gemma_s_bytes_as_another_scheme(name, gemma_path):
    """Where the package cannot quantize: real integers, and scales as they come."""
    nbytes = quant.BLOCKS[name][1]
    raw = gemma_rows(gemma_path, range(500, 262_144, 2048)).ravel()
    stored = raw[: raw.size // nbytes * nbytes].reshape(-1, nbytes)
    assert_same_bits(dtypes.decode(name, stored), by_the_package(name, stored))
