"""The errors that embtool reports to a person.

    EmbtoolError
      SourceError        a file, folder, repository or network that cannot be read
      FormatError        bytes that are not what their format demands
      UnsupportedError   a valid thing that embtool does not read, named
      TokenError         a word, a token or an id that has no row

Each carries one line that says what failed and on what, and one that says what to do.
Anything else that is raised is a defect of embtool.
"""


class EmbtoolError(Exception):
    """What failed, on which thing (`message`), and what to do about it (`advice`)."""

    def __init__(self, message: str, advice: str) -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice


class SourceError(EmbtoolError):
    """A file, a folder, a repository or a network that cannot be read."""


class FormatError(EmbtoolError):
    """Bytes that are not what their format demands."""


class UnsupportedError(EmbtoolError):
    """A valid thing that embtool does not read; the message names it."""


class TokenError(EmbtoolError):
    """A word, a token or an id that has no row in the table."""
