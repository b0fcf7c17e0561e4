"""A kept file of arrays: whole, ours and of this version, or made again.

8 bytes    a magic that names the content and the version of its layout
u64        bytes in all
u32        CRC-32 of everything that follows the frame, begun with the head's length
u32        bytes of the head
head       JSON, with every section's dtype, start and number of elements
sections   each begins at a multiple of 8 from the end of the head
"""

import json
import mmap
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_FRAME = struct.Struct("<8sQII")


class CorruptError(Exception):
    """A kept file that is cut, changed, foreign or of another version."""


class Sealed(NamedTuple):
    """What a kept file holds; the arrays are views of it, read-only where it is mapped."""

    head: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    checksum: int


def seal(magic: bytes, head: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The bytes of a kept file; the arrays are one-dimensional."""
    sections: dict[str, tuple[str, int, int]] = {}
    chunks: list[bytes] = []
    start = 0
    for name, array in arrays.items():
        sections[name] = (array.dtype.str, start, array.size)
        chunks.append(array.tobytes() + bytes(-array.nbytes % 8))
        start += len(chunks[-1])
    text = json.dumps({**head, "sections": sections}).encode("ascii")
    text += b" " * (-(_FRAME.size + len(text)) % 8)
    body = b"".join([text, *chunks])
    return (
        _FRAME.pack(magic, _FRAME.size + len(body), zlib.crc32(body, len(text)), len(text)) + body
    )


def unseal(magic: bytes, kept: bytes | mmap.mmap) -> Sealed:
    """What `seal` closed; CorruptError unless every byte is as it was."""
    if len(kept) < _FRAME.size:
        raise CorruptError
    found, nbytes, checksum, length = _FRAME.unpack_from(kept)
    body = memoryview(kept)[_FRAME.size :]
    if found != magic or nbytes != len(kept) or zlib.crc32(body, length) != checksum:
        raise CorruptError
    head = json.loads(bytes(body[:length]))
    arrays = {
        name: np.frombuffer(body, dtype, number, length + start)
        for name, (dtype, start, number) in head.pop("sections").items()
    }
    return Sealed(head, arrays, checksum)


def open_sealed(magic: bytes, path: Path) -> Sealed:
    """A kept file through a memory map; CorruptError where there is none that is whole."""
    try:
        with path.open("rb") as file:
            kept = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        # ValueError: an empty file cannot be mapped
        raise CorruptError from error
    return unseal(magic, kept)
