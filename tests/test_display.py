import random
import unicodedata

import pytest

from embtool.vocab import escape, unescape
from embtool.vocab.display import escape_all, shown

ESCAPED = {
    b"king": "king",
    b" king": " king",
    "今天".encode(): "今天",
    b"\\": r"\\",
    b"\\n": r"\\n",
    b"\n\t\r": r"\n\t\r",
    b"\x1b[31m": r"\x1B[31m",
    b"\x00\x7f\x0b\x0c": r"\x00\x7F\x0B\x0C",
    "\x80\x85\x9f".encode(): r"\u{80}\u{85}\u{9F}",
    "\xa0\xad".encode(): "\xa0\xad",
    b"\xe4": r"\xE4",
    b"\xe4\xbb": r"\xE4\xBB",
    "天".encode() + b"\xe4\xbb": r"天\xE4\xBB",
    b"\xbb\xe5\xa4\xa9\xff": r"\xBB天\xFF",
    b"\xed\xa0\x80": r"\xED\xA0\x80",
    "a\u2028b\u2029".encode(): r"a\u{2028}b\u{2029}",
    "\u202etxt\u202c".encode(): r"\u{202E}txt\u{202C}",
    "\u061c\u200e\u200f\u2066\u2069".encode(): r"\u{61C}\u{200E}\u{200F}\u{2066}\u{2069}",
    "👩‍👩‍👧 \u200c\ufeff".encode(): "👩‍👩‍👧 \u200c\ufeff",
    b'[/INST],"': '[/INST],"',
    rb"\xE4": r"\\xE4",
    rb"\u{202E}": r"\\u{202E}",
    b"": "",
}


@pytest.mark.parametrize(("text", "expected"), ESCAPED.items())
def test_escape_and_back(text, expected):
    assert escape(text) == expected
    assert unescape(expected) == text


def test_every_character_comes_back_and_the_hidden_ones_are_named():
    points = [point for point in range(0x110000) if not 0xD800 <= point <= 0xDFFF]
    escaped = [escape(chr(point).encode()) for point in points]
    assert [unescape(text) for text in escaped] == [chr(point).encode() for point in points]
    hidden = {point for point, text in zip(points, escaped, strict=True) if text != chr(point)}
    control = {point for point in points if unicodedata.category(chr(point)) == "Cc"}
    bidi = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    directing = {point for point in points if unicodedata.bidirectional(chr(point)) in bidi}
    marks = {0x61C, 0x200E, 0x200F}
    assert hidden == control | directing | marks | {0x5C, 0x2028, 0x2029}
    assert all(len(text.splitlines()) == 1 for text in escaped)


def _random_bytes(rnd):
    kind = rnd.random()
    if kind < 0.4:
        return rnd.randbytes(rnd.randrange(12))
    if kind < 0.7:
        pool = ["\\", "x", "u", "{", "}", "E4", "202E", "n", "\n", "天", "é", "\u202e", "\x85"]
        return "".join(rnd.choices(pool, k=rnd.randrange(10))).encode()
    whole = "今天 naïve 👩‍👧\t\\".encode()
    start = rnd.randrange(len(whole))
    return whole[start : start + rnd.randrange(9)]


def test_any_bytes_come_back():
    rnd = random.Random(7)
    texts = [_random_bytes(rnd) for _ in range(30_000)]
    escaped = [escape(text) for text in texts]
    assert [unescape(text) for text in escaped] == texts
    assert escape_all(texts) == escaped
    assert len(set(escaped)) == len(set(texts))


def test_a_whole_vocabulary_is_escaped_as_each_of_its_tokens():
    assert escape_all([]) == []
    assert escape_all([b""]) == [""]
    texts = [b"", b"\0", b"a\0b", b"\xff", "天\n".encode(), b"", b"plain", b"\0\0", b"\\"]
    assert escape_all(texts) == [
        "",
        r"\x00",
        r"a\x00b",
        r"\xFF",
        r"天\n",
        "",
        "plain",
        r"\x00\x00",
        r"\\",
    ]


@pytest.mark.parametrize("text", ["\\", r"\q", r"\x4", r"\xe4", r"\u202E", r"\u{}", r"\u{110000}"])
def test_what_is_no_escape_is_refused(text):
    with pytest.raises(ValueError, match=r"no escape: \\"):
        unescape(text)


def test_a_typed_text_is_shown_whatever_the_shell_handed_over():
    assert shown("a\tb") == r"a\tb"
    assert shown("\udce4") == r"\xE4"
    assert shown("\ud83d") == r"\xED\xA0\xBD"
