"""The errors that embtool reports to a person.

    EmbtoolError
      SourceError        a file, folder, repository or network that cannot be read
      FormatError        bytes that are not what their format demands
      UnsupportedError   a valid thing that embtool does not read, named
      TokenError         a word, a token or an id that has no row

Each carries one line that says what failed and on what, and one that says what to do.
Anything else that is raised is a defect of embtool.
"""

import re

# What breaks a line or drives a terminal; joiners, which spell words and emoji, are none of it.
_CONTROLS = "[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]"


def one_line(text: str) -> str:
    """A sentence with the control characters of others' names escaped.

    >>> one_line("no tensor a\\x1b[2J")
    'no tensor a\\\\x1b[2J'
    """
    if text.isprintable():
        return text  # nearly always, and without a pattern to compile
    return re.sub(_CONTROLS, lambda found: found[0].encode("unicode_escape").decode(), text)


class EmbtoolError(Exception):
    """What failed, on which thing (`message`), and what to do about it (`advice`)."""

    def __init__(self, message: str, advice: str) -> None:
        self.message = one_line(message)
        self.advice = one_line(advice)
        super().__init__(self.message)


class SourceError(EmbtoolError):
    """A file, a folder, a repository or a network that cannot be read."""


class FormatError(EmbtoolError):
    """Bytes that are not what their format demands."""


class UnsupportedError(EmbtoolError):
    """A valid thing that embtool does not read; the message names it."""


class TokenError(EmbtoolError):
    """A word, a token or an id that has no row in the table."""
