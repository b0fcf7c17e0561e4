"""What quantized tables are made of: packed integers, four-bit floats, scales.

Every function takes stored bytes, (n, bytes of a row) uint8, little-endian.
"""

import numpy as np
from numpy.typing import NDArray

from embtool import dtypes
from embtool.quant import F32, U8

# FP4 E2M1 (OCP Microscaling Formats 1.0, table 5): a sign, two bits of exponent, one of mantissa.
_E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
_E2M1 = np.concatenate([_E2M1, -_E2M1])
# FP8 E8M0 (the same document, 5.4.1): the exponent of a power of two, plus 127; 255 is NaN.
_E8M0 = np.append(np.ldexp(np.float32(1), np.arange(-127, 128)), np.float32(np.nan))


def codes(packed: U8, bits: int, count: int) -> U8:
    """The first `count` integers of a little-endian stream of `bits` bits each, 1 to 8.

    (n, nbytes) -> (n, count). Eight integers fill `bits` bytes, whatever words they are stored
    in: this is the packing of MLX, GPTQ and compressed-tensors alike.
    """
    n, nbytes = packed.shape
    if bits == 8:
        return packed[:, :count]
    if bits in (1, 2, 4):
        each = 8 // bits
        out = np.empty((n, nbytes, each), np.uint8)
        for place in range(each):
            np.right_shift(packed, place * bits, out=out[:, :, place])
        np.bitwise_and(out, (1 << bits) - 1, out=out)
        return out.reshape(n, -1)[:, :count]
    runs = -(-nbytes // bits)
    wide = np.zeros((n, runs, 8), np.uint8)
    padded = np.zeros((n, runs * bits), np.uint8)
    padded[:, :nbytes] = packed
    wide[:, :, :bits] = padded.reshape(n, runs, bits)
    words = wide.view("<u8")  # (n, runs, 1): 8 integers each
    shifts = np.arange(0, 8 * bits, bits, dtype=np.uint64)
    return (words >> shifts & np.uint64((1 << bits) - 1)).astype(np.uint8).reshape(n, -1)[:, :count]


def codes_at(packed: U8, bits: int, starts: NDArray[np.int64]) -> U8:
    """The integers that begin at some bits of such a stream: (n, nbytes) -> (n, len(starts))."""
    first = starts // 8
    second = np.minimum(first + 1, packed.shape[1] - 1)
    pair = packed[:, first] | packed[:, second].astype(np.uint16) << 8
    return (pair >> (starts % 8).astype(np.uint16) & ((1 << bits) - 1)).astype(np.uint8)


def e2m1(packed: U8, out: F32) -> None:
    """Four-bit floats, the first of a byte in its low half: (n, nbytes) -> out (n, 2 x nbytes)."""
    four_bits(_E2M1, packed, out)


def four_bits(levels: F32, packed: U8, out: F32, *, high_first: bool = False) -> None:
    """The same for any 16 levels. Both numbers of a byte are looked up at once."""
    byte = np.arange(256)
    halves = (byte >> 4, byte & 15) if high_first else (byte & 15, byte >> 4)
    pairs = np.stack([levels[half] for half in halves], axis=-1).astype(np.float32)
    np.take(pairs.view(np.uint64)[:, 0], packed, out=out.view(np.uint64), mode="clip")


def numbers(dtype: str, stored: U8) -> F32:
    """Numbers that are stored one by one: floats of any kind, and signed bytes.

    (n, nbytes) -> (n, elements). Raises UnsupportedError for a dtype that is none of these.
    """
    if dtype == "I8":
        return stored.view(np.int8).astype(np.float32)
    return dtypes.decode(dtype, np.ascontiguousarray(stored))


def scales(dtype: str, stored: U8) -> F32:
    """Scales, (n, nbytes) -> (n, elements): as `numbers`, and exponents in U8 or F8_E8M0."""
    if dtype in ("U8", "F8_E8M0"):
        return _E8M0[stored]
    return numbers(dtype, stored)


def by_group(operation: np.ufunc, out: F32, width: int, values: F32) -> None:
    """Apply values (n or 1, groups) to runs of `width` in the rows of out (n, d_model), in place.

    The last run may be shorter.
    """
    n, d_model = out.shape
    groups = values.shape[1]
    if groups * width != d_model:
        operation(out, np.repeat(values, width, axis=1)[:, :d_model], out=out)
        return
    grouped = out.reshape(n, groups, width)
    operation(grouped, values[:, :, None], out=grouped)
