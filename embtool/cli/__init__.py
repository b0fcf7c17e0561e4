"""The command line: options and thin bodies; the only importer of typer."""

import os
import sys
from typing import Annotated

import typer

from embtool import __version__
from embtool.cli import analogies, count, explain, export, hub, nearest, plot, texts, training

app = typer.Typer(
    name="embtool",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Look inside the token-embedding tables of real language models.",
    epilog="Example: embtool analogy 国王 男人 女人",
)
for group in (count, texts, nearest, analogies, explain, training, export, plot, hub):
    group.add(app)


def _version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"embtool {__version__}\n")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Look inside the token-embedding tables of real language models."""


def main() -> None:
    """The entry point of the command `embtool`."""
    # Scans have threads of their own, one for each part of a table; BLAS would add its own to
    # each of them. numpy reads this when it is imported, which no command has done yet.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for stream in (sys.stdout, sys.stderr):
        # Tokens are any Unicode; a pipe's locale must not decide whether they can be written.
        stream.reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")  # type: ignore[union-attr]
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)
