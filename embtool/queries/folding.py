"""`--fold`: of the spellings of one word the nearest, and how many more there were."""

from collections.abc import Callable, Sequence

from embtool.queries.candidates import fold_key
from embtool.queries.ground import Ground
from embtool.queries.ranked import Answer, Folded
from embtool.search.nearest import Hit

#: How many hits are asked for in place of one, at first; each time they do not suffice, as often
#: as many again.
_MORE = 4


def folded(
    ground: Ground, k: int, search: Callable[[int], list[list[Hit]]]
) -> list[tuple[Answer, ...]]:
    """The k best answers of each query as records, folded if the candidates ask for it.

    `search` gives the k best hits of every query; it is asked for more until k words are left.
    """
    if not ground.candidates.fold:
        return [ground.ranked(hits) for hits in search(k)]
    more = k * _MORE
    while True:
        found = search(more)
        answers = [_fold(ground.ranked(hits), k) for hits in found]
        ended = [len(hits) < more for hits in found]
        if all(end or len(some) == k for end, some in zip(ended, answers, strict=True)):
            return answers
        more *= _MORE


def _fold(ranked: Sequence[Answer], k: int) -> tuple[Answer, ...]:
    """The first of each word, with the number of its other spellings among those ranked."""
    groups: dict[str, list[Answer]] = {}
    for each in ranked:
        groups.setdefault(fold_key(each.token) or f"id:{each.id}", []).append(each)
    best = list(groups.values())[:k]
    return tuple(
        Folded(rank, each[0].id, each[0].token, each[0].raw, each[0].score, len(each) - 1)
        for rank, each in enumerate(best, 1)
    )
