"""Tensors in memory for the tests of packed tables: a file's bytes, and a fetch that counts."""

import numpy as np

from embtool.header import TensorInfo
from embtool.packed import Claims, recognise

DTYPES = {"float32": "F32", "float16": "F16", "int8": "I8", "uint8": "U8", "uint32": "U32"}
DTYPES |= {"int32": "I32", "int64": "I64", "float64": "F64"}


class Stored:
    """Tensors one after another in one buffer, at odd addresses, read as a memory map is."""

    def __init__(self, tensors):
        self.infos = {}
        self.read = {}
        chunks, at = [b"\0"], 1
        for name, value in tensors.items():
            dtype, array = value if isinstance(value, tuple) else (DTYPES[value.dtype.name], value)
            raw = np.ascontiguousarray(array).tobytes()
            self.infos[name] = TensorInfo(name, dtype, array.shape, at, at + len(raw))
            chunks.append(raw)
            at += len(raw)
        self.buffer = np.frombuffer(b"".join(chunks), np.uint8)

    def fetch(self, info, ids, nbytes):
        """Units of a tensor: a view for a range, a copy for a list; what was read is counted."""
        self.read[info.name] = self.read.get(info.name, 0) + len(ids) * nbytes
        units = self.buffer[info.start : info.stop].reshape(-1, nbytes)
        if isinstance(ids, range):
            assert ids.step == 1
            assert 0 <= ids.start <= ids.stop <= len(units)
            return units[ids.start : ids.stop]
        assert all(0 <= i < len(units) for i in ids)
        return units[ids]


def table_of(tensors, claims=None):
    """The first tensor as a packed table, and where its bytes are."""
    stored = Stored(tensors)
    name = next(iter(tensors))
    return recognise(name, stored.infos, stored.fetch, claims or Claims()), stored


def decoded(tensors, claims=None):
    """All rows; the same must come from ranges of any height and from chosen ids."""
    packed, stored = table_of(tensors, claims)
    rows = packed.shape[0]
    full = packed.rows(stored.fetch, range(rows))
    assert full.shape == packed.shape
    assert full.dtype == np.float32
    assert packed.nbytes == sum(part.stop - part.start for part in packed.parts)
    ids = np.random.default_rng(rows).integers(0, rows, 17).tolist()
    same_bits(packed.rows(stored.fetch, ids), full[ids])
    for first, last in ((0, 1), (rows // 3, rows // 2 + 1), (rows - 1, rows)):
        out = np.full((last - first + 2, packed.shape[1]), 7, np.float32)
        given = packed.rows(stored.fetch, range(first, last), out)
        same_bits(given, full[first:last])
        assert (out[last - first :] == 7).all()
    return full


def same_bits(got, want):
    """Equal float32 patterns; any NaN equals any other."""
    got, want = np.ascontiguousarray(got), np.ascontiguousarray(want, np.float32)
    nan = np.isnan(want)
    np.testing.assert_array_equal(np.isnan(got), nan)
    np.testing.assert_array_equal(got.view(np.uint32)[~nan], want.view(np.uint32)[~nan])


def rounded_to_bf16(values):
    """float32 -> the nearest BF16, ties to even, as float32."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32).astype(np.uint64)
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    return bits.astype(np.uint32).view(np.float32)


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
