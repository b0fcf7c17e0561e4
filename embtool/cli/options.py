"""Options that several commands share, each with its help in one place."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Format(StrEnum):
    """How an answer is written."""

    table = "table"
    json = "json"
    jsonl = "jsonl"
    csv = "csv"
    tsv = "tsv"
    npy = "npy"


class Metric(StrEnum):
    """What near means."""

    cosine = "cosine"
    dot = "dot"
    euclidean = "euclidean"


class Form(StrEnum):
    """How a typed word becomes a token."""

    auto = "auto"
    bare = "bare"
    spaced = "spaced"


class Pool(StrEnum):
    """How the rows of a word of several tokens become one."""

    mean = "mean"


Words = Annotated[
    list[str],
    typer.Argument(
        help="Words, id:NUMBER or raw:PIECE; - reads them from standard input, one a line.",
        metavar="WORD...",
    ),
]
TERMS_HELP = "Three words; - reads lines of three, with tabs or spaces between."
TEXT_HELP = "A text, or id:NUMBER; - reads it from standard input."
Text = Annotated[str, typer.Argument(help=TEXT_HELP)]
ModelOption = Annotated[
    str | None,
    typer.Option("--model", "-m", help="A path, owner/name on the Hub, or gemma-3-270m."),
]
TableOption = Annotated[
    str, typer.Option("--table", help="input, output, or the name of a tensor.")
]
TokenizerOption = Annotated[
    str | None, typer.Option("--tokenizer", help="Another tokenizer's file or model.")
]
FormatOption = Annotated[
    Format | None,
    typer.Option("--format", "-f", help="Default: table on a terminal, tsv elsewhere."),
]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Write to a file; its ending sets the format."),
]
NoHeader = Annotated[bool, typer.Option("--no-header", help="No header line in TSV and CSV.")]
Offline = Annotated[bool, typer.Option("--offline", help="Never ask the network.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Nothing but data and errors.")]

Top = Annotated[int, typer.Option("--top", "-k", min=1, help="How many to show.")]
MetricOption = Annotated[Metric, typer.Option("--metric", help="What near means.")]
FormOption = Annotated[
    Form, typer.Option("--form", help="The word alone, or with one leading space.")
]
PoolOption = Annotated[
    Pool | None, typer.Option("--pool", help="What to make of a word of several tokens.")
]
Dims = Annotated[
    int | None, typer.Option("--dims", min=1, help="How many components of a vector to show.")
]
