"""npy and safetensors: a matrix as it is, without names."""

import json
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from embtool.dtypes import row_nbytes
from embtool.errors import UnsupportedError
from embtool.writers.rows import STEP, Rows

#: dtypes that a safetensors file may hold and that a table is read from.
_STORED = ("F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2")


def write_npy(file: BinaryIO, rows: Rows) -> None:
    """(rows, d_model) float32, as numpy.load reads it (NPY format 1.0)."""
    shape = (len(rows.ids), rows.d_model)
    header = {"descr": "<f4", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    for block in rows.blocks():
        file.write(block.astype("<f4", copy=False).tobytes())


def write_safetensors(file: BinaryIO, rows: Rows, dtype: str) -> None:
    """The matrix under its tensor's name, and `ids`, the row numbers, as int64 beside it.

    dtype: float32, bf16 (rounded to the nearest, ties to even), or stored.

    Raises:
        UnsupportedError: stored, and the file has no such dtype (GGUF's packed types).
    """
    kept = {"float32": "F32", "bf16": "BF16", "stored": rows.dtype}[dtype]
    if kept not in _STORED:
        raise UnsupportedError(
            f"a safetensors file cannot hold {rows.dtype}, in which {rows.tensor} is stored",
            "export with --dtype float32 or --dtype bf16",
        )
    count = len(rows.ids)
    stop = count * row_nbytes(kept, rows.d_model)
    header = {
        rows.tensor: {"dtype": kept, "shape": [count, rows.d_model], "data_offsets": [0, stop]},
        "ids": {"dtype": "I64", "shape": [count], "data_offsets": [stop, stop + 8 * count]},
    }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little") + text)
    for stored in _in_dtype(rows, dtype):
        file.write(stored.tobytes())
    file.write(np.asarray(rows.ids, "<i8").tobytes())


def _in_dtype(rows: Rows, dtype: str) -> Iterator[NDArray[np.generic]]:
    if dtype == "stored":
        for first in range(0, len(rows.ids), STEP):
            yield rows.stored(rows.ids[first : first + STEP])
        return
    for block in rows.blocks():
        yield block.astype("<f4", copy=False) if dtype == "float32" else to_bf16(block)


def to_bf16(block: NDArray[np.float32]) -> NDArray[np.uint16]:
    """float32 to the bits of bfloat16: to the nearest, ties to even; NaN stays NaN."""
    bits = np.ascontiguousarray(block).view(np.uint32)
    rounded = bits + (0x7FFF + ((bits >> 16) & 1))
    quiet = (bits >> 16) | 0x40
    upper = np.where(np.isnan(block), quiet, rounded >> 16)
    return upper.astype("<u2")
