"""Arguments that may be `-`: words and texts from standard input."""

import queue
import sys
import threading
from collections.abc import Iterator, Sequence

import typer

#: Most words that share one scan; the first batch is whatever has arrived by then.
_BATCH = 512


def text_argument(text: str) -> str:
    """A TEXT; `-` is standard input, read whole and as it is."""
    return _decode(sys.stdin.buffer.read()) if text == "-" else check(text)


def batches(words: Sequence[str]) -> Iterator[list[str]]:
    """Words to answer together: all arguments, or the lines of standard input as they come.

    A line keeps its leading space, which means something. Empty lines are passed over.
    """
    if "-" not in words:
        yield [check(word) for word in words]
        return
    if len(words) > 1:
        raise typer.BadParameter("- stands alone: it reads the words from standard input")
    yield from _lines()


def _lines() -> Iterator[list[str]]:
    """Lines in batches of what is there, so that a slow writer is answered line by line."""
    arrived: queue.Queue[bytes | None] = queue.Queue(4 * _BATCH)

    def read() -> None:
        for line in sys.stdin.buffer:
            arrived.put(line)
        arrived.put(None)

    threading.Thread(target=read, daemon=True).start()
    ended = False
    while not ended:
        batch = [arrived.get()]
        while batch[-1] is not None and len(batch) < _BATCH and not arrived.empty():
            batch.append(arrived.get())
        ended = batch[-1] is None
        lines = [_decode(line).rstrip("\r\n") for line in batch if line is not None]
        if words := [line for line in lines if line.strip()]:
            yield words


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
