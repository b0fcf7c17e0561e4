"""SentencePiece's normalization of a text, before it is cut into pieces.

A charsmap is the bytes of a double-array trie (their number first, u32 little-endian) and texts
that end in a zero byte; the trie gives a prefix of the text the place of what is put in its stead
(https://github.com/google/sentencepiece/blob/master/src/normalizer.cc, the trie:
https://github.com/s-yata/darts-clone/blob/master/include/darts.h).
"""

import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from embtool.errors import FormatError
from embtool.vocab.contents import ADVICE

SPACE = "\u2581"
_LABEL = (1 << 31) | 0xFF


class Charsmap:
    """What is put in place of the longest prefix of a text that the trie knows."""

    def __init__(self, raw: bytes, file: str) -> None:
        nbytes = int.from_bytes(raw[:4], "little")
        if nbytes % 4 or not 4 <= nbytes <= len(raw) - 4:
            message = f"{file}: its normalization has {len(raw)} bytes, its trie {nbytes}"
            raise FormatError(message, ADVICE)
        self._units = np.frombuffer(raw, "<u4", nbytes // 4, 4).tolist()
        self._texts = raw[4 + nbytes :]

    def replaced(self, text: bytes, at: int) -> tuple[bytes, int] | None:
        """The text in place of the longest known prefix at `at`, and how long that is."""
        units, found = self._units, None
        node = _offset(units[0])
        for place in range(at, len(text)):
            node ^= text[place]
            if node >= len(units) or units[node] & _LABEL != text[place]:
                break
            unit = units[node]
            node ^= _offset(unit)
            if unit >> 8 & 1 and node < len(units):
                found = units[node] & 0x7FFFFFFF, place + 1 - at
        if found is None:
            return None
        start, length = found
        stop = self._texts.find(b"\0", start)
        return self._texts[start : stop if stop >= 0 else None], length


class Normalizer:
    """A text as its pieces are looked up in it: characters replaced, spaces as U+2581.

    prefix: a space comes before a text, or after it where `suffix`; collapse: of several spaces
    one is left, at the ends none; kept: user-defined pieces, in which nothing is replaced.
    """

    def __init__(
        self,
        charsmap: Charsmap | None,
        kept: Sequence[str],
        *,
        prefix: bool,
        suffix: bool,
        collapse: bool,
    ) -> None:
        self._charsmap = charsmap
        longest = sorted((text.encode() for text in kept), key=len, reverse=True)
        self._kept = re.compile(b"|".join(map(re.escape, longest)) if longest else b"(?!)")
        self._prefix = prefix
        self._suffix = suffix
        self._collapse = collapse

    def normalized(self, text: str, prefix: bool) -> str:
        """The text; `prefix` False leaves out the space of its own."""
        if self._charsmap is not None or self._collapse:
            parts = self._parts(text.encode())
            joined = b"".join(_collapsed(parts) if self._collapse else parts)
            text = joined.decode("utf-8", "replace")
        if self._collapse:
            text = text.rstrip(f" {SPACE}")
        if not text:
            return ""
        space = " " if prefix and self._prefix else ""
        text = text + space if self._suffix else space + text
        return text.replace(" ", SPACE)

    def _parts(self, text: bytes) -> Iterator[bytes]:
        """What stands for each piece of the text: user-defined, in the charsmap, a character."""
        at = 0
        while at < len(text):
            replaced = None
            if kept := self._kept.match(text, at):
                replaced = kept[0], len(kept[0])
            elif self._charsmap is not None:
                replaced = self._charsmap.replaced(text, at)
            if replaced is None:
                stop = at + 1
                while stop < len(text) and text[stop] & 0xC0 == 0x80:
                    stop += 1
                replaced = text[at:stop], stop - at
            yield replaced[0]
            at += replaced[1]


def _collapsed(parts: Iterable[bytes]) -> Iterator[bytes]:
    """The parts, without the spaces they begin with where a space is before them."""
    after_space = True
    for part in parts:
        left = part.lstrip(b" ") if after_space else part
        if left:
            yield left
            after_space = left.endswith(b" ")


def _offset(unit: int) -> int:
    return (unit >> 10) << ((unit & 1 << 9) >> 6)
