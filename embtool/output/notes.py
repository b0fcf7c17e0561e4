"""What a person is told beside the data: always on standard error."""

import errno
import os
import sys

from embtool.errors import EmbtoolError, SourceError

#: What a disk says that takes no more.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def report(error: EmbtoolError) -> None:
    """An error: what failed, and a line that says what to do."""
    sys.stderr.write(f"error: {error.message}\n  try: {error.advice}\n")


def report_refusal(error: OSError) -> None:
    """What the system refused that nobody foresaw: most often to take more of the output."""
    what = f"{error.filename}: " if error.filename else ""
    advice = "make room, or allow it, and ask again; EMBTOOL_DEBUG=1 shows where it was"
    if error.errno in FULL and not error.filename:
        what = "standard output cannot be written: "
        advice = "make room where it goes, or write elsewhere with -o FILE"
    report(SourceError(f"{what}{error.strerror or error}", advice))
    try:
        sys.stdout.flush()
    except OSError:
        forget_output()


def forget_output() -> None:
    """Let what standard output did not take go nowhere; else Python complains when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
