"""Word vectors as text: word2vec's with a first line `rows dims`, GloVe's without.

A line is a word, then its numbers, apart by single spaces (word2vec, distance.c; GloVe,
src/glove.c). fastText ends lines with a space, some tools use tabs or CRLF. Words may hold spaces
themselves (GloVe 840B has `. . .`): the numbers are counted from the right. Words are bytes, and
need not be UTF-8. Numbers are rounded to float64 and then to float32, as gensim does.
"""

import re
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from embtool.errors import FormatError
from embtool.quant import F32

_BLOCK = 1 << 20
_LONGEST_LINE = 8 << 20
_CUT = 4 << 10  # a shorter head is a whole file
_HEADER = re.compile(rb"(\d{1,12})[ \t]+(\d{1,9})[ \t\r]*")
# Signs that ask for a closer look at every line of a block; \x0b and \x0c are spaces to numpy.
_UNEVEN = (b"  ", b"\t", b"\r", b" \n", b"\x0b", b"\x0c")
_AGAIN = "repair the line, or fetch the file again"

#: The words of some rows, and the rows, (len(words), dims) float32.
Chunk = tuple[list[bytes], F32]


def is_text(head: bytes) -> bool:
    """Whether a file that begins like this holds word vectors as text."""
    whole = head if len(head) < _CUT else head[: head.rfind(b"\n") + 1]
    lines = [line for line in (whole or head).split(b"\n", 20) if line.strip()]
    if lines and _HEADER.fullmatch(lines[0]):
        lines.pop(0)
    fields = lines[0].split()[1:] if lines else []
    if not whole:
        fields = fields[:-1]  # the last one may go on behind the head
    return bool(fields) and all(map(_is_number, fields[-8:]))


def read_text(stream: BinaryIO, file: str) -> Iterator[Chunk]:
    """Yield words and rows, about a MiB of text at a time; all rows have one width.

    A blank line holds no row. A word that stands twice keeps both rows.

    Raises FormatError, naming the line, where a line has too few numbers or something that is no
    number, and at the end where the first line promised another count of rows.
    """
    reader = _Reader(file)
    for block in _blocks(stream, file):
        chunk = reader.read(block)
        if chunk[0]:
            yield chunk
    reader.finish()


def _blocks(stream: BinaryIO, file: str) -> Iterator[bytes]:
    """Whole lines, each with its end."""
    rest = b""
    lines = 0
    while data := stream.read(_BLOCK):
        cut = data.rfind(b"\n") + 1
        if cut:
            block, rest = rest + data[:cut], data[cut:]
            lines += block.count(b"\n")
            yield block
        else:
            rest += data
        if len(rest) > _LONGEST_LINE:
            raise FormatError(
                f"{file}: line {lines + 1} is longer than {_LONGEST_LINE} bytes",
                "give word vectors, one word a line",
            )
    if rest:
        yield rest + b"\n"


class _Reader:
    """Where the reading is: lines and rows so far, the width, and what the first line promised."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._dims = 0
        self._promised: int | None = None
        self._lines = 0
        self._rows = 0

    def read(self, block: bytes) -> Chunk:
        if self._lines == 0:
            block = block.removeprefix(b"\xef\xbb\xbf")  # a byte order mark is no part of a word
            block = self._begin(block)
        # As fastText ends its lines, and Windows: so long as all do, they can be read at once.
        block = block.replace(b"\r\n", b"\n").replace(b" \n", b"\n")
        lines = block.split(b"\n")[:-1]
        words, rows = self._even(block, lines) or self._uneven(lines)
        self._lines += len(lines)
        self._rows += len(words)
        return words, rows

    def finish(self) -> None:
        if self._rows == 0:
            raise FormatError(f"{self._file} holds no vectors", "give a file of word vectors")
        if self._promised not in (None, self._rows):
            raise FormatError(
                f"{self._file} has {self._rows} rows, its first line says {self._promised}", _AGAIN
            )

    def _begin(self, block: bytes) -> bytes:
        """Find the width, and leave out the first line where it is `rows dims`."""
        first, _, rest = block.partition(b"\n")
        counts = Counter(len(line.split()) for line in block.split(b"\n")[:1000] if line.strip())
        header = _HEADER.fullmatch(first)
        if header and (counts.keys() - {2} or int(header[2]) == 1 or not rest.strip()):
            self._promised, self._dims = int(header[1]), int(header[2])
            self._lines = 1
            block = rest
        elif counts:
            self._dims = counts.most_common(1)[0][0] - 1
        if self._dims < 1:
            raise FormatError(
                f"{self._file}: line 1 has no numbers behind a word", "give a file of word vectors"
            )
        return block

    def _even(self, block: bytes, lines: list[bytes]) -> Chunk | None:
        """All lines at once, where each has one space before each number; else None."""
        if any(sign in block for sign in _UNEVEN):
            return None
        words, numbers = [], []
        for line in lines:
            word, _, rest = line.partition(b" ")
            if rest.count(b" ") != self._dims - 1:
                return None
            words.append(word)
            numbers.append(rest)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # older numpy warns and stops where newer raises
            try:
                flat = np.fromstring(b" ".join(numbers), np.float32, sep=" ")
            except ValueError:
                return None
        if len(flat) != len(lines) * self._dims:
            return None
        return words, flat.reshape(-1, self._dims)

    def _uneven(self, lines: list[bytes]) -> Chunk:
        """Line by line, so that a fault is found where it is."""
        words: list[bytes] = []
        rows = np.empty((len(lines), self._dims), np.float32)
        for place, line in enumerate(lines, self._lines + 1):
            fields = line.rsplit(None, self._dims)
            if not fields:
                continue
            if len(fields) == self._dims and line[:1].isspace():
                fields.insert(0, b"")  # the empty word
            if len(fields) <= self._dims:
                raise self._fault(place, f"has {len(fields) - 1} numbers, not {self._dims}")
            bad = [field for field in fields[1:] if not _is_number(field)]
            if bad:
                raise self._fault(place, f"has {ascii(bad[0])[1:42]} for a number")
            rows[len(words)] = [float(field) for field in fields[1:]]
            words.append(fields[0])
        return words, rows[: len(words)]

    def _fault(self, line: int, what: str) -> FormatError:
        return FormatError(f"{self._file}: line {line} {what}", _AGAIN)


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return b"_" not in field
