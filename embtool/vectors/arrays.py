"""Numpy's own files: .npy, and .npz, which is a zip file of them.

The format (numpy.lib.format, NEP 1): a magic string and a version, the length of a header, the
header, a literal of Python with dtype, order and shape, and the numbers. The header is parsed as a
literal and never evaluated; arrays of objects would need a pickle and are refused.
"""

import ast
import io
import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import BinaryIO

import numpy as np

from embtool.errors import FormatError, UnsupportedError
from embtool.header import Read, TensorInfo, shown
from embtool.packed import Packed, by_columns, plain
from embtool.packed.values import numbers
from embtool.pickles.archive import Archive, Member, read_archive
from embtool.quant import F32

_DTYPES = {"<f8": "F64", "<f4": "F32", "<f2": "F16", "|i1": "I8"}
_STRINGS = re.compile(r"[<|][SU][1-9]\d{0,6}")
_HEAD = 16 << 10
_TABLES = ("vectors", "embeddings", "embedding", "table", "weight", "weights", "E", "arr_0")
_WORDS = ("words", "vocab", "vocabulary", "tokens", "labels", "index")
_MOST_WORDS_NBYTES = 1 << 30
_BLOCK = 1 << 20
_AGAIN = "fetch the file again, or save it anew"
_CONVERT = "save it as numpy.save(file, array.astype('<f4', order='C'))"


@dataclass(frozen=True, slots=True)
class Head:
    """What a .npy file's header says; the numbers begin at byte `start`."""

    dtype: str
    shape: tuple[int, ...]
    by_columns: bool
    start: int

    @property
    def is_matrix(self) -> bool:
        """Whether it can be a table."""
        return self.dtype in _DTYPES and len(self.shape) == 2 and min(self.shape) > 0

    @property
    def is_list(self) -> bool:
        """Whether it can be a list of words."""
        return len(self.shape) == 1 and _STRINGS.fullmatch(self.dtype) is not None

    @property
    def itemsize(self) -> int:
        """Bytes of an element of a matrix or a list."""
        return int(self.dtype[2:]) * (4 if self.dtype[1] == "U" else 1)

    def __str__(self) -> str:
        kind = "objects of Python" if self.dtype == "|O" else self.dtype[:60]
        return f"{kind} {list(self.shape)}"


def read_npy(read: Read, first: int, last: int, file: str, name: str = "vectors") -> Packed:
    """The matrix of a .npy file, which numpy may have written row by row or column by column.

    The file is bytes [first, last) of what `read` reads, and the table's place is in that.

    Raises UnsupportedError for anything but floats, or signed bytes, FormatError for a malformed
    or truncated file.
    """
    head = read_head(read(first, min(first + _HEAD, last)), file)
    if not head.is_matrix:
        raise UnsupportedError(f"{file} holds {head}, which is no matrix of floats", _CONVERT)
    start = first + head.start
    stop = start + prod(head.shape) * head.itemsize
    if stop > last:
        raise FormatError(
            f"{file} is truncated: {stop - first} bytes are needed for {head}, "
            f"{last - first} are there",
            _AGAIN,
        )
    rows, d_model = head.shape
    dtype = _DTYPES[head.dtype]
    if head.by_columns:
        return by_columns(TensorInfo(name, dtype, (d_model, rows), start, stop))
    return plain(TensorInfo(name, dtype, (rows, d_model), start, stop))


def read_head(raw: bytes, file: str) -> Head:
    """Parse the header at the beginning of a .npy file."""
    code = {b"\x01": "<H", b"\x02": "<I", b"\x03": "<I"}.get(raw[6:7])
    if raw[:6] != b"\x93NUMPY" or code is None or len(raw) < 12:
        raise FormatError(f"{file} has no header of a .npy file", _AGAIN)
    start = 8 + struct.calcsize(code)
    stop = start + struct.unpack_from(code, raw, 8)[0]
    try:
        said = ast.literal_eval(raw[start:stop].decode("utf-8").strip()) if stop <= _HEAD else None
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        said = None
    if not isinstance(said, dict) or stop > len(raw):
        raise FormatError(f"{file}: its header of {stop - start} bytes is malformed", _AGAIN)
    shape, by_columns, descr = (said.get(key) for key in ("shape", "fortran_order", "descr"))
    sides = shape if isinstance(shape, tuple) and len(shape) <= 32 else (None,)
    if not all(type(side) is int and 0 <= side < 1 << 48 for side in sides):
        raise FormatError(f"{file} has the shape {str(shape)[:80]}", _AGAIN)
    return Head(str(descr), sides, by_columns is not False, stop)


