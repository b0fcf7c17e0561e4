"""What a person is told beside the data: always on standard error."""

import sys

from embtool.errors import EmbtoolError


def report(error: EmbtoolError) -> None:
    """An error: what failed, and a line that says what to do."""
    sys.stderr.write(f"error: {error.message}\n  try: {error.advice}\n")
