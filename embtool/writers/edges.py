"""A graph's edges as Parquet."""

from itertools import islice
from pathlib import Path

from embtool.writers.listings import need_pyarrow

_STEP = 1 << 16


def to_parquet(tsv: Path, path: Path) -> None:
    """Turn lines `id token rank neighbor neighbor_token score`, without a header, into Parquet.

    A row group for every 65,536 edges.

    Raises:
        UnsupportedError: the extra `parquet` is not installed.
    """
    pa, parquet = need_pyarrow()
    number, text = pa.int64(), pa.string()
    fields = [("id", number), ("token", text), ("rank", pa.int32()), ("neighbor", number)]
    schema = pa.schema([*fields, ("neighbor_token", text), ("score", pa.float64())])
    with (
        tsv.open(encoding="utf-8", newline="\n") as lines,
        parquet.ParquetWriter(path, schema) as writer,
    ):
        while some := [line.rstrip("\n").split("\t") for line in islice(lines, _STEP)]:
            ids, tokens, ranks, neighbors, named, scores = zip(*some, strict=True)
            numbers = [list(map(int, column)) for column in (ids, ranks, neighbors)]
            columns = [numbers[0], tokens, numbers[1], numbers[2], named, list(map(float, scores))]
            arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
            writer.write_batch(pa.record_batch(arrays, schema=schema))
