r"""What a token looks like: an escape of any bytes that no line, column or terminal breaks on.

    \\             a backslash
    \n \t \r       line feed, tab, carriage return
    \xE4           the byte E4: one that is no valid UTF-8 where it stands, one of the other
                   control characters below 20, or DEL (7F)
    \u{202E}       a character: a C1 control (80 to 9F), a line or paragraph separator (2028,
                   2029), a bidirectional control (61C, 200E, 200F, 202A to 202E, 2066 to 2069)

Everything else stands for itself, joiners and spaces too. `\x` always means a byte and `\u` always
a character, so `unescape` gives the same bytes back for every byte string.
"""

import re
from collections.abc import Sequence

import numpy as np

_HIDDEN = r"[\x00-\x1f\x7f-\x9f\\\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\udc80-\udcff]"
_HIDDEN_BUT_NUL = _HIDDEN.replace(r"\x00", r"\x01", 1)
_ESCAPE = r"\\(?:([\\ntr])|x([0-9A-F]{2})|u\{([0-9A-F]{1,6})\}|)"
_SHORT = {"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_LONG = {"\\": "\\", "n": "\n", "t": "\t", "r": "\r"}


def escape(text: bytes) -> str:
    r"""The displayed form of bytes: `escape(b"a\n\xe4\xbb") == r"a\n\xE4\xBB"`."""
    shown = text.decode("utf-8", "surrogateescape")
    if shown.isprintable() and "\\" not in shown:
        return shown  # nearly always, and without a pattern to compile
    return re.sub(_HIDDEN, _hide, shown)


def escape_all(texts: Sequence[bytes]) -> list[str]:
    """`escape` of each, for a whole vocabulary: few of its tokens need more than decoding."""
    if not texts:
        return []
    joined = b"\0".join(texts)
    # NUL parts the texts from each other; the few that hold one are done by themselves
    odd: list[int] = []
    if joined.count(b"\0") != len(texts) - 1:
        odd = [place for place, text in enumerate(texts) if b"\0" in text]
        apart = frozenset(odd)
        joined = b"\0".join([b"" if i in apart else text for i, text in enumerate(texts)])
    whole = joined.decode("utf-8", "surrogateescape")
    plain = whole.split("\0")
    ends = np.cumsum(np.fromiter(map(len, plain), np.int64, len(plain)) + 1)
    hidden = np.array([match.start() for match in re.finditer(_HIDDEN_BUT_NUL, whole)], np.int64)
    for place in [*odd, *np.unique(np.searchsorted(ends, hidden, side="right")).tolist()]:
        plain[place] = escape(texts[place])
    return plain


def _hide(match: re.Match[str]) -> str:
    character = match.group()
    point = ord(character)
    if character in _SHORT:
        return _SHORT[character]
    if 0xDC80 <= point <= 0xDCFF:
        # how `surrogateescape` hands over a byte that is no valid UTF-8
        return f"\\x{point - 0xDC00:02X}"
    return f"\\x{point:02X}" if point < 0x80 else f"\\u{{{point:X}}}"


def unescape(shown: str) -> bytes:
    r"""The bytes of a displayed form; the inverse of `escape`.

    Raises ValueError for a backslash that begins no escape, as in `\q`.
    """
    if "\\" not in shown:
        return shown.encode("utf-8")
    out = bytearray()
    end = 0
    for match in re.finditer(_ESCAPE, shown):
        out += shown[end : match.start()].encode("utf-8")
        out += _reveal(match)
        end = match.end()
    out += shown[end:].encode("utf-8")
    return bytes(out)


def _reveal(match: re.Match[str]) -> bytes:
    short, byte, point = match.groups()
    if short:
        return _LONG[short].encode("ascii")
    if byte:
        return bytes([int(byte, 16)])
    if point and int(point, 16) < 0x110000:
        return chr(int(point, 16)).encode("utf-8")
    raise ValueError(f"no escape: {match.string[match.start() : match.start() + 4]}")


def shown(text: str) -> str:
    """A typed text as a message shows it; a lone surrogate is a byte the shell handed over."""
    try:
        return escape(text.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        return escape(text.encode("utf-8", "surrogatepass"))
