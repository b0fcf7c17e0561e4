"""`export`: a table, or some rows of it, as a file of another tool."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from embtool.errors import SourceError, TokenError
from embtool.model import Model
from embtool.queries.candidates import Candidates, allowed_rows
from embtool.queries.ground import Choices, Ground
from embtool.vocab import UsageError
from embtool.writers import arrays, listings, word2vec
from embtool.writers.rows import Rows

_Write = Callable[[BinaryIO, Rows], None]

#: What the ending of a file says.
WRITERS: dict[str, _Write] = {
    ".npy": arrays.write_npy,
    ".txt": word2vec.write_text,
    ".vec": word2vec.write_text,
    ".bin": word2vec.write_binary,
    ".tsv": listings.write_vectors,
    ".parquet": listings.write_parquet,
}


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written: `files` are the paths, two for a projector pair."""

    model: str
    table: str
    rows: int
    d_model: int
    files: tuple[str, ...]


def export(
    model: Model,
    path: Path,
    choices: Choices,
    candidates: Candidates,
    texts: Sequence[str] = (),
    ids: Sequence[int] | None = None,
    dtype: str = "float32",
) -> Exported:
    """Write the rows of some words, of some ids, of all candidates, or all rows, as PATH's ending
    says. Words and ids keep their order; a file appears whole or not at all.

    Raises:
        UsageError: an ending that names no format. SourceError: the file cannot be written.
    """
    ground = Ground(model, choices, candidates)
    rows = _rows(ground, _chosen(ground, texts, ids))
    if path.suffix == ".safetensors":
        _write(path, lambda file, some: arrays.write_safetensors(file, some, dtype), rows)
    elif path.suffix in WRITERS:
        _write(path, WRITERS[path.suffix], rows)
    else:
        known = " ".join([*WRITERS, ".safetensors"])
        raise UsageError(f"{path.name}: its ending is none of {known}")
    files = [path]
    if path.suffix == ".tsv":
        files.append(path.with_suffix(".metadata.tsv"))
        _write(files[1], listings.write_metadata, rows)
    return Exported(
        model.ref, ground.table.tensor, len(rows.ids), rows.d_model, tuple(map(str, files))
    )


def _chosen(ground: Ground, texts: Sequence[str], ids: Sequence[int] | None) -> list[int]:
    """The row numbers to write.

    Raises:
        TokenError: a word or an id that has no row.
    """
    count = ground.table.shape[0]
    if texts:
        return [token_id for text in texts for token_id in ground.word(text).ids]
    if ids is not None:
        for token_id in ids:
            if not 0 <= token_id < count:
                raise TokenError(
                    f"id {token_id} has no row: the table has {count} rows",
                    f"its rows are id:0 to id:{count - 1}",
                )
        return list(ids)
    if ground.candidates == Candidates():
        return list(range(count))
    allowed = allowed_rows(ground.vocabulary, count, ground.candidates)
    return [int(row) for row in np.flatnonzero(allowed)]


def _rows(ground: Ground, ids: Sequence[int]) -> Rows:
    vocabulary, table = ground.vocabulary, ground.table
    return Rows(
        tensor=table.tensor,
        d_model=table.shape[1],
        dtype=table.dtype,
        ids=ids,
        tokens=[vocabulary.token(token_id) for token_id in ids],
        raws=[vocabulary.raw(token_id) for token_id in ids],
        read=table.rows,
        stored=table.stored_rows,
    )


def _write(path: Path, write: _Write, rows: Rows) -> None:
    part = path.with_name(path.name + ".part")
    try:
        with part.open("wb") as file:
            write(file, rows)
        part.replace(path)
    except OSError as error:
        raise SourceError(
            f"{path} cannot be written: {error.strerror or error}",
            "name a file in a folder that exists and has room",
        ) from error
    finally:
        part.unlink(missing_ok=True)
