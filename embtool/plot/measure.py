"""How much room a text takes, before any font is at hand: in ems, and in a terminal's cells."""

import unicodedata

#: What a label shows of a text; the rest is an ellipsis.
LONGEST = 24

_NARROW = frozenset("iljtfrI.,:;'|!()[]/\\` ")
_MARKS = ("Mn", "Me")
_NO_ROOM = (*_MARKS, "Cf")
_BROAD = frozenset("mwMWQOG@%&—…→≈жмфшщыюЖМФШЩЫЮ")


def ems(text: str) -> float:
    """The width of a text over its font size, rather too large than too small.

    DejaVu Sans, which matplotlib brings, is wider than the fonts that browsers use. A mark
    without a character to stand on is drawn on a circle.
    """
    alone = 0.7 if text and unicodedata.category(text[0]) in _MARKS else 0.0
    return sum(map(_em, text), alone)


def cells(text: str) -> int:
    """The columns of a terminal that a text takes, by Unicode's East Asian Width (UAX #11)."""
    return sum(map(_cells, text))


def cut(text: str, longest: int = LONGEST) -> str:
    """The text, or its beginning and an ellipsis, in at most so many cells."""
    if cells(text) <= longest:
        return text
    while cells(text) > longest - 1:
        text = text[:-1]
    return text + "…"


def _cells(character: str) -> int:
    if unicodedata.category(character) in _NO_ROOM:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _em(character: str) -> float:
    category, point = unicodedata.category(character), ord(character)
    indic = 0x0900 <= point < 0x1100
    if category in _NO_ROOM:
        # In Indic scripts some stand beside their character after all.
        return 0.15 if indic else 0.0
    if _cells(character) == 2:
        # An emoji is drawn larger than its font.
        return 1.35 if category == "So" else 1.02
    if character in _NARROW:
        return 0.42
    if point >= 0x10000:
        return 1.7
    if character in _BROAD or category in ("Mc", "So", "Sm", "No") or indic:
        return 1.0
    return 0.74 if category == "Lu" else 0.67
