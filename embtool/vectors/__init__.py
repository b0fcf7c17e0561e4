"""Classic word vectors as single-file models: .npy, .npz, word2vec's text and binary, GloVe's text.

    kind_of(head, file) -> Kind | None            what a file is, from its first bytes
    open_mapped(buffer, file, kind) -> Mapped     rows are read where they lie
    convert(stream, file, kind) -> chunks         else: words and float32 rows, in order, once

A file is read where it lies where its rows are numbers of one width: .npy, an .npz saved without
compression, and word2vec's binary form, whose rows an index of offsets finds. Text, gzip and
compressed .npz are gone through once, by the caller into a file of float32 rows.
"""

import gzip
import io
import mmap
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from embtool.errors import FormatError, UnsupportedError
from embtool.header import refuse_pointer
from embtool.packed import Packed
from embtool.quant import F32
from embtool.vectors.arrays import Npz, read_npy, stream_npy
from embtool.vectors.binary import header, read_binary, stream_binary
from embtool.vectors.text import is_text, read_text
from embtool.vectors.words import read_words, repeated, word_files

__all__ = [
    "HEAD_NBYTES",
    "Kind",
    "Mapped",
    "convert",
    "kind_of",
    "open_mapped",
    "read_words",
    "repeated",
    "word_files",
]

#: So many bytes from the beginning of a file tell what it is.
HEAD_NBYTES = 64 << 10
_GZIP = b"\x1f\x8b\x08"
_FASTTEXT = (793712314).to_bytes(4, "little")
_AGAIN = "fetch the file again"


@dataclass(frozen=True, slots=True)
class Kind:
    """`form` is "npy", "npz", "binary" or "text"; `gzipped`: all of it is within gzip."""

    form: str
    gzipped: bool = False


@dataclass(frozen=True, slots=True)
class Mapped:
    """A table that is read where it lies, and its words where they are in the same file."""

    table: Packed
    words: list[bytes] | None


def kind_of(head: bytes, file: str) -> Kind | None:
    """What a file of vectors is, from its first HEAD_NBYTES (all of a shorter file); else None.

    `file` decides only between zip files: .npz, and not what torch saved.

    Raises UnsupportedError for a model of fastText, which is no table of words.
    """
    refuse_pointer(head, file)
    if head.startswith(_GZIP):
        inner = kind_of(_gunzipped(head), file.removesuffix(".gz"))
        return None if inner is None or inner.form == "npz" else Kind(inner.form, gzipped=True)
    if head.startswith(b"\x93NUMPY"):
        return Kind("npy")
    if head.startswith(b"PK\x03\x04"):
        return Kind("npz") if file.lower().endswith(".npz") else None
    if head.startswith(_FASTTEXT):
        raise UnsupportedError(
            f"{file} is a model of fastText, whose words are sums of rows",
            "give its .vec file, which holds the words' vectors",
        )
    if is_text(head):
        return Kind("text")
    try:
        header(head[:64], file)
    except FormatError:
        return None
    return Kind("binary")


def _gunzipped(head: bytes) -> bytes:
    try:
        return zlib.decompressobj(31).decompress(head, HEAD_NBYTES)
    except zlib.error:
        return b""


def open_mapped(buffer: bytes | mmap.mmap, file: str, kind: Kind) -> Mapped | None:
    """The table of a memory-mapped file; None where it must be converted.

    Raises FormatError for a malformed or truncated file, UnsupportedError for an array that is no
    matrix of floats.
    """
    if kind.gzipped or kind.form == "text":
        return None
    if kind.form == "binary":
        return Mapped(*read_binary(buffer, file))
    if kind.form == "npy":
        return Mapped(read_npy(lambda a, b: buffer[a:b], 0, len(buffer), file), None)
    npz = Npz(lambda a, b: buffer[a:b], len(buffer), file)
    table = npz.table()
    return None if table is None else Mapped(table, npz.words())


def convert(stream: BinaryIO, file: str, kind: Kind) -> Iterator[tuple[list[bytes] | None, F32]]:
    """Yield words (None where the file has none) and rows (n, dims) float32, from first to last.

    stream: the file as it is, opened for reading bytes; an .npz must be seekable. The working
    memory is a few MiB, and the words of an .npz.

    Raises FormatError, for a text with the number of the line.
    """
    if not kind.gzipped:
        yield from _convert(stream, file, kind.form)
        return
    try:
        with gzip.GzipFile(fileobj=stream, mode="rb") as inner:
            yield from _convert(inner, file, kind.form)  # type: ignore[arg-type]
    except (OSError, EOFError, zlib.error) as error:
        raise FormatError(f"{file} is damaged or truncated: {error}", _AGAIN) from error


def _convert(stream: BinaryIO, file: str, form: str) -> Iterator[tuple[list[bytes] | None, F32]]:
    if form == "text":
        yield from read_text(stream, file)
    elif form == "binary":
        yield from stream_binary(stream, file)
    elif form == "npy":
        yield from ((None, rows) for rows in stream_npy(stream, file))
    else:
        yield from _from_npz(stream, file)


def _from_npz(stream: BinaryIO, file: str) -> Iterator[tuple[list[bytes] | None, F32]]:
    def read(start: int, stop: int) -> bytes:
        stream.seek(start)
        return stream.read(stop - start)

    npz = Npz(read, stream.seek(0, io.SEEK_END), file)
    words, first = npz.words(), 0
    for rows in stream_npy(npz.stream(), file):
        yield None if words is None else words[first : first + len(rows)], rows
        first += len(rows)
