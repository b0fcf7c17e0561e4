"""Where a picture goes: standard output, or a file whose ending says how it is drawn."""

import os
import shutil
import sys
from pathlib import Path

from embtool.errors import SourceError
from embtool.plot import Figure, choose_format, render


class Target:
    """A file, or standard output, and a format.

    Raises:
        ValueError: the file's ending names no format or contradicts the one that is asked for,
            or a terminal would get the bytes of a PNG.
    """

    def __init__(self, format_: str | None, output: Path | None) -> None:
        self._format = choose_format(format_, output)
        self._output = output
        if output is None and self._format == "png" and sys.stdout.isatty():
            raise ValueError("a PNG is no text for a terminal; name a file with -o")

    def write(self, figure: Figure) -> tuple[str, ...]:
        """Draw a figure; returns notes for a person."""
        here = self._output is None and sys.stdout.isatty()
        width = shutil.get_terminal_size((80, 24)).columns
        colour = here and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        content, notes = render(figure, self._format, width, colour=colour)
        if self._output is None:
            sys.stdout.flush()
            if self._format == "png":
                sys.stdout.buffer.write(content)
            else:
                sys.stdout.write(content.decode())
            return notes
        try:
            self._output.write_bytes(content)
        except OSError as error:
            raise SourceError(
                f"{self._output} cannot be written: {error.strerror or error}",
                "name a file in a folder that exists and is writable",
            ) from error
        return notes
