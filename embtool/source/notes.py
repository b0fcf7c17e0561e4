"""What is worth knowing beside an answer: one line on standard error, unless quiet is wanted."""

import sys

from embtool.errors import one_line

_quiet = False


def note(text: str) -> None:
    """Tell a person something, once it matters."""
    if not _quiet:
        sys.stderr.write(f"note: {one_line(text)}\n")


def keep_quiet(quiet: bool) -> None:
    """From now on tell nothing, or tell again."""
    global _quiet  # noqa: PLW0603 -- one wish for the whole process, as for its standard error
    _quiet = quiet
