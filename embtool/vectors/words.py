"""Lists of words beside a table: one word a line, in the order of the rows."""

from collections.abc import Sequence

from embtool.errors import FormatError
from embtool.vectors.text import is_text


def word_files(file: str) -> tuple[str, ...]:
    """Where the words of an array's file may be, in its own folder, the likeliest first."""
    folder, slash, name = file.rpartition("/")
    stem = name.removesuffix(".gz").rpartition(".")[0]
    own = [f"{stem}{ending}" for ending in (".vocab", ".words", ".words.txt", ".txt")]
    return tuple(f"{folder}{slash}{name}" for name in (*own, "vocab.txt", "words.txt"))


def read_words(raw: bytes, rows: int, file: str) -> list[bytes]:
    """The words of `rows` rows, as bytes; CRLF ends a line too, and the last end may be missing.

    Raises FormatError where there are more or fewer lines than rows, and for a file of vectors.
    """
    if is_text(raw[: 1 << 16]):
        raise FormatError(f"{file} holds vectors, not words", "give a file with one word a line")
    lines = raw.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if lines[-1] in (b"", b"\r"):
        lines.pop()
    if len(lines) != rows:
        raise FormatError(
            f"{file} has {len(lines)} lines, and the table {rows} rows",
            "give one word a line, in the order of the rows",
        )
    return [line.removesuffix(b"\r") for line in lines]


def repeated(words: Sequence[bytes]) -> list[tuple[int, int]]:
    """The rows whose word stood in an earlier row already, and that row."""
    first: dict[bytes, int] = {}
    again = []
    for row, word in enumerate(words):
        before = first.setdefault(word, row)
        if before != row:
            again.append((row, before))
    return again
