"""The script that a word is written in, from the names of its characters."""

import unicodedata

_BARE_FIRST = frozenset(["han", "kana", "thai", "lao", "khmer", "myanmar"])
# What the names of characters call a script that goes by another name.
_SCRIPTS = {
    "cjk": "han",
    "ideographic": "han",
    "hiragana": "kana",
    "katakana": "kana",
    "katakana-hiragana": "kana",
    "hentaigana": "kana",
}


def script(text: str) -> str | None:
    """The script of a text's first letter, in lower case: han, kana, latin, thai, hangul.

    None where no character is a letter. Hiragana and katakana are both kana. A letter in
    disguise (full width, mathematical) counts as the letter it stands for.
    """
    for character in text:
        point = ord(character)
        if 0x20000 <= point <= 0x3FFFF:
            # two planes of ideographs, of which an older Python does not know all
            return "han"
        if unicodedata.category(character).startswith("L"):
            plain = unicodedata.normalize("NFKC", character)[0]
            first = unicodedata.name(plain, "unknown").split()[0].lower()
            return _SCRIPTS.get(first, first)
    return None


def bare_first(word: str) -> bool:
    """Whether a vocabulary is likelier to hold a word without a space before it.

    So it is in scripts that are written without spaces, and for what has no letter (2024).
    """
    found = script(word)
    return found is None or found in _BARE_FIRST
