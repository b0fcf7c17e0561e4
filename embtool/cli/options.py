"""Options that several commands share, each with its help in one place."""

from pathlib import Path
from typing import Annotated, Literal, get_args

import typer

Format = Literal["table", "json", "jsonl", "csv", "tsv", "npy"]
PageFormat = Literal["table", "json", "jsonl"]
Metric = Literal["cosine", "dot", "euclidean"]
Form = Literal["auto", "bare", "spaced"]
Pool = Literal["mean", "first", "last", "sum"]
Oov = Literal["skip", "wrong"]
Method = Literal["3cosadd", "3cosmul", "pairdirection"]

SomeWords = Annotated[
    list[str] | None,
    typer.Argument(
        help="Words, id:NUMBER or raw:PIECE; - reads them from standard input, one a line.",
        metavar="WORD...",
    ),
]
EXPORT_HELP = "A file: .npy .safetensors .txt .vec .bin .tsv or .parquet."
VECTOR_HELP = "Of vectors instead: FILE.npy, or - for lines of numbers on standard input."
EXPR_HELP = 'Any sum instead: "国王 - 男人 + 女人", "2 king - 0.5 man".'
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
PageFormatOption = Annotated[
    PageFormat | None, typer.Option("--format", "-f", help="Default: table, a page to read.")
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
OovOption = Annotated[
    Oov, typer.Option("--oov", help="A question with a word that is not one row.")
]
Dims = Annotated[
    int | None, typer.Option("--dims", min=1, help="How many components of a vector to show.")
]

Center = Annotated[bool, typer.Option("--center", help="Compare rows less the mean row.")]
Remove = Annotated[
    int,
    typer.Option(
        "--remove-components", min=0, help="And without this many main components of all rows."
    ),
]
Only = Annotated[
    str | None, typer.Option("--only", metavar="REGEX", help="Answers whose token matches.")
]
Script = Annotated[
    str | None, typer.Option("--script", help="Answers in this script: han, latin, cyrillic.")
]
BeginWords = Annotated[bool, typer.Option("--words", help="Answers that begin a word.")]
First = Annotated[int | None, typer.Option("--first", min=1, help="Answers among the first rows.")]
NoSpecial = Annotated[bool, typer.Option("--exclude-special", help="No answer like <bos>.")]
Fold = Annotated[
    bool, typer.Option("--fold", help="Of king, King and KING the nearest, and how many.")
]
MethodOption = Annotated[Method, typer.Option("--method", help="The formula.")]


def methods(text: str) -> list[Method]:
    """Methods with commas between, each once."""
    names = list(dict.fromkeys(text.split(",")))
    known: tuple[Method, ...] = get_args(Method)
    if not set(names) <= set(known):
        raise typer.BadParameter(f"--method takes some of {', '.join(known)}, not {text!r}")
    return [method for name in names for method in known if method == name]
