"""The command line: options and thin bodies; the only importer of typer."""

import atexit
import gc
import os
import sys
import threading


def main() -> None:
    """The entry point of the command `embtool`; it ends the process."""
    try:
        run()
    except SystemExit as ended:
        _leave(ended.code)
        raise


def run() -> None:
    """The command, as far as SystemExit with its exit code."""
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


def _leave(code: object) -> None:
    """End the process at once, where nothing is left to do.

    Python would take every module, type and function apart before it ends, for 10 ms that
    everybody waits for; the system frees all of them together. Returns where a thread is still
    at work, where the code is a message, or where the output has nowhere to go.
    """
    if threading.active_count() > 1 or not isinstance(code, int):
        return
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):  # refused, closed, taken away
        return
    os._exit(code)
