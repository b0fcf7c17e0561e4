"""What the loopback Hub serves: bytes, files on disk, and shards too large to be either."""

import hashlib
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

Shape = tuple[int, ...]
_NBYTES = {"F32": 4, "BF16": 2, "F16": 2, "F8_E4M3": 1}


class Content(Protocol):
    def __len__(self) -> int: ...

    def __getitem__(self, part: slice, /) -> bytes: ...


class OnDisk:
    """A file, read where it is."""

    def __init__(self, path: Path) -> None:
        self._map = np.memmap(path, np.uint8, "r")

    def __len__(self) -> int:
        return len(self._map)

    def __getitem__(self, part: slice) -> bytes:
        return self._map[part].tobytes()


class Virtual:
    """A head, and then bytes that follow from their position: gigabytes that take no room.

    The period is a prime, so that no two rows of a table are equal by chance.
    """

    _BLOCK = np.random.default_rng(7).integers(0, 256, 1_048_583, np.uint8)
    _TWICE = np.concatenate([_BLOCK, _BLOCK]).tobytes()

    def __init__(self, head: bytes, nbytes: int) -> None:
        self._head = head
        self._nbytes = nbytes

    def __len__(self) -> int:
        return self._nbytes

    def __getitem__(self, part: slice) -> bytes:
        start, stop, _ = part.indices(self._nbytes)
        pieces = [self._head[start:stop]]
        at = max(start, len(self._head))
        while at < stop:
            offset = at % len(self._BLOCK)
            pieces.append(self._TWICE[offset : offset + min(stop - at, len(self._BLOCK))])
            at += len(pieces[-1])
        return b"".join(pieces)


@dataclass(frozen=True)
class File:
    content: Content
    large: bool
    etag: str  # the sha256 of a large file, git's sha1 of a small one


def as_file(name: str, content: bytes | Path | Content) -> File:
    """A file as the Hub keeps it: weights and what is over 10 MB by sha256, the rest in git."""
    if isinstance(content, Path):
        content = OnDisk(content)
    large = name.endswith((".safetensors", ".gguf", ".bin")) or len(content) > 10 << 20
    if not large:
        raw = content[0 : len(content)]
        etag = hashlib.sha1(b"blob %d\0" % len(raw) + raw).hexdigest()
    elif isinstance(content, Virtual) and len(content) > 64 << 20:
        # Long to hash, and no test hashes what it would fetch for it.
        etag = hashlib.sha256(f"{name} {len(content)}".encode() + content[0:4096]).hexdigest()
    else:
        etag = hashlib.sha256(content[0 : len(content)]).hexdigest()
    return File(content, large, etag)


def shard(tensors: Mapping[str, tuple[str, Shape]], header_nbytes: int | None = None) -> Virtual:
    """A safetensors file of the given tensors whose values follow from their position.

    `header_nbytes` pads the header's JSON with spaces to that length.
    """
    head, nbytes = header_of(tensors, header_nbytes)
    return Virtual(head, len(head) + nbytes)


def header_of(
    tensors: Mapping[str, tuple[str, Shape]], header_nbytes: int | None = None
) -> tuple[bytes, int]:
    """The first bytes of a safetensors file, and the bytes of its tensors."""
    header, at = {}, 0
    for name, (dtype, shape) in tensors.items():
        nbytes = int(np.prod(shape, dtype=np.int64)) * _NBYTES[dtype]
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + nbytes]}
        at += nbytes
    raw = json.dumps(header, separators=(",", ":")).encode()
    wanted = len(raw) + -len(raw) % 8 if header_nbytes is None else header_nbytes
    assert wanted >= len(raw), (wanted, len(raw))
    return struct.pack("<Q", wanted) + raw.ljust(wanted), at
