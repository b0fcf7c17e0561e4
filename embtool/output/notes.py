"""What a person is told beside the data: always on standard error."""

import os
import sys

from embtool.errors import EmbtoolError


def report(error: EmbtoolError) -> None:
    """An error: what failed, and a line that says what to do."""
    sys.stderr.write(f"error: {error.message}\n  try: {error.advice}\n")


def forget_output() -> None:
    """Let what standard output did not take go nowhere; else Python complains when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