class Npz:
    """An .npz file: which member is the table, which one the words."""

    def __init__(self, read: Read, nbytes: int, file: str) -> None:
        """Raises FormatError where no member, or none of several, is the table."""
        self._read = read
        self._file = file
        self._archive: Archive = read_archive(read, nbytes, file)
        arrays = {
            name.removesuffix(".npy"): member
            for name, member in self._archive.members.items()
            if name.endswith(".npy")
        }
        heads = {name: self._head(member) for name, member in arrays.items()}
        matrices = [name for name, head in heads.items() if head.is_matrix]
        chosen = [name for name in _TABLES if name in matrices] if len(matrices) > 1 else matrices
        if not chosen:
            held = ", ".join(f"{name} {head}" for name, head in heads.items())[:200]
            raise FormatError(
                f"{file} has {len(matrices)} matrices of floats: {held or 'no arrays'}",
                "save the table alone, or under the name vectors",
            )
        self._table = arrays[chosen[0]]
        self._rows = heads[chosen[0]].shape[0]
        lists = [n for n, head in heads.items() if head.is_list]
        named = [name for name in _WORDS if name in lists] or (lists if len(lists) == 1 else [])
        self._words = arrays[named[0]] if named else None

    def table(self) -> Packed | None:
        """The table where it lies in the file; None where it is compressed."""
        if self._table.method != 0:
            return None
        start, stop = self._archive.place(self._read, self._table.name)
        name = self._table.name.removesuffix(".npy")
        return read_npy(self._read, start, stop, f"{self._file}: {shown(self._table.name)}", name)

    @property
    def has_words(self) -> bool:
        """Whether a member lists the words."""
        return self._words is not None

    def words(self) -> list[bytes] | None:
        """The words in UTF-8 (bytes as they are), or None; read whole."""
        member = self._words
        if member is None:
            return None
        if member.size > _MOST_WORDS_NBYTES:
            raise UnsupportedError(
                f"{self._file}: its words take {member.size} bytes, at most "
                f"{_MOST_WORDS_NBYTES} are read",
                "save the words in a text file beside the table, one a line",
            )
        raw = b"".join(self._unpacked(member))
        head = read_head(raw[:_HEAD], self._file)
        if head.start + head.shape[0] * head.itemsize > len(raw):
            raise FormatError(f"{self._file}: its words are truncated", _AGAIN)
        found = np.frombuffer(raw, head.dtype, head.shape[0], head.start).tolist()
        if len(found) != self._rows:
            raise FormatError(f"{self._file} has {self._rows} rows and {len(found)} words", _AGAIN)
        return [
            word if isinstance(word, bytes) else word.encode("utf-8", "surrogatepass")
            for word in found
        ]

    def stream(self) -> BinaryIO:
        """The table's .npy file, unpacked as it is read."""
        return io.BufferedReader(_Pieces(self._unpacked(self._table)))

    def _head(self, member: Member) -> Head:
        pieces = self._unpacked(member, _HEAD)
        return read_head(next(pieces, b""), f"{self._file}: {shown(member.name)}")

    def _unpacked(self, member: Member, block: int = _BLOCK) -> Iterator[bytes]:
        """A member's bytes, about `block` at a time, never more than the directory promises."""
        if member.method not in (0, 8):
            raise UnsupportedError(
                f"{self._file}: {shown(member.name)} is compressed by method {member.method}",
                "save it with numpy.savez or numpy.savez_compressed",
            )
        start, stop = self._archive.place_packed(self._read, member)
        pieces: Iterator[bytes] = (
            self._read(at, min(at + block, stop)) for at in range(start, stop, block)
        )
        if member.method:
            pieces = _inflated(pieces, block, self._file)
        left = member.size
        for piece in pieces:
            left -= len(piece)
            yield piece[: left + len(piece)]
            if left < 0:
                break
        if left:
            told = f"{shown(member.name)} has not the {member.size} bytes that the directory says"
            raise FormatError(f"{self._file}: {told}", _AGAIN)


def _inflated(pieces: Iterator[bytes], block: int, file: str) -> Iterator[bytes]:
    """What deflated pieces hold, at most `block` bytes at a time."""
    inflater = zlib.decompressobj(-15)
    try:
        for piece in pieces:
            rest = piece
            while out := inflater.decompress(rest, block):
                yield out
                rest = inflater.unconsumed_tail
    except zlib.error as error:
        raise FormatError(f"{file} is damaged: {error}", _AGAIN) from error


class _Pieces(io.RawIOBase):
    """Pieces of bytes as a stream."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._held = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._held:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._held = piece
        count = min(len(buffer), len(self._held))
        buffer[:count], self._held = self._held[:count], self._held[count:]
        return count


def stream_npy(stream: BinaryIO, file: str) -> Iterator[F32]:
    """Yield the rows of a .npy file that cannot be memory-mapped, about a MiB at a time."""
    held = stream.read(_HEAD)
    head = read_head(held, file)
    if not head.is_matrix or head.by_columns:
        order = " column by column" if head.by_columns else ""
        raise UnsupportedError(
            f"{file} holds {head}{order}, which cannot be read from a compressed file", _CONVERT
        )
    rows, d_model = head.shape
    row_nbytes = d_model * head.itemsize
    held = held[head.start :]
    for done in range(0, rows, step := max(1, _BLOCK // row_nbytes)):
        count = min(step, rows - done)
        if len(held) < count * row_nbytes:
            held += stream.read(count * row_nbytes - len(held))
        if len(held) < count * row_nbytes:
            raise FormatError(
                f"{file} is truncated: it ends in row {done + len(held) // row_nbytes} of {rows}",
                _AGAIN,
            )
        stored = np.frombuffer(held, np.uint8, count * row_nbytes).reshape(count, row_nbytes)
        yield numbers(_DTYPES[head.dtype], stored)
        held = held[count * row_nbytes :]
