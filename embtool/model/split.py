"""Meta's originals, `consolidated.00.pth`, `consolidated.01.pth`, ...: pieces of each table."""

import re
from functools import partial

from embtool.config import Config
from embtool.errors import FormatError, SourceError
from embtool.header import TensorInfo
from embtool.model.records import Checkpoint
from embtool.source import Source
from embtool.tensors import find_tables

_PIECE = r"(?P<start>(?:.*/)?consolidated\.)(?P<number>\d\d)\.pth"
_MOST = 100


def piece_names(source: Source, file: str) -> list[str]:
    """All files of the checkpoint that `file` is a piece of; the file alone where it is none.

    Raises:
        SourceError: the pieces before this one are not all there.
    """
    piece = re.fullmatch(_PIECE, file)
    if piece is None:
        return [file]
    names = (f"{piece['start']}{number:02}.pth" for number in range(_MOST))
    there = []
    for name in names:
        if not source.has(name):
            break
        there.append(name)
    if file not in there:
        missing = f"{piece['start']}{len(there):02}.pth"
        raise SourceError(
            f"{source.ref}: {missing} is not there, and {file} holds only a piece of each table",
            "put all files of the checkpoint into one folder",
        )
    return there


def open_split(source: Source, names: list[str], config: Config | None) -> Checkpoint:
    """The two tables, each joined from its pieces; the other tensors are left in theirs.

    Raises:
        FormatError: a piece lacks a table, or the pieces do not fit each other.
        UnsupportedError: the shapes do not tell how a table was split.
    """
    from embtool.packed import join_split
    from embtool.pickles import read_pickle

    files = [read_pickle(partial(source.bytes, name), source.size(name), name) for name in names]
    checkpoint = Checkpoint(names[0], complete=False)
    found = find_tables(dict.fromkeys(files[0].shapes), config)
    width = None if config is None else config.table_width
    rows = None if config is None else config.vocab_size
    for table in dict.fromkeys((found.input, found.output)):
        if table is None:
            continue
        pieces = []
        for file in files:
            if table not in file.shapes:
                raise FormatError(
                    f"{source.ref}: {file.file} has no piece of {table}",
                    "download or copy the file again",
                )
            piece = file.header([table]).tensors[table]._replace(name=f"{table} in {file.file}")
            checkpoint.files[piece.name] = file.file
            pieces.append(piece)
        packed = join_split(table, pieces, width, rows)
        checkpoint.packed[table] = packed
        checkpoint.files[table] = names[0]
        checkpoint.tensors[table] = TensorInfo(table, packed.dtype, packed.shape, 0, packed.nbytes)
    return checkpoint
