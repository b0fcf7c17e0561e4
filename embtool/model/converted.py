"""Word vectors that cannot be read where they lie: gone through once, and kept in the cache.

The kept file: the rows in float32, the words one after another, their lengths (u32), and an end
record, by which a file that was cut is known.
"""

import os
import struct
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import numpy as np

from embtool.errors import SourceError
from embtool.source import Progress, Source
from embtool.source.derived import derived, write_atomic
from embtool.source.notes import note

if TYPE_CHECKING:
    from embtool.vectors import Kind

_NAME = "vectors-1.f32"
# Magic, rows, dims, bytes of the words, and whether there are words.
_END = struct.Struct("<8s3Q?")
_MAGIC = b"embvec\x00\x01"
#: Files from so many bytes on are worth a note and a bar.
_LONG = 64 << 20
#: Files from so many bytes on have a sha256 on the Hub; smaller ones may lie in git itself.
_HASHED = 10 << 20


class Converted(NamedTuple):
    """The rows (rows, dims) float32 are the first bytes of the file at `path`."""

    path: Path
    rows: int
    dims: int
    words_nbytes: int
    has_words: bool

    @property
    def nbytes(self) -> int:
        """Bytes of the rows."""
        return 4 * self.rows * self.dims

    def words(self) -> list[bytes]:
        """The words, in the order of the rows."""
        with self.path.open("rb") as stream:
            stream.seek(self.nbytes)
            blob = stream.read(self.words_nbytes)
            lengths = np.frombuffer(stream.read(4 * self.rows), "<u4")
        ends = np.cumsum(lengths, dtype=np.int64).tolist()
        return [blob[a:b] for a, b in zip([0, *ends], ends, strict=False)]


def convert_once(source: Source, file: str, kind: "Kind", progress: Progress) -> Converted:
    """The kept rows and words of a file, made where they are not there yet.

    Raises:
        FormatError: the file is malformed.
        SourceError: there is no place for them.
    """
    path = derived(source.key(file), _NAME)
    found = _open(path)
    if found is None:
        whole = whole_file(source, file, progress)
        if whole.stat().st_size >= _LONG:
            note(f"reading {file} once, its rows are kept in the cache")
        write = _writer(whole, file, kind, progress)
        if not write_atomic(path, write):
            path = _scratch() / f"{source.key(file)}.f32"
            write_atomic(path, write)
        found = _open(path)
    if found is None:
        raise SourceError(
            f"{source.ref}: the rows of {file} can be kept nowhere",
            "set HF_HOME to a folder with room for them",
        )
    return found


def whole_file(source: Source, file: str, progress: Progress) -> Path:
    """The file on this machine, fetched if it must be."""
    here = source.path(file)
    if here is None and source.size(file) < _HASHED:
        source.read(file)
        here = source.path(file)
    return here or source.shard(file, progress)


@cache
def _scratch() -> Path:
    """A folder for the life of this process, where the cache cannot be written."""
    import atexit
    import shutil
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="embtool-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _writer(whole: Path, file: str, kind: "Kind", progress: Progress) -> Callable[[BinaryIO], None]:
    def write(out: BinaryIO) -> None:
        from embtool.vectors import convert

        total = whole.stat().st_size
        rows, dims, has_words = 0, 0, True
        blob, lengths = bytearray(), bytearray()
        with whole.open("rb") as stream:
            for words, block in convert(stream, file, kind):
                out.write(np.ascontiguousarray(block, "<f4").data)
                rows, dims = rows + len(block), block.shape[1]
                if words is None:
                    has_words = False
                else:
                    blob += b"".join(words)
                    lengths += np.fromiter(map(len, words), "<u4", len(words)).tobytes()
                if total >= _LONG:
                    progress(stream.tell(), total)
        out.write(blob)
        out.write(lengths)
        out.write(_END.pack(_MAGIC, rows, dims, len(blob), has_words))

    return write


def _open(path: Path) -> Converted | None:
    """What is kept, or None where it is not there whole."""
    try:
        with path.open("rb") as stream:
            nbytes = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, nbytes - _END.size))
            magic, rows, dims, words, has = _END.unpack(stream.read(_END.size))
    except (OSError, struct.error):
        return None
    found = Converted(path, rows, dims, words, has)
    length = found.nbytes + words + (4 * rows if has else 0) + _END.size
    return found if magic == _MAGIC and nbytes == length else None
