"""Fonts that have what a picture's texts need: glyphs are looked for, not names.

matplotlib brings DejaVu Sans, which has Latin, Greek, Cyrillic, Arabic, Hebrew and more. For
what it lacks, the fonts of this machine are opened one after another.
"""

import os
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from matplotlib import font_manager
from matplotlib.ft2font import FT2Font, LoadFlags

#: Names of the fonts to use, the first that has a glyph draws it; what none of them has.
Chosen = tuple[tuple[str, ...], frozenset[str]]

_FIRST = "DejaVu Sans"
_PLAIN = ("Regular", "Book", "Roman", "Normal", "Medium")
# The package of Debian and Ubuntu that has a script; by the beginning of its characters' names.
_CJK = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC", "FULLWIDTH")


def choose(texts: Iterable[str]) -> Chosen:
    """The fonts that draw these texts; each next one has most of what is still missing."""
    written = list(texts)
    needed = {character for text in written for character in text if _seen(character)}
    missing = _lacks(FT2Font(font_manager.findfont(_FIRST)), needed)
    names = [_FIRST]
    kana = any(unicodedata.name(c, "").startswith(("HIRAGANA", "KATAKANA")) for c in missing)
    while missing:
        found = max(_fonts(), key=lambda each: _worth(each, missing, kana), default=None)
        if found is None or not missing - _lacks(found, missing):
            break
        names.append(_register(found))
        missing = _lacks(found, missing)
    return tuple(names), frozenset(missing)


def advice(missing: Iterable[str]) -> str:
    """What to install so that these characters can be drawn."""
    named = [unicodedata.name(character, "") for character in sorted(missing)]
    letters = [unicodedata.category(character)[0] in "LMN" for character in sorted(missing)]
    packages = {
        "fonts-noto-cjk"
        if name.startswith(_CJK)
        else "fonts-noto-core"
        if letter
        else "fonts-symbola"
        for name, letter in zip(named, letters, strict=True)
    }
    wanted = " ".join(sorted(packages))
    return (
        f"install a font that has them (Debian, Ubuntu: apt install {wanted}), or write .svg or "
        ".html, which a viewer draws with its own fonts"
    )


def _seen(character: str) -> bool:
    """Whether a character needs a glyph: joiners and variation selectors have none."""
    return unicodedata.category(character) != "Cf" and not 0xFE00 <= ord(character) <= 0xFE0F


def _lacks(font: FT2Font, characters: Iterable[str]) -> set[str]:
    return {character for character in characters if not _draws(font, character)}


def _draws(font: FT2Font, character: str) -> bool:
    """Whether the font has ink for a character; colour fonts map what they have no outline of."""
    index = font.get_char_index(ord(character))
    if not index:
        return False
    if character.isspace():
        return True
    glyph = font.load_glyph(index, LoadFlags.NO_SCALE)
    return bool(glyph.width or glyph.height)


@cache
def _fonts() -> tuple[FT2Font, ...]:
    """All outline fonts of this machine, every face, in the order of their files."""
    return tuple(_opened())


def _opened() -> Iterator[FT2Font]:
    # Asked for anew: matplotlib's own list is as old as its cache, and fonts may be installed
    # because an earlier run said so.
    for path in sorted(font_manager.findSystemFonts()):
        try:
            first = FT2Font(path)
            faces = [first, *(FT2Font(path, face_index=i) for i in range(1, first.num_faces))]
        except (OSError, RuntimeError, ValueError):
            continue
        yield from (face for face in faces if face.scalable)


def _worth(font: FT2Font, missing: set[str], kana: bool) -> tuple[int, bool, bool, bool]:
    """How well a font serves: coverage first; then an upright plain style, and the right Han.

    One character has several shapes in Chinese and Japanese: Japanese ones where there is kana.
    """
    plain = font.style_name in _PLAIN
    family = font.family_name
    local = (" JP" if kana else " SC") in family
    text = "Serif" not in family and "Mono" not in family
    return len(missing - _lacks(font, missing)), plain, text, local


def _register(font: FT2Font) -> str:
    """Make a font known to matplotlib under a name that is its alone."""
    path = os.fsdecode(font.fname)
    name = f"{path}#{font.face_index}"
    known: Sequence[font_manager.FontEntry] = font_manager.fontManager.ttflist
    if all(entry.name != name for entry in known):
        entry = font_manager.FontEntry(
            fname=path,
            name=name,
            style="normal",
            variant="normal",
            weight=400,
            stretch="normal",
            size="scalable",
            index=font.face_index,
        )
        font_manager.fontManager.ttflist.append(entry)
    return name
