"""`export`: rows in the formats of other tools."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from embtool.cli import options
from embtool.cli.session import CHOSEN, Session, shares
from embtool.cli.stdin import numbers, read_words

#: How numbers are kept in a safetensors file.
Dtype = Literal["float32", "bf16", "stored"]


@shares(*CHOSEN)
def export(
    session: Session,
    output: Annotated[Path, typer.Option("--output", "-o", help=options.EXPORT_HELP)],
    words: options.SomeWords = None,
    ids: Annotated[str | None, typer.Option("--ids", help="Rows: 5237,301.")] = None,
    dtype: Annotated[Dtype, typer.Option("--dtype", help="In .safetensors.")] = "float32",
) -> None:
    """Write the table, or the rows of some words or ids, as the file's ending says.

    Example: embtool export 国王 女王 -o rows.npy
    """
    from embtool.queries.export import export

    texts = read_words(words) if words else []
    chosen = numbers(ids, "--ids") if ids is not None else None
    candidates = session.candidates()
    done = export(session.model, output, session.choices, candidates, texts, chosen, dtype)
    files = " and ".join(done.files)
    session.note(f"note: {done.rows:,} rows × {done.d_model:,} of {done.table} in {files}")
