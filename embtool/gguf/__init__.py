"""GGUF headers, versions 2 and 3: metadata and where the tensors lie.

The format (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md): magic, version, two
counts, the metadata as keys with typed values, one entry a tensor, and after a padding the
tensors' bytes. Everything is little-endian; a string is its length in 8 bytes, then its bytes.
"""

import mmap
import struct
from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple

from embtool.dtypes import block
from embtool.errors import FormatError, UnsupportedError
from embtool.gguf.values import AGAIN, Cursor, NeedMore, Strings
from embtool.header import TensorInfo, refuse_pointer, shown

__all__ = ["TYPES", "Gguf", "NeedMore", "Strings", "parse"]

_MAX_DIMS = 4  # GGML_MAX_DIMS
# ggml's types in the order of their numbers (enum ggml_type in ggml.h); dots are those given up.
_TYPES = (
    "F32 F16 Q4_0 Q4_1 . . Q5_0 Q5_1 Q8_0 Q8_1 Q2_K Q3_K Q4_K Q5_K Q6_K Q8_K IQ2_XXS IQ2_XS "
    "IQ3_XXS IQ1_S IQ4_NL IQ3_S IQ2_S IQ4_XS I8 I16 I32 I64 F64 IQ1_M BF16 . . . TQ1_0 TQ2_0 "
    ". . . MXFP4 NVFP4 Q1_0"
)
TYPES = {number: name for number, name in enumerate(_TYPES.split()) if name != "."}


class Gguf(NamedTuple):
    """A GGUF header.

    metadata: key -> bool, int, float, str, an array of numbers (n,), Strings, or a list of those
    for arrays of arrays. Bytes of a text that are no UTF-8 are escaped as `\\xff`.
    tensors: by name; shapes have the rows first. The dtype of a type that is not known is
    `GGML_` and its number, and such a tensor reaches to where the next one begins.
    nbytes: of the file as it is. A tensor whose `stop` is beyond it is not there in full.
    """

    version: int
    metadata: Mapping[str, Any]
    tensors: dict[str, TensorInfo]
    nbytes: int

    @property
    def missing(self) -> int:
        """How many bytes the file lacks at its end for all its tensors; 0 if it is whole."""
        return max([0, *(info.stop - self.nbytes for info in self.tensors.values())])


def parse(buffer: mmap.mmap | memoryview | bytes, file: str, nbytes: int | None = None) -> Gguf:
    """Parse the header of a GGUF file.

    buffer: the file, or its beginning; the answer refers to it, so a map must stay open.
    nbytes: the bytes of the whole file, if the buffer is only its beginning.

    A file that ends among its tensors still has a header: see `Gguf.missing`.

    Raises NeedMore where the buffer is too short for the header but the file is not, FormatError
    where the file is malformed or ends within its header, and UnsupportedError for another
    version or byte order.
    """
    cursor = Cursor(memoryview(buffer), file, nbytes)
    refuse_pointer(bytes(cursor.view[:64]), file)
    cursor.take(24)
    magic, version, tensor_count, key_count = struct.unpack_from("<4sIQQ", cursor.view)
    _check_version(magic, version, file)
    if key_count * 13 + tensor_count * 24 > cursor.nbytes - 24:
        raise FormatError(
            f"{file}: {key_count} metadata keys and {tensor_count} tensors are more than a file "
            f"of {cursor.nbytes} bytes can hold",
            AGAIN,
        )
    metadata: dict[str, Any] = {}
    for _ in range(key_count):
        key = cursor.text()
        if key in metadata:
            raise FormatError(f"{file}: the metadata key {shown(key)} stands twice", AGAIN)
        metadata[key] = cursor.value(cursor.number("<u4"))
    entries: dict[str, _Entry] = {}
    for _ in range(tensor_count):
        entry = _entry(cursor)
        if entry.name in entries:
            raise FormatError(f"{file}: the tensor {shown(entry.name)} stands twice", AGAIN)
        entries[entry.name] = entry
    alignment = _alignment(metadata, file)
    data = -(-cursor.at // alignment) * alignment
    return Gguf(version, metadata, _place(entries, data, alignment, cursor), cursor.nbytes)


def _check_version(magic: bytes, version: int, file: str) -> None:
    if magic != b"GGUF":
        raise FormatError(f"{file} is no GGUF file: it begins with {magic!r}", AGAIN)
    if version in (2, 3):
        return
    swapped = version and version & 0xFFFF == 0
    what = "big-endian GGUF" if swapped else f"GGUF version {version}"
    raise UnsupportedError(
        f"{file} is {what}, which is not read", "convert it to little-endian GGUF version 3"
    )


def _alignment(metadata: dict[str, Any], file: str) -> int:
    alignment = metadata.get("general.alignment", 32)
    if type(alignment) is not int or alignment < 1 or alignment & (alignment - 1):
        raise FormatError(
            f"{file}: general.alignment is {shown(alignment)}, not a power of two", AGAIN
        )
    return alignment


class _Entry(NamedTuple):
    """A tensor as the header describes it; nbytes is None for a type that is not known."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    nbytes: int | None


def _entry(cursor: Cursor) -> _Entry:
    name = cursor.text()
    what = f"{cursor.file}: the tensor {shown(name)}"
    dims = cursor.number("<u4")
    if dims > _MAX_DIMS:
        raise FormatError(f"{what} has {dims} dimensions, more than {_MAX_DIMS}", AGAIN)
    shape = tuple(reversed(cursor.numbers("<u8", dims).tolist()))
    kind, offset = cursor.number("<u4"), cursor.number("<u8")
    if max(prod(shape), offset, *shape, 0) >= 1 << 63:
        raise FormatError(f"{what} is larger than any file: {list(shape)}", AGAIN)
    if kind not in TYPES:
        return _Entry(name, f"GGML_{kind}", shape, offset, None)
    elements, nbytes = block(TYPES[kind])
    width = shape[-1] if shape else 1
    if width % elements:
        raise FormatError(
            f"{what}: {width} elements are no multiple of {TYPES[kind]}'s block of {elements}",
            AGAIN,
        )
    return _Entry(name, TYPES[kind], shape, offset, prod(shape) // elements * nbytes)


def _place(
    entries: dict[str, _Entry], data: int, alignment: int, cursor: Cursor
) -> dict[str, TensorInfo]:
    """Absolute places for all tensors, in the header's order."""
    tensors = {}
    ordered = sorted(entries.values(), key=lambda entry: (entry.offset, entry.nbytes or 0))
    begins = [data + entry.offset for entry in ordered]
    for entry, start, limit in zip(ordered, begins, [*begins, None][1:], strict=True):
        what = f"{cursor.file}: the tensor {shown(entry.name)}"
        if entry.offset % alignment:
            raise FormatError(
                f"{what} begins at offset {entry.offset}, no multiple of {alignment}", AGAIN
            )
        if entry.nbytes is None:
            stop = max(start, cursor.nbytes) if limit is None else limit
        else:
            stop = start + entry.nbytes
        if limit is not None and stop > limit:
            raise FormatError(
                f"{what} ends at byte {stop}, but the next one begins at {limit}", AGAIN
            )
        tensors[entry.name] = TensorInfo(entry.name, entry.dtype, entry.shape, start, stop)
    return {name: tensors[name] for name in entries}
