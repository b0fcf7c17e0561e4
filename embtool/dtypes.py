"""Storage dtypes: how many bytes their elements take, and their exact widening to float32.

One namespace holds the names of safetensors (`BF16`, `F8_E4M3`, ...) and of GGUF (`Q8_0`, `Q4_K`,
...); where both use a name, they mean the same bytes. Bytes are little-endian, rows first.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from embtool import quant
from embtool.errors import FormatError, UnsupportedError
from embtool.quant import F32, U8

# Elements and bytes of the smallest whole number of bytes. The names are those of the safetensors
# crate; four FP4 elements fill two bytes, four FP6 elements three.
_BLOCKS = {
    **dict.fromkeys(("BOOL", "I8", "U8"), (1, 1)),
    **dict.fromkeys(("F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"), (1, 1)),
    **dict.fromkeys(("I16", "U16", "F16", "BF16"), (1, 2)),
    **dict.fromkeys(("I32", "U32", "F32"), (1, 4)),
    **dict.fromkeys(("I64", "U64", "F64", "C64"), (1, 8)),
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), (4, 3)),
    "F4": (2, 1),
    **quant.BLOCKS,
}

# Elements that are widened at a time: 1 MiB of float32. The next pass over them still finds them
# in a core's part of the cache, and the fixed cost of a numpy call hardly counts.
_STEP = 262_144


class Float(NamedTuple):
    """A sign-exponent-mantissa format of 16 bits or fewer, as steps that lead to float32."""

    code: str  # the signed integer of its width
    shift: int  # brings its exponent and mantissa to those of float32
    mask: int  # float32's sign, and the exponent and mantissa bits that the format has
    scale: float  # 2 ** (127 - the format's exponent bias)
    special: int  # the first positive code that is infinity or NaN


#: The small floats that are read.
# IEEE 754 binary16, and the two of "FP8 Formats for Deep Learning" (arXiv:2209.05433): E5M2 is
# the upper half of a binary16, E4M3 has no infinity and one NaN of each sign.
FLOATS = {
    "F16": Float("<i2", 13, 0x8FFF_E000, 2.0**112, 0x7C00),
    "F8_E5M2": Float("<i1", 21, 0x8FE0_0000, 2.0**112, 0x7C),
    "F8_E4M3": Float("<i1", 20, 0x87F0_0000, 2.0**120, 0x7F),
}


def block(dtype: str) -> tuple[int, int]:
    """The smallest run of elements that has whole bytes: `(elements, bytes)`.

    BF16 gives (1, 2), Q8_0 (32, 34), F4 (2, 1). Raises UnsupportedError for an unknown dtype.
    """
    try:
        return _BLOCKS[dtype]
    except KeyError:
        raise UnsupportedError(
            f"the dtype {dtype[:80]!r} is not known",
            "embtool reads F64 F32 F16 BF16 F8_E4M3 F8_E5M2 and GGUF's Q and IQ4 types",
        ) from None


def row_nbytes(dtype: str, d_model: int) -> int:
    """The bytes of a row of `d_model` elements.

    Raises FormatError where the row is no whole number of the dtype's blocks.
    """
    elements, nbytes = block(dtype)
    if d_model % elements:
        raise FormatError(
            f"a row of {d_model} elements is no multiple of {dtype}'s block of {elements}",
            "the file is malformed; fetch it again or tell its author",
        )
    return d_model // elements * nbytes


def decode(dtype: str, stored: U8, out: F32 | None = None) -> F32:
    """Widen stored rows to float32: exactly, F64 by rounding.

    stored: (n, row_nbytes) uint8, which may be a view of a memory map at any alignment.
    out: C-contiguous (n or more, d_model) float32; the first n rows are filled and returned.
    Without it a new array is. The working memory beside it stays below 2 MiB, for rows of up to
    262,144 elements.

    Infinities and NaN come out as such, NaN with its sign and payload for the formats of 16 bits
    or fewer. Raises UnsupportedError for a dtype that is not read.
    """
    elements, nbytes = block(dtype)
    n, width = stored.shape
    d_model = width // nbytes * elements
    if out is None:
        out = np.empty((n, d_model), np.float32)
    fits = len(out) >= n and out.shape[1:] == (d_model,) and out.flags.c_contiguous
    if width % nbytes or not fits:
        raise ValueError(f"{dtype}: stored {stored.shape} does not fit out {out.shape}")
    widen = _decoder(dtype)
    step = max(1, _STEP // max(1, d_model))
    # Hostile scales give 0 x infinity, and an F64 may be beyond float32: values, not warnings.
    with np.errstate(invalid="ignore", over="ignore"):
        for first in range(0, n, step):
            last = min(first + step, n)
            widen(stored[first:last], out[first:last])
    return out[:n]


def _decoder(dtype: str) -> Callable[[U8, F32], None]:
    """The function that fills out (n, d_model) from stored (n, row_nbytes)."""
    if dtype in FLOATS:
        return partial(_small_float, FLOATS[dtype])
    if dtype in _WIDE:
        return _WIDE[dtype]
    if dtype in quant.SCHEMES:
        return partial(_packed, dtype)
    raise UnsupportedError(
        f"a table stored as {dtype} is not read",
        "choose a file of the model that stores the table as BF16, F16, F32 or Q8_0",
    )


def _bf16(stored: U8, out: F32) -> None:
    bits = out.view(np.uint32)
    np.copyto(bits, stored.view("<u2"))
    np.left_shift(bits, 16, out=bits)


def _f32(stored: U8, out: F32) -> None:
    np.copyto(out, stored.view("<f4"))


def _f64(stored: U8, out: F32) -> None:
    np.copyto(out, stored.view("<f8"), casting="same_kind")


_WIDE = {"BF16": _bf16, "F32": _f32, "F64": _f64}


def _packed(dtype: str, stored: U8, out: F32) -> None:
    elements, nbytes = _BLOCKS[dtype]
    quant.SCHEMES[dtype](stored.reshape(-1, nbytes), out.reshape(-1, elements))


def put_bits(form: Float, codes: NDArray[np.signedinteger], out: NDArray[np.uint32]) -> None:
    """Codes (n, d_model) as the bits of float32: the values over `form.scale`, where finite."""
    np.copyto(out.view(np.int32), codes)
    np.left_shift(out, form.shift, out=out)
    np.bitwise_and(out, form.mask, out=out)


def _small_float(form: Float, stored: U8, out: F32) -> None:
    """Move the bits into place, then correct the exponent's bias by an exact product.

    These four passes are faster than numpy's own F16 cast and than a table of 256 entries, and
    the product also makes the subnormal numbers right. Only the codes of infinity and NaN need
    more: they came out as large numbers, and take float32's largest exponent instead.
    """
    codes = stored.view(form.code)
    bits = out.view(np.uint32)
    put_bits(form, codes, bits)
    np.multiply(out, np.float32(form.scale), out=out)
    sign = 1 << (8 * codes.itemsize - 1)
    unsigned = codes.view(f"<u{codes.itemsize}")
    if codes.size and (codes.max() >= form.special or unsigned.max() >= form.special + sign):
        special = (unsigned & (sign - 1)) >= form.special
        np.bitwise_or(bits, 0x7F80_0000, out=bits, where=special)
