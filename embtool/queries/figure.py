"""`plot`: what is drawn: words on a plane, an analogy's parallelogram, a table's norms."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embtool.errors import TokenError
from embtool.model import Model
from embtool.projection import Plane, main_plane
from embtool.queries.analogy import WEIGHTS, formula
from embtool.queries.candidates import Candidates
from embtool.queries.folding import folded
from embtool.queries.ground import F64, Choices, Ground
from embtool.queries.ranked import Answer
from embtool.queries.rows import entries
from embtool.queries.stats import Histogram, NormedToken
from embtool.search.blocks import Pass, norms, unit
from embtool.search.nearest import top_k
from embtool.vocab import Word

_BINS = 30
#: Rows of the smallest norms that are named.
_LOWEST = 10


@dataclass(frozen=True, slots=True)
class Point:
    """A row, or a sum of rows, on the plane.

    text: a word as it was typed, a displayed token, or the sum's formula. role: word, neighbor,
    answer or sum. ids and tokens: none for a sum, several for a word whose pieces were pooled.
    norm: the length of its vector in the space where rows are compared; of the sum as added.
    """

    text: str
    role: str
    ids: tuple[int, ...]
    tokens: tuple[str | None, ...]
    norm: float
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Link:
    """A line between two points, by their places in the list.

    role: neighbor, side (of the parallelogram) or answer. score: the cosine of its ends, where
    a search found one by the other.
    """

    start: int
    end: int
    role: str
    score: float | None


@dataclass(frozen=True, slots=True)
class Map:
    """Points on the plane of their two main components.

    shares: the part of the points' variance along x and along y. formula: of an analogy. unit:
    whether the points are rows over their lengths, as an analogy adds them.
    """

    model: str
    table: str
    formula: str | None
    unit: bool
    shares: tuple[float, float]
    points: tuple[Point, ...]
    links: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class NormFigure:
    """How long a table's rows are: a histogram of the finite ones, and the shortest by name."""

    model: str
    table: str
    rows: int
    finite: int
    histogram: Histogram
    lowest: tuple[NormedToken, ...]


@dataclass(frozen=True, slots=True)
class _Thing:
    """What becomes a point."""

    text: str
    role: str
    ids: tuple[int, ...]
    tokens: tuple[str | None, ...]


def words_map(
    model: Model,
    texts: Sequence[str],
    choices: Choices,
    candidates: Candidates,
    neighbors: int = 0,
) -> Map:
    """Words on the plane, with so many of each one's nearest rows by cosine.

    Raises:
        TokenError: a word has no row, or there is one point or none; a map is whole or not at all.
    """
    ground = Ground(model, choices, candidates)
    words = [ground.word(text) for text in dict.fromkeys(texts)]
    if not words or len(words) + neighbors < 2:
        raise TokenError(
            f"a map takes two words or more, not {len(words)}",
            "give more words, or add --neighbors 10",
        )
    things = [_of_word(word) for word in words]
    vectors = ground.vectors(words)
    links: list[Link] = []
    if neighbors:
        ids = {thing.ids: place for place, thing in reversed(list(enumerate(things)))}
        for start, ranked in enumerate(_neighbors(ground, words, vectors, neighbors)):
            for each in ranked:
                if (each.id,) not in ids:
                    ids[each.id,] = len(things)
                    things.append(_of_row(each, "neighbor"))
                links.append(Link(start, ids[each.id,], "neighbor", each.score))
        found = [thing.ids[0] for thing in things[len(words) :]]
        vectors = np.concatenate([vectors, _rows(ground, found)])
    return _map(ground, things, vectors, main_plane(vectors), links)


def analogy_map(
    model: Model, texts: Sequence[str], choices: Choices, candidates: Candidates
) -> Map:
    """A, B, C, the sum A − B + C of their directions, and the row nearest to it.

    The plane is that of the words and the answer; the sum lies on it as the fourth corner of a
    parallelogram. Raises TokenError where a word has no row or the sum no direction.
    """
    ground = Ground(model, choices, candidates)
    words = ground.words_together(texts)
    vectors = ground.vectors(words)
    units = unit(vectors)
    total = np.array(WEIGHTS) @ units
    text = formula(words, WEIGHTS)
    if not total.any():
        raise TokenError(f"{text} is zero, so nothing is near it", "give three different words")
    own = tuple(i for word in words for i in word.ids)
    joined = Word(text, "sum", own, ())
    answers = _neighbors(ground, [joined], total[None], 1)[0]
    things = [*map(_of_word, words), _Thing(text, "sum", (), ())]
    links = [Link(*ends, "side", None) for ends in ((0, 1), (1, 2), (2, 3), (3, 0))]
    found = _rows(ground, [answer.id for answer in answers])
    for answer in answers:
        things.append(_of_row(answer, "answer"))
        links.append(Link(3, 4, "answer", answer.score))
    plane = main_plane(np.concatenate([units, unit(found)]))
    vectors = np.concatenate([vectors, total[None], found])
    return _map(ground, things, vectors, plane, links, text)


def norm_figure(model: Model, choices: Choices) -> NormFigure:
    """The norms of all rows, in the space of the choices: 30 bins and the 10 shortest rows.

    Rows that are not finite have no norm; equal norms stand by id.
    """
    ground = Ground(model, choices)

    def ask(work: Pass) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
        if work.norms is None:
            work.norms = norms(work.parts, work.space)
        return work.norms

    lengths = ground.search(ask)
    ids = np.flatnonzero(np.isfinite(lengths))
    values = lengths[ids].astype(np.float64)
    histogram = Histogram((), ())
    if len(values):
        counts, edges = np.histogram(values, _BINS)
        histogram = Histogram(tuple(edges.tolist()), tuple(counts.tolist()))
    lowest = ids[np.argsort(values, kind="stable")[:_LOWEST]].tolist()
    named = tuple(
        NormedToken(each.id, each.token, each.raw, float(lengths[each.id]))
        for each in entries(ground.vocabulary, lowest)
    )
    return NormFigure(model.ref, ground.table.tensor, len(lengths), len(ids), histogram, named)


def _map(
    ground: Ground,
    things: Sequence[_Thing],
    vectors: F64,
    plane: Plane,
    links: Sequence[Link],
    text: str | None = None,
) -> Map:
    """The record; with a formula, vectors are drawn over their lengths, and the sum as it is."""
    lengths = np.linalg.norm(vectors, axis=1)
    drawn = vectors
    if text is not None:
        drawn = np.where([[thing.role == "sum"] for thing in things], vectors, unit(vectors))
    points = tuple(
        Point(thing.text, thing.role, thing.ids, thing.tokens, length, x, y)
        for thing, length, (x, y) in zip(
            things, lengths.tolist(), plane.place(drawn).tolist(), strict=True
        )
    )
    model, table = ground.model.ref, ground.table.tensor
    return Map(model, table, text, text is not None, plane.shares, points, tuple(links))


def _neighbors(
    ground: Ground, words: Sequence[Word], vectors: F64, k: int
) -> list[tuple[Answer, ...]]:
    exclude = [word.ids for word in words]
    return folded(
        ground,
        k,
        lambda more: ground.search(lambda work: top_k(work, vectors, more, exclude=exclude)),
    )


def _rows(ground: Ground, ids: Sequence[int]) -> F64:
    return ground.moved(ground.table.rows(ids).astype(np.float64))


def _of_word(word: Word) -> _Thing:
    return _Thing(word.text, "word", word.ids, word.tokens)


def _of_row(row: Answer, role: str) -> _Thing:
    return _Thing(row.token or f"id:{row.id}", role, (row.id,), (row.token,))
