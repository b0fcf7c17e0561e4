"""The command line: options and thin bodies; the only importer of typer."""

import gc
import os
import sys


def main() -> None:
    """The entry point of the command `embtool`."""
    # Most objects of a short run are modules and their functions, which live until its end: to
    # look for cycles among them, as they come and once more as Python ends, is a fifth of it.
    gc.set_threshold(100_000, 50, 50)
    # Scans have threads of their own, one for each part of a table; BLAS would add its own to
    # each of them. numpy reads this when it is imported, which no command has done yet.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from embtool.cli.app import app

    for stream in (sys.stdout, sys.stderr):
        # Tokens are any Unicode; a pipe's locale must not decide whether they can be written.
        stream.reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")  # type: ignore[union-attr]
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        gc.freeze()
