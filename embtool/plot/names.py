"""What points and words are called in a picture, and what is told of them."""

from collections.abc import Sequence

from embtool.plot.measure import cut
from embtool.queries.figure import Point
from embtool.vocab import Word, escape


def shown(text: str) -> str:
    """What a person typed, or a path, so that it breaks no line."""
    return escape(text.encode("utf-8", "surrogatepass"))


def spaces_seen(token: str) -> str:
    """A displayed token with the spaces at its ends made visible: `␣king`."""
    middle = token.strip(" ")
    start = len(token) - len(token.lstrip(" "))
    return "␣" * start + middle + "␣" * (len(token) - start - len(middle) if middle else 0)


def labels(points: Sequence[Point], missing: frozenset[str] = frozenset()) -> list[str]:
    """A name for each point: its token without spaces at its ends, unless two would be alike.

    A token that the table brought, and that has a missing character, is shown by its id.
    """
    tokens = [_token(point, missing) for point in points]
    bare = [token.strip(" ") or spaces_seen(token) for token in tokens]
    alike = {name for name in bare if bare.count(name) > 1}
    return [
        cut(spaces_seen(token) if name in alike else name)
        for token, name in zip(tokens, bare, strict=True)
    ]


def told(point: Point) -> str:
    """Token, id and norm, a line each."""
    if not point.ids:
        return f"{shown(point.text)}\nnorm {point.norm:.4f}"
    tokens = " | ".join(spaces_seen(token or "(no token)") for token in point.tokens)
    ids = ", ".join(map(str, point.ids))
    return f"token {tokens}\nid {ids}\nnorm {point.norm:.4f}"


def word_label(word: Word) -> str:
    """A word as it was typed, cut where it is long."""
    return cut(shown(word.text.strip(" ") or spaces_seen(word.text)))


def _token(point: Point, missing: frozenset[str]) -> str:
    """The one token of a point; else what was typed, or the formula."""
    if point.role in ("neighbor", "answer") and missing & {*point.text}:
        return f"id:{point.ids[0]}"
    if len(point.tokens) == 1 and point.tokens[0] is not None:
        return point.tokens[0]
    return shown(point.text)
