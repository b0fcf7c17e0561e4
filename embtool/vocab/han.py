"""The other Chinese spelling of a word, by OpenCC where that is installed (the extra `han`)."""

from embtool.vocab.scripts import script

# OpenCC's names of its ways: to simplified, to traditional, and to traditional as in Taiwan.
_WAYS = ("t2s", "s2t", "s2tw")


def other_spellings(text: str) -> list[str]:
    """The text in simplified and in traditional characters, where that is not as it stands.

    Empty for what is not in Chinese characters, and without OpenCC.
    """
    if script(text) != "han":
        return []
    try:
        from opencc import OpenCC
    except ImportError:
        return []
    spellings = dict.fromkeys(OpenCC(way).convert(text) for way in _WAYS)
    return [spelling for spelling in spellings if spelling != text]
