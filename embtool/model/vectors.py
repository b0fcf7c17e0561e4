"""A file of classic word vectors as a model: one table, and its words for tokens."""

import mmap
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from embtool.errors import FormatError
from embtool.header import TensorInfo
from embtool.model.converted import Converted, convert_once, whole_file
from embtool.model.records import Checkpoint
from embtool.source import Progress, Source
from embtool.source.local import LocalSource
from embtool.table import PackedTable, Table, Units
from embtool.vocab import Vocabulary, no_vocabulary, open_words

if TYPE_CHECKING:
    from embtool.packed import Packed
    from embtool.vectors import Kind

Words = Callable[[], Sequence[bytes]]

# Files of which nobody needs to look at the first bytes.
_OTHERS = (".safetensors", ".gguf", ".json")
_TORCH = "pytorch_model"
# Lists that may belong to something else beside an array.
_ANYBODYS = ("vocab.txt", "words.txt")


class _Kept(PackedTable):
    """Rows that were read out of a text or a compressed file, and lie in the cache."""

    def __init__(
        self, source: Source, file: str, kind: "Kind", found: Converted, progress: Progress
    ) -> None:
        from embtool.packed import plain

        shape = (found.rows, found.dims)
        info = TensorInfo("vectors", "F32", shape, 0, found.nbytes)
        cache = LocalSource(source.ref, "file", found.path.parent, None)
        super().__init__(plain(info), file, Units(cache, {"vectors": found.path.name}, progress))
        self.dtype = f"{kind.form}, gzip" if kind.gzipped else kind.form
        self.nbytes = source.size(file)
        self._key = source.key(file)

    @property
    def key(self) -> str:
        """That of the file itself."""
        return self._key


class Vectors(NamedTuple):
    """The table of a file; `vocabulary` opens its words, or those of a list beside it."""

    file: str
    table: Table
    vocabulary: Callable[[], Vocabulary]

    @property
    def checkpoint(self) -> Checkpoint:
        """The file as a checkpoint of one tensor."""
        table, name = self.table, self.table.tensor
        info = TensorInfo(name, table.dtype, table.shape, 0, table.nbytes)
        if isinstance(table, PackedTable) and not isinstance(table, _Kept):
            info = table.packed.parts[0]
        return Checkpoint(self.file, {name: info}, {name: self.file})


def vectors_kind(source: Source, file: str | None) -> "Kind | None":
    """What a file of vectors is, by its first bytes; None for any other checkpoint.

    Raises:
        UnsupportedError: a model of fastText, whose words are sums of rows.
    """
    if file is None or file.endswith(_OTHERS) or file.rpartition("/")[2].startswith(_TORCH):
        return None
    from embtool.vectors import HEAD_NBYTES, kind_of

    return kind_of(source.bytes(file, 0, min(HEAD_NBYTES, source.size(file))), file)


def open_vectors(source: Source, file: str, kind: "Kind", progress: Progress) -> Vectors:
    """The table and the words; rows of .npy and .npz are read by ranges, also from the Hub.

    Raises:
        FormatError: the file is malformed or truncated.
        UnsupportedError: an array that is no matrix of floats.
    """
    table, words = _where_it_lies(source, file, kind, progress)
    if table is None:
        found = convert_once(source, file, kind, progress)
        table = _Kept(source, file, kind, found, progress)
        words = found.words if found.has_words else None
    if words is not None:
        key = source.key(file)
        return Vectors(file, table, lambda: open_words(key, "words", words))
    return Vectors(file, table, partial(_beside, source, file, table.shape[0]))


def _where_it_lies(
    source: Source, file: str, kind: "Kind", progress: Progress
) -> tuple[Table | None, Words | None]:
    """The table of a file whose rows have places in it, and its own words."""
    from embtool.vectors.arrays import Npz, read_npy

    if kind.gzipped or kind.form == "text":
        return None, None
    if kind.form == "binary":
        return _binary(source, file, progress)
    read, nbytes = partial(source.bytes, file), source.size(file)
    if kind.form == "npy":
        return _table(source, file, read_npy(read, 0, nbytes, file), progress), None
    npz = Npz(read, nbytes, file)
    packed = npz.table()
    if packed is None:
        return None, None
    words = (lambda: npz.words() or []) if npz.has_words else None
    return _table(source, file, packed, progress), words


def _binary(source: Source, file: str, progress: Progress) -> tuple[Table, Words]:
    from embtool.vectors.binary import read_binary

    with whole_file(source, file, progress).open("rb") as stream:
        buffer = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    packed, words = read_binary(buffer, file)
    return _table(source, file, packed, progress), lambda: words


def _table(source: Source, file: str, packed: "Packed", progress: Progress) -> Table:
    """Floats that lie row by row are a table as any other."""
    if packed.by_row and packed.dtype != "I8":
        return Table(source, file, packed.parts[0], progress)
    return PackedTable(packed, file, Units(source, {packed.parts[0].name: file}, progress))


def _beside(source: Source, file: str, rows: int) -> Vocabulary:
    """The first list of as many words as there are rows; without one, ids alone.

    Raises:
        FormatError: a list of the array's own name has another length.
    """
    from embtool.vectors import read_words, word_files

    for name in word_files(file):
        if not source.has(name) or vectors_kind(source, name) is not None:
            continue
        raw = source.read(name)
        try:
            words = read_words(raw, rows, name)
        except FormatError:
            if name.rpartition("/")[2] in _ANYBODYS:
                continue
            raise
        return open_words(source.key(name), f"words of {rows} rows", partial(list, words))
    return no_vocabulary()
