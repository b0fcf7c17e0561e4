"""Word vectors in word2vec's binary form: `rows dims`, then each word, a space and its numbers.

Source: word2vec.c (Google, 2013), which ends a row with a newline; its GoogleNews file has none.
The numbers are float32, little-endian. Since words differ in length, so do rows, and where each
begins is found in one pass over the file.
"""

import mmap
import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from embtool.errors import FormatError
from embtool.header import TensorInfo
from embtool.packed import Fetch, Packed
from embtool.quant import F32, U8
from embtool.vectors.text import Chunk

_HEADER = re.compile(rb"(\d{1,12}) (\d{1,7})\r?\n")
_LONGEST_WORD = 4096
_BLOCK = 4 << 20
_AGAIN = "fetch the file again"

Buffer = bytes | mmap.mmap


def header(head: bytes, file: str) -> tuple[int, int, int]:
    """Rows, dims and where the first row begins. Raises FormatError where there is no header."""
    found = _HEADER.match(head)
    if found is None or int(found[2]) == 0:
        raise FormatError(
            f"{file} does not begin with its rows and dims", "give word vectors of word2vec"
        )
    return int(found[1]), int(found[2]), found.end()


def read_binary(buffer: Buffer, file: str) -> tuple[Packed, list[bytes]]:
    """The table of a memory-mapped file, and its words.

    The table keeps 8 bytes a row, of where it begins; its numbers stay in the file. Raises
    FormatError where the file ends early, goes on behind its last row, or a word has no end.
    """
    rows, dims, at = header(buffer[:64], file)
    nbytes = len(buffer)
    if rows * (4 * dims + 1) > nbytes - at:
        raise FormatError(
            f"{file} has {nbytes} bytes, too few for {rows} rows of {dims} numbers", _AGAIN
        )
    words, begins, at = _scan(buffer, at, rows, dims, file)
    if len(words) < rows:
        raise FormatError(f"{file} ends within row {len(words)} of {rows}", _AGAIN)
    if buffer[at:].strip(b"\r\n"):
        raise FormatError(f"{file} has {nbytes - at} bytes behind its {rows} rows", _AGAIN)
    info = TensorInfo("vectors", "F32", (rows, dims), 0, nbytes)
    decode = partial(_gather, info, begins)
    scheme = "word2vec's binary form"
    return Packed("vectors", scheme, "F32", (rows, dims), (info,), decode, by_row=False), words


def stream_binary(stream: BinaryIO, file: str) -> Iterator[Chunk]:
    """Yield words and rows of a file that cannot be memory-mapped."""
    held = stream.read(_BLOCK)
    rows, dims, at = header(held, file)
    seen = 0
    while seen < rows:
        words, begins, stop = _scan(held, at, rows - seen, dims, file)
        if words:
            stored = _rows(np.frombuffer(held, np.uint8), begins, dims)
            yield words, stored
        seen += len(words)
        more = stream.read(max(_BLOCK, 4 * dims)) if seen < rows else b""
        if seen < rows and not more:
            raise FormatError(f"{file} ends within row {seen} of {rows}", _AGAIN)
        held, at = held[stop:] + more, 0
    if held.strip(b"\r\n") or stream.read(1):
        raise FormatError(f"{file} goes on behind its {rows} rows", _AGAIN)


def _scan(
    buffer: Buffer, at: int, most: int, dims: int, file: str
) -> tuple[list[bytes], NDArray[np.int64], int]:
    """Words and where their numbers begin, of the rows that are there whole, and what is next."""
    words: list[bytes] = []
    begins: list[int] = []
    nbytes, last = 4 * dims, len(buffer)
    while len(words) < most:
        space = buffer.find(b" ", at, at + _LONGEST_WORD)
        if space < 0 and last - at >= _LONGEST_WORD:
            raise FormatError(
                f"{file}: the word of row {len(words)} from byte {at} on has no end", _AGAIN
            )
        if space < 0 or space + 1 + nbytes > last:
            break
        words.append(buffer[at:space].lstrip(b"\n"))
        begins.append(space + 1)
        at = space + 1 + nbytes
    return words, np.array(begins, np.int64), at


def _gather(
    info: TensorInfo, begins: NDArray[np.int64], fetch: Fetch, ids: Sequence[int], out: F32
) -> None:
    whole = fetch(info, range(1), info.stop - info.start)[0]
    np.copyto(out, _rows(whole, begins[np.asarray(ids, np.int64)], out.shape[1]))


def _rows(stored: U8, begins: NDArray[np.int64], dims: int) -> F32:
    """The rows that begin at some bytes, (len(begins), dims)."""
    windows = np.lib.stride_tricks.sliding_window_view(stored, 4 * dims)
    rows: F32 = windows[begins].view("<f4")
    return rows
