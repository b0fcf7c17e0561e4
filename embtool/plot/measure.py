"""How much room a text takes, before any font is at hand: in ems, and in a terminal's cells."""

import unicodedata

#: What a label shows of a text; the rest is an ellipsis.
LONGEST = 24

_NARROW = frozenset("iljtfrI.,:;'|!()[]/\\` ")
_BROAD = frozenset("mwMWQOG@%&—…→≈")


def ems(text: str) -> float:
    """The width of a text over its font size, rather too large than too small.

    DejaVu Sans, which matplotlib brings, is wider than the fonts that browsers use.
    """
    return sum(map(_em, text))


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
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _em(character: str) -> float:
    width = _cells(character)
    if width == 2:
        # An emoji is drawn larger than its font.
        return 1.35 if unicodedata.category(character) == "So" else 1.02
    if character in _NARROW:
        return 0.42
    broad = character in _BROAD or unicodedata.category(character) in ("Mc", "So")
    return width * (1.0 if broad else 0.74 if character.isupper() else 0.65)
