"""Packed integers with scales -> float32, one function a scheme of GGUF.

Every function takes blocks: (n, bytes of a block) uint8, and fills out: (n, elements) float32,
C-contiguous. The layouts are those of ggml (ggml-common.h, ggml-quants.c); results are equal to
its reference decoder in every bit, so the order of the float32 operations is part of the format.

A value is mostly scale x integer, or scale x integer - minimum. Blocks of 32 have their own
scale; blocks of 256 (the K types) have one float16 for all, and small integers that scale groups
of 16 or 32. Packed integers lie in planes: a run of bytes holds in its lowest bits as many
elements as it has bytes, in the next bits the elements after those, and so on.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]
U8 = NDArray[np.uint8]

# Elements and bytes of a block, also of the schemes that are not decoded here.
BLOCKS = {
    "Q4_0": (32, 18),
    "Q4_1": (32, 20),
    "Q5_0": (32, 22),
    "Q5_1": (32, 24),
    "Q8_0": (32, 34),
    "Q8_1": (32, 40),
    "Q2_K": (256, 84),
    "Q3_K": (256, 110),
    "Q4_K": (256, 144),
    "Q5_K": (256, 176),
    "Q6_K": (256, 210),
    "Q8_K": (256, 292),
    "IQ1_S": (256, 50),
    "IQ1_M": (256, 56),
    "IQ2_XXS": (256, 66),
    "IQ2_XS": (256, 74),
    "IQ2_S": (256, 82),
    "IQ3_XXS": (256, 98),
    "IQ3_S": (256, 110),
    "IQ4_NL": (32, 18),
    "IQ4_XS": (256, 136),
    "MXFP4": (32, 17),
    "NVFP4": (64, 36),
    "TQ1_0": (256, 54),
    "TQ2_0": (256, 66),
    "Q1_0": (128, 18),
}

# The 16 levels of IQ4_NL and IQ4_XS, and twice the 16 values of FP4 E2M1 (OCP Microscaling
# Formats 1.0), whose negative zero ggml reads as zero.
_IQ4_LEVELS = np.array(
    [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32
)
_E2M1_DOUBLED = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], np.float32)


def q8_0(blocks: U8, out: F32) -> None:
    """A float16 scale, then 32 int8."""
    np.copyto(out, blocks[:, 2:].view(np.int8))
    np.multiply(out, _half(blocks, 0), out=out)


def q4_0(blocks: U8, out: F32) -> None:
    """A float16 scale, then 32 x 4 bits from -8 to 7."""
    q = _planes(blocks[:, None, 2:], 4)  # (n, 1, 2, 16)
    _fill(out, q.view(np.int8) - np.int8(8))
    np.multiply(out, _half(blocks, 0), out=out)


def q4_1(blocks: U8, out: F32) -> None:
    """A float16 scale, a float16 minimum, then 32 x 4 bits from 0 to 15."""
    _fill(out, _planes(blocks[:, None, 4:], 4))  # (n, 1, 2, 16)
    np.multiply(out, _half(blocks, 0), out=out)
    np.add(out, _half(blocks, 2), out=out)


def q5_0(blocks: U8, out: F32) -> None:
    """A float16 scale, 32 x the fifth bit, then 32 x 4 bits; from -16 to 15."""
    q = _five_bits(blocks[:, 2:6], blocks[:, 6:])
    _fill(out, q.view(np.int8) - np.int8(16))
    np.multiply(out, _half(blocks, 0), out=out)


def q5_1(blocks: U8, out: F32) -> None:
    """A float16 scale, a float16 minimum, 32 x the fifth bit, then 32 x 4 bits; from 0 to 31."""
    _fill(out, _five_bits(blocks[:, 4:8], blocks[:, 8:]))
    np.multiply(out, _half(blocks, 0), out=out)
    np.add(out, _half(blocks, 2), out=out)


def q2_k(blocks: U8, out: F32) -> None:
    """16 x (4 bits scale, 4 bits minimum), 256 x 2 bits, the float16 unit of each."""
    _fill(out, _planes(blocks[:, 16:80].reshape(-1, 2, 32), 2))  # (n, 2, 4, 32)
    scales = blocks[:, :16]
    _by_group(np.multiply, out, _half(blocks, 80) * (scales & 15))
    _by_group(np.subtract, out, _half(blocks, 82) * (scales >> 4))


def q3_k(blocks: U8, out: F32) -> None:
    """256 x the third bit, 256 x 2 bits, 16 x 6 bits of scale, a float16; from -4 to 3.

    The third bit is stored so that 0 means minus 4.
    """
    high = _planes(blocks[:, None, :32], 1, up=2)  # (n, 1, 8, 32)
    q = _planes(blocks[:, 32:96].reshape(-1, 2, 32), 2)  # (n, 2, 4, 32)
    np.bitwise_or(q, high.reshape(q.shape), out=q)
    _fill(out, q.view(np.int8) - np.int8(4))
    # Three words: the low 4 bits of scales 0-3 and 8-11, of 4-7 and 12-15, then the high 2 of all.
    a, b, c = _words(blocks[:, 96:108])
    scales = np.empty((len(blocks), 4), "<u4")
    for i, low in enumerate((a, b, a >> 4, b >> 4)):
        scales[:, i] = (low & 0x0F0F0F0F) | (c >> 2 * i & 0x03030303) << 4
    _by_group(np.multiply, out, _half(blocks, 108) * (scales.view(np.int8) - np.int8(32)))


def q4_k(blocks: U8, out: F32) -> None:
    """The float16 units of scale and minimum, 8 x 6 bits of each, 256 x 4 bits."""
    _fill(out, _planes(blocks[:, 16:].reshape(-1, 4, 32), 4))  # (n, 4, 2, 32)
    _scale_and_minimum(blocks, out)


def q5_k(blocks: U8, out: F32) -> None:
    """As Q4_K, with 256 x the fifth bit before the 256 x 4 bits."""
    high = _planes(blocks[:, None, 16:48], 1, up=4)  # (n, 1, 8, 32)
    q = _planes(blocks[:, 48:].reshape(-1, 4, 32), 4)  # (n, 4, 2, 32)
    np.bitwise_or(q, high.reshape(q.shape), out=q)
    _fill(out, q)
    _scale_and_minimum(blocks, out)


def q6_k(blocks: U8, out: F32) -> None:
    """256 x the low 4 bits, 256 x the high 2, 16 x int8 scale, a float16; from -32 to 31."""
    q = _planes(blocks[:, :128].reshape(-1, 2, 64), 4)  # (n, 2, 2, 64)
    high = _planes(blocks[:, 128:192].reshape(-1, 2, 32), 2, up=4)  # (n, 2, 4, 32)
    np.bitwise_or(q, high.reshape(q.shape), out=q)
    _fill(out, q.view(np.int8) - np.int8(32))
    _by_group(np.multiply, out, _half(blocks, 208) * blocks[:, 192:208].view(np.int8))


def iq4_nl(blocks: U8, out: F32) -> None:
    """A float16 scale, then 32 x 4 bits that number one of 16 levels."""
    _look_up(_IQ4_LEVELS, _planes(blocks[:, None, 2:], 4), out)  # (n, 1, 2, 16)
    np.multiply(out, _half(blocks, 0), out=out)


def iq4_xs(blocks: U8, out: F32) -> None:
    """A float16, 8 x the high 2 and 8 x the low 4 bits of a scale, 256 x 4 bits of level."""
    _look_up(_IQ4_LEVELS, _planes(blocks[:, 8:].reshape(-1, 8, 16), 4), out)  # (n, 8, 2, 16)
    low = (blocks[:, 4:8, None] >> np.array([0, 4], np.uint8)).reshape(-1, 8) & 15
    high = blocks[:, 2:4].view("<u2") >> np.arange(0, 16, 2, dtype=np.uint16) & 3  # (n, 8)
    scales = (low | high.astype(np.uint8) << 4).view(np.int8) - np.int8(32)
    _by_group(np.multiply, out, _half(blocks, 0) * scales)


def mxfp4(blocks: U8, out: F32) -> None:
    """A power of two as its exponent plus 127, then 32 x FP4 E2M1."""
    _look_up(_E2M1_DOUBLED, _planes(blocks[:, None, 1:], 4), out)  # (n, 1, 2, 16)
    exponents = blocks[:, :1].astype(np.int32) - 128
    np.multiply(out, np.ldexp(np.float32(1), exponents), out=out)


def tq1_0(blocks: U8, out: F32) -> None:
    """Base-3 digits, 5 a byte (4 in the last 4 bytes), then a float16 scale; from -1 to 1.

    A byte is the fraction of 256 whose first digits, to base 3, are its elements.
    """
    at = 0
    for start, stop, digits in ((0, 32, 5), (32, 48, 5), (48, 52, 4)):
        powers = np.array([1, 3, 9, 27, 81][:digits], np.uint8)[:, None]
        rest = blocks[:, None, start:stop] * powers  # (n, digits, bytes), modulo 256
        digit = (rest.astype(np.uint16) * 3 >> 8).reshape(len(blocks), -1)
        out[:, at : at + digit.shape[1]] = digit
        at += digit.shape[1]
    np.subtract(out, 1, out=out)
    np.multiply(out, _half(blocks, 52), out=out)


def tq2_0(blocks: U8, out: F32) -> None:
    """256 x 2 bits, then a float16 scale; from -1 to 2."""
    q = _planes(blocks[:, :64].reshape(-1, 2, 32), 2)  # (n, 2, 4, 32)
    _fill(out, q.view(np.int8) - np.int8(1))
    np.multiply(out, _half(blocks, 64), out=out)


def _half(blocks: U8, at: int) -> F32:
    """The float16 that every block has at byte `at`: (n, 1)."""
    return blocks[:, at : at + 2].view("<f2").astype(np.float32)


def _planes(packed: U8, bits: int, up: int = 0) -> U8:
    """Runs of bytes (n, runs, w) -> elements (n, runs, 8 // bits, w), lowest bits first.

    Each element is moved `up` by so many bits. Eight bytes are worked on at a time, and a run is
    stored as one item, since numpy shifts short runs of single bytes slowly.
    """
    n, runs, width = packed.shape
    item = f"V{width}"
    words = packed.view(item).copy().view("<u8")  # (n, runs, w / 8)
    mask = np.uint64(((1 << bits) - 1) * 0x0101_0101_0101_0101)
    planes = np.empty((n, runs, 8 // bits, width), np.uint8)
    for i in range(8 // bits):
        plane = words >> np.uint64(i * bits)
        np.bitwise_and(plane, mask, out=plane)
        if up:
            np.left_shift(plane, np.uint64(up), out=plane)
        planes.view(item)[:, :, i] = plane.view(item)
    return planes


def _five_bits(high: U8, low: U8) -> U8:
    """The fifth bits (n, 4), element by element, and the low bits (n, 16) -> (n, 1, 2, 16)."""
    q = _planes(low[:, None], 4)
    fifth = np.unpackbits(high.view("V4").copy().view(np.uint8), bitorder="little")
    np.bitwise_or(q, np.multiply(fifth, 16, out=fifth).reshape(q.shape), out=q)
    return q


def _words(packed: U8) -> tuple[NDArray[np.uint32], ...]:
    """(n, 4 x m) bytes -> m words of every block, each (n,): four bytes are worked on at a time."""
    return tuple(np.ascontiguousarray(packed).view("<u4").T)


def _scale_and_minimum(blocks: U8, out: F32) -> None:
    """Q4_K's and Q5_K's scales: value = unit x scale x integer - unit x minimum.

    Three words: the low 6 bits of scales 0-3, of minima 0-3, the low 4 of scales and minima 4-7;
    the high 2 bits of the latter are at the top of the first two.
    """
    a, b, c = _words(blocks[:, 4:16])
    packed = np.empty((len(blocks), 4), "<u4")
    packed[:, 0] = a & 0x3F3F3F3F
    packed[:, 1] = c & 0x0F0F0F0F | a >> 2 & 0x30303030
    packed[:, 2] = b & 0x3F3F3F3F
    packed[:, 3] = c >> 4 & 0x0F0F0F0F | b >> 2 & 0x30303030
    small = packed.view(np.uint8)  # (n, 16)
    _by_group(np.multiply, out, _half(blocks, 0) * small[:, :8])
    _by_group(np.subtract, out, _half(blocks, 2) * small[:, 8:])


def _fill(out: F32, q: NDArray[np.uint8] | NDArray[np.int8]) -> None:
    np.copyto(out, q.reshape(out.shape))


def _look_up(levels: F32, numbers: U8, out: F32) -> None:
    np.take(levels, numbers.reshape(out.shape), out=out, mode="clip")


def _by_group(operation: np.ufunc, out: F32, values: F32) -> None:
    """Apply one of values (n, groups) to each equal part of a row of out.

    By broadcasting: np.repeat would be as fast, but keeps other threads waiting for the GIL.
    """
    grouped = out.reshape(*values.shape, -1)  # (n, groups, elements of a group)
    operation(grouped, values[:, :, None], out=grouped)


SCHEMES: dict[str, Callable[[U8, F32], None]] = {
    "Q8_0": q8_0,
    "Q4_0": q4_0,
    "Q4_1": q4_1,
    "Q5_0": q5_0,
    "Q5_1": q5_1,
    "Q2_K": q2_k,
    "Q3_K": q3_k,
    "Q4_K": q4_k,
    "Q5_K": q5_k,
    "Q6_K": q6_k,
    "IQ4_NL": iq4_nl,
    "IQ4_XS": iq4_xs,
    "MXFP4": mxfp4,
    "TQ1_0": tq1_0,
    "TQ2_0": tq2_0,
}
