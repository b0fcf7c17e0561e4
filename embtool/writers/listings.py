"""Rows with their names: TensorBoard's projector pair, and Parquet."""

from typing import Any, BinaryIO

import numpy as np

from embtool.errors import UnsupportedError
from embtool.writers.rows import Rows


def write_vectors(file: BinaryIO, rows: Rows) -> None:
    """The projector's vectors: a line a row, numbers with tabs between, no header."""
    for block in rows.blocks():
        for row in block.tolist():
            file.write(("\t".join([f"{number:.9g}" for number in row]) + "\n").encode())


def write_metadata(file: BinaryIO, rows: Rows) -> None:
    """The projector's labels: a header and a line a row, in the order of the vectors."""
    file.write(b"token\tid\traw\n")
    for token_id, token, raw in zip(rows.ids, rows.tokens, rows.raws, strict=True):
        file.write(f"{token or ''}\t{token_id}\t{raw or ''}\n".encode())


def write_parquet(file: BinaryIO, rows: Rows) -> None:
    """Columns id, token, raw, norm and vector (a fixed-size list of float32).

    A row group for each block, so that readers can share the work.

    Raises:
        UnsupportedError: the extra `parquet` is not installed.
    """
    pa, parquet = need_pyarrow()
    vector = pa.list_(pa.float32(), rows.d_model)
    fields = {"id": pa.int64(), "token": pa.string(), "raw": pa.string(), "norm": pa.float32()}
    schema = pa.schema([*fields.items(), ("vector", vector)])
    with parquet.ParquetWriter(file, schema) as writer:
        first = 0
        for block in rows.blocks():
            part = slice(first, first + len(block))
            norms = np.sqrt(np.einsum("ij,ij->i", block, block, dtype=np.float64))
            flat = pa.array(np.ascontiguousarray(block).reshape(-1))
            columns = [
                pa.array(rows.ids[part], pa.int64()),
                pa.array(rows.tokens[part], pa.string()),
                pa.array(rows.raws[part], pa.string()),
                pa.array(norms.astype(np.float32)),
                pa.FixedSizeListArray.from_arrays(flat, rows.d_model),
            ]
            writer.write_batch(pa.record_batch(columns, schema=schema))
            first += len(block)


def need_pyarrow() -> tuple[Any, Any]:
    """The modules pyarrow and pyarrow.parquet; raises UnsupportedError where they are not there."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise UnsupportedError(
            "Parquet needs the package pyarrow, which is not installed",
            'install it: pip install "embtool[parquet]"',
        ) from None
    return pyarrow, parquet
