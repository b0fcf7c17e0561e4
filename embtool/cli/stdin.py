"""Arguments that may be `-`: words and texts from standard input."""

import os
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from embtool.errors import FormatError, SourceError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Lines that share one scan: few at first, so that the first answer does not wait for many.
_FIRST, _MOST = 8, 512


def text_argument(text: str) -> str:
    """A TEXT; `-` is standard input, read whole and as it is."""
    return _decode(sys.stdin.buffer.read()) if text == "-" else check(text)


def numbers(text: str, option: str) -> list[int]:
    """Whole numbers with commas or spaces between."""
    try:
        return [int(part) for part in text.replace(",", " ").split()]
    except ValueError:
        raise typer.BadParameter(f"{option} takes numbers with commas between: {text!r}") from None


def is_stdin(words: Sequence[str]) -> bool:
    """Whether the words are `-`; together with others it is wrong usage."""
    if "-" in words and len(words) > 1:
        raise typer.BadParameter("- stands alone: it reads the words from standard input")
    return list(words) == ["-"]


def batches(words: Sequence[str]) -> Iterator[list[str]]:
    """Words to answer together: all arguments, or the lines of standard input as they come.

    A line keeps its leading space, which means something. Empty lines are passed over.
    """
    if is_stdin(words):
        yield from _lines()
    else:
        yield [check(word) for word in words]


def triples(words: Sequence[str]) -> Iterator[list[tuple[str, ...]]]:
    """The same for three words: the arguments, or lines of three.

    A line is split at tabs, or at spaces where it has no tab. A line of another number of words
    comes out as it is: who answers says what is wrong with it.
    """
    if not is_stdin(words):
        if len(words) != 3:
            raise typer.BadParameter(f"an analogy has three words, not {len(words)}")
        yield [tuple(check(word) for word in words)]
        return
    for batch in _lines():
        yield [tuple(line.split("\t") if "\t" in line else line.split()) for line in batch]


def read_words(words: Sequence[str], file: Path | None = None) -> list[str]:
    """All words at once: arguments, the lines of standard input for `-`, or those of a file."""
    if file is None:
        return [word for batch in batches(words) for word in batch]
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(
            f"{file} cannot be read: {error}", "give a text file in UTF-8, one word a line"
        ) from error
    return [line for line in lines if line.strip()]


def read_vectors(name: str) -> tuple[str, "NDArray[np.float64]"]:
    """The name and the vectors (n, d_model) of `FILE.npy`, or of lines of numbers for `-`."""
    import numpy as np

    advice = "give a .npy file of numbers, (d_model,) or (n, d_model), or lines of numbers"
    try:
        if name == "-":
            lines = [line.split() for line in sys.stdin.buffer.read().decode().splitlines()]
            vectors = np.array([line for line in lines if line], np.float64)
        else:
            vectors = np.load(name, allow_pickle=False).astype(np.float64)
    except OSError as error:
        raise SourceError(f"{name} cannot be read: {error.strerror or error}", advice) from error
    except (ValueError, EOFError, TypeError) as error:
        raise FormatError(f"{name} holds no vectors: {error}", advice) from error
    return Path(name).name, np.atleast_2d(vectors)


def _lines() -> Iterator[list[str]]:
    """Lines in batches of what is there, so that a slow writer is answered line by line."""
    import queue

    arrived: queue.Queue[bytes | None] = queue.Queue(2 * _MOST)

    def read() -> None:
        # A reader of its own: Python closes sys.stdin when it ends, and would wait for a thread
        # that is in the middle of a line.
        with os.fdopen(os.dup(sys.stdin.fileno()), "rb") as stream:
            for line in stream:
                arrived.put(line)
        arrived.put(None)

    threading.Thread(target=read, daemon=True).start()
    limit, ended = _FIRST, False
    while not ended:
        batch = [arrived.get()]
        while batch[-1] is not None and len(batch) < limit and not arrived.empty():
            batch.append(arrived.get())
        ended = batch[-1] is None
        # A line that is no UTF-8 keeps its bytes as surrogates: the vocabulary refuses it.
        lines = [raw.decode(errors="surrogateescape") for raw in batch if raw is not None]
        if words := [line.rstrip("\r\n") for line in lines if line.strip()]:
            yield words
        limit = min(4 * limit, _MOST)


def check(text: str) -> str:
    """An argument as text.

    Python hides bytes of an argument that are no UTF-8 in surrogates; a tokenizer cannot take
    them.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise typer.BadParameter("an argument is not valid UTF-8") from None
    return text


def _decode(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"standard input is not valid UTF-8: {error}") from None
