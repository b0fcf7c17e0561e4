"""Products of stored rows with a few vectors, from the bytes as they lie.

To widen a row to float32 is to write, and to read again, two to four times its bytes, which for
one question is most of the work. Here there is as little between the bytes and the product as
numpy allows:

    F32       nothing.
    BF16      two neighbours are the halves of one float32: as it is, it stands for the upper one;
              of a copy that begins two bytes later, each stands for a lower one.
    F16, F8   the bits are moved into place, and what that leaves wrong, a power of two, is made
              good in the vectors.
    Q8_0      all bytes become float32 at once, those of the scales for nothing; each block's sum
              of 32 is multiplied with its scale, which is an F16.

Rows with an infinity or NaN have no product here: anything may come out for them.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from embtool.dtypes import FLOATS, Float, put_bits
from embtool.quant import F32, U8

F64 = NDArray[np.float64]
#: Fills out (v, n) float32 with the products of the rows first to last.
_Multiply = Callable[[int, int, F32], None]
#: From stored rows (rows, row bytes), vectors (v, d_model), and how many rows there are at a time.
_Way = Callable[[U8, F32, int], _Multiply]

# Rows whose products are handed on together.
_ROWS = 1 << 15
# The upper half of a float32 whose lower half is not zero is off by less than 1/128 of itself,
# all to one side; with half of that taken off the vectors, by no more than 1/256 to either.
_OFF = 2.0**-8


class Products(NamedTuple):
    """Products of vectors (v, d_model) with all rows of a table.

    parts: one iterator for each thread, of (first row, products (v, n) float32).
    slack: (v,), what a product may be off by, beside the rounding of float32, for a row of the
        length 1. It holds for rows not shorter than 1e-30.
    """

    parts: list[Iterator[tuple[int, F32]]]
    slack: F64


def products(dtype: str, stored: U8, vectors: F32, step: int, bounds: list[int]) -> Products | None:
    """The products of vectors (v, d_model) with rows (rows, row bytes) of a dtype.

    bounds: where the parts begin, and the end. step: rows that are in float32 at a time. None
    where the dtype has no faster way than to widen the rows.
    """
    make = _WAYS.get(dtype)
    if make is None or (dtype in ("F32", "BF16") and not _in_words(stored)):
        return None
    slack = np.zeros(len(vectors))
    if dtype == "BF16":
        slack = _OFF * np.linalg.norm(vectors.astype(np.float64), axis=1)
    parts = [
        _part(make(stored, vectors, step), len(vectors), step, start, stop)
        for start, stop in pairwise(bounds)
    ]
    return Products(parts, slack)


def _in_words(stored: U8) -> bool:
    """Whether every row is a number of float32 where the processor expects them."""
    return stored.shape[1] % 4 == 0 and stored.view("<f4").flags.aligned


def _part(
    multiply: _Multiply, count: int, step: int, start: int, stop: int
) -> Iterator[tuple[int, F32]]:
    many = step * max(1, _ROWS // step)
    for first in range(start, stop, many):
        last = min(first + many, stop)
        out = np.empty((count, last - first), np.float32)
        multiply(first, last, out)
        yield first, out


# Two threads share one interpreter, and one that must wait for it waits long. So there is little
# between the calls of numpy below: what can be cut is cut before a loop, into lists, since to
# take a row from an array takes longer. For 1.85 GB of BF16 that is a tenth of the time.


def _f32(stored: U8, vectors: F32, step: int) -> _Multiply:
    values, each = stored.view("<f4"), list(vectors)

    def multiply(first: int, last: int, out: F32) -> None:
        for rows, found in zip(_cut(values[first:last], step), _tiles(out, step), strict=True):
            _dot(rows, each, found)

    return multiply


def _bf16(stored: U8, vectors: F32, step: int) -> _Multiply:
    step += step // 2  # rows of half as many numbers in float32 as others have
    less = (vectors / (1 + _OFF)).astype(np.float32)
    lower = list(np.ascontiguousarray(less[:, 0::2]))
    upper = list(np.ascontiguousarray(less[:, 1::2]))
    codes, values = stored.view("<u2")[:, :-1], stored.view("<f4")
    bits = np.zeros((step, vectors.shape[1]), np.uint16)
    moved, others = bits[:, 1:], bits.view(np.float32)

    def multiply(first: int, last: int, out: F32) -> None:
        more = np.empty_like(out)
        cut = _cut(values[first:last], step), _cut(codes[first:last], step)
        for rows, code, found, rest in zip(
            *cut, _tiles(out, step), _tiles(more, step), strict=True
        ):
            n = len(rows)
            # First the product that reads the memory, as BLAS does that best; the copy then finds
            # the rows in the cache, and costs two thirds of a shift by 16 bits.
            _dot(rows, upper, found)
            np.copyto(moved[:n], code)
            _dot(others[:n], lower, rest)
        np.add(out, more, out=out)

    return multiply


def _small_float(form: Float) -> _Way:
    def make(stored: U8, vectors: F32, step: int) -> _Multiply:
        raised, exponents = _raised(vectors, form)
        codes, bits = stored.view(form.code), np.empty((step, vectors.shape[1]), np.uint32)
        values, each = bits.view(np.float32), list(raised)

        def multiply(first: int, last: int, out: F32) -> None:
            for code, found in zip(_cut(codes[first:last], step), _tiles(out, step), strict=True):
                put_bits(form, code, bits[: len(code)])
                _dot(values[: len(code)], each, found)
            np.ldexp(out, exponents, out=out)

        return multiply

    return make


def _raised(vectors: F32, form: Float) -> tuple[F32, NDArray[np.int32]]:
    """Vectors times what `put_bits` lacks, and the exponents that their products lack then.

    By powers of two, so that no digit is lost: the vectors brought below 1, then up.
    """
    _, exponents = np.frexp(np.abs(vectors).max(axis=1, keepdims=True))
    return np.ldexp(vectors, -exponents) * np.float32(form.scale), exponents


def _q8_0(stored: U8, vectors: F32, step: int) -> _Multiply:
    form, blocks = FLOATS["F16"], vectors.shape[1] // 32
    step *= min(2, blocks)  # a product is of one block of each row: far from BLAS's own threads
    raised, exponents = _raised(vectors, form)
    by_vector = list(raised.reshape(-1, blocks, 32, 1))
    signed, halves = stored.view(np.int8), stored.view(form.code)[:, ::17]
    wide = np.empty((step, blocks * 34), np.float32)
    by_block = wide.reshape(step, blocks, 34)[:, :, 2:].swapaxes(0, 1)
    bits, sums = np.empty((step, blocks), np.uint32), np.empty((blocks, step, 1), np.float32)
    scales = bits.view(np.float32).T

    def multiply(first: int, last: int, out: F32) -> None:
        cut = _cut(signed[first:last], step), _cut(halves[first:last], step)
        for rows, half, found in zip(*cut, _tiles(out, step), strict=True):
            n = len(rows)
            np.copyto(wide[:n], rows)
            put_bits(form, half, bits[:n])
            for vector, products in zip(by_vector, found, strict=True):
                np.matmul(by_block[:, :n], vector, out=sums[:, :n])
                scaled = sums[:, :n, 0]
                np.multiply(scaled, scales[:, :n], out=scaled)
                np.add.reduce(scaled, axis=0, out=products)
        np.ldexp(out, exponents, out=out)

    return multiply


def _cut(array: NDArray[Any], step: int) -> list[NDArray[Any]]:
    """An array's rows, `step` at a time."""
    return [array[row : row + step] for row in range(0, len(array), step)]


def _tiles(out: F32, step: int) -> list[tuple[F32, ...]]:
    """Columns of (v, n), `step` at a time, each as v arrays."""
    return list(zip(*(_cut(row, step) for row in out), strict=True))


def _dot(rows: F32, vectors: list[F32], out: tuple[F32, ...]) -> None:
    """Products of rows with vectors one after the other: for a few, the faster way."""
    for number, found in enumerate(out):
        np.dot(rows, vectors[number], found)


_WAYS: dict[str, _Way] = {
    "F32": _f32,
    "BF16": _bf16,
    "Q8_0": _q8_0,
    **{name: _small_float(form) for name, form in FLOATS.items()},
}
