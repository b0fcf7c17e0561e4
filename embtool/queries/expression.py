"""Sums of words as people write them: `国王 - 男人 + 女人`, `2 king - 0.5 man`."""

import re

from embtool.vocab import UsageError

_SIGNS = {"+": 1.0, "-": -1.0, "−": -1.0}
_WEIGHT = r"(?:\d+(?:\.\d*)?|\.\d+)\*?"


def parse(expression: str) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """The words of a sum and their weights.

    Terms stand between `+` and `-` that have spaces around them, so that a word may hold a
    hyphen; a number before a word, with a space or a `*`, is its weight.

    Raises:
        UsageError: it is no such sum.
    """
    words: list[str] = []
    weights: list[float] = []
    term: list[str] = []
    sign = 1.0
    parts = [*expression.split(), "+"]
    for place, part in enumerate(parts):
        if part not in _SIGNS:
            term.append(part)
            continue
        if term or place:
            word, weight = _term(term, expression)
            words.append(word)
            weights.append(sign * weight)
        sign, term = _SIGNS[part], []
    if not words:
        raise UsageError(f"{expression!r} is no sum: there is no word in it")
    return tuple(words), tuple(weights)


def _term(parts: list[str], expression: str) -> tuple[str, float]:
    if len(parts) == 1 and "*" in parts[0]:
        head, _, tail = parts[0].partition("*")
        parts = [head, tail] if tail and re.fullmatch(_WEIGHT, head) else parts
    if len(parts) == 2 and re.fullmatch(_WEIGHT, parts[0]):
        return parts[1], float(parts[0].rstrip("*"))
    if len(parts) != 1:
        shown = " ".join(parts) or "nothing"
        raise UsageError(f"{expression!r} is no sum: {shown!r} stands where one word should")
    return parts[0], 1.0
