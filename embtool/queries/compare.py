"""`compare`: what the matrices of two texts share."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from embtool.model import Model
from embtool.queries.ground import F64
from embtool.queries.records import Lookup, Token
from embtool.queries.texts import lookup
from embtool.search.rank import similarity


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two texts; shape: (T, d_model)."""

    text: str
    shape: tuple[int, int]
    tokens: tuple[Token, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """A row, and the positions where it stands in either text."""

    id: int
    token: str | None
    raw: str | None
    in_a: tuple[int, ...]
    in_b: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MeanRows:
    """The two texts' mean rows: the same to the last bit or not, their distance and cosine."""

    identical: bool
    distance: float | None
    cosine: float | None


@dataclass(frozen=True, slots=True)
class Compared:
    """Two texts side by side; rows in the order of their first position.

    same_rows: whether the rows of `common` that A reads are those that B reads, bit for bit; None
    without any. permutation: for each of B's positions the position in A of the same row, where B
    holds A's rows in some order, equal rows in their own order; None where it does not.
    """

    model: str
    table: str
    a: Side
    b: Side
    common: tuple[Place, ...]
    only_a: tuple[Place, ...]
    only_b: tuple[Place, ...]
    same_rows: bool | None
    permutation: tuple[int, ...] | None
    mean: MeanRows


def compare(model: Model, text_a: str, text_b: str, table_name: str = "input") -> Compared:
    """The rows that two texts have in common, and their mean rows. Each text is read by itself."""
    a, b = (lookup(model, text, table_name, 0) for text in (text_a, text_b))
    places = _places(a, b)
    common = tuple(place for place in places if place.in_a and place.in_b)
    return Compared(
        model.ref,
        a.table,
        _side(a),
        _side(b),
        common,
        tuple(place for place in places if not place.in_b),
        tuple(place for place in places if not place.in_a),
        _same_rows(common, a.matrix, b.matrix),
        _permutation([row.id for row in a.tokens], [row.id for row in b.tokens]),
        _mean_rows(a, b),
    )


def _side(found: Lookup) -> Side:
    tokens = tuple(Token(row.position, row.id, row.token, row.raw) for row in found.tokens)
    return Side(found.text, found.shape, tokens)


def _places(a: Lookup, b: Lookup) -> list[Place]:
    first = {row.id: row for row in reversed((*a.tokens, *b.tokens))}
    order = dict.fromkeys(row.id for row in (*a.tokens, *b.tokens))
    return [
        Place(token_id, first[token_id].token, first[token_id].raw, *_positions(token_id, a, b))
        for token_id in order
    ]


def _positions(token_id: int, a: Lookup, b: Lookup) -> tuple[tuple[int, ...], tuple[int, ...]]:
    in_a, in_b = (
        tuple(row.position for row in found.tokens if row.id == token_id) for found in (a, b)
    )
    return in_a, in_b


def _same_rows(
    common: Sequence[Place], a: NDArray[np.float32], b: NDArray[np.float32]
) -> bool | None:
    if not common:
        return None
    return all(
        a[i].tobytes() == b[j].tobytes() for place in common for i in place.in_a for j in place.in_b
    )


def _permutation(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...] | None:
    if sorted(a) != sorted(b):
        return None
    free: dict[int, list[int]] = {}
    for position, token_id in enumerate(a):
        free.setdefault(token_id, []).append(position)
    return tuple(free[token_id].pop(0) for token_id in b)


def _mean_rows(a: Lookup, b: Lookup) -> MeanRows:
    if not a.tokens or not b.tokens:
        return MeanRows(False, None, None)
    means = np.stack([_mean_row(a), _mean_row(b)])
    with np.errstate(all="ignore"):
        distance = float(np.sqrt(np.square(means[0] - means[1]).sum()))
    cosine = float(np.clip(similarity(means[:1], means[1:])[0, 0], -1, 1))
    return MeanRows(means[0].tobytes() == means[1].tobytes(), distance, cosine)


def _mean_row(found: Lookup) -> F64:
    # In the order of their ids, so that rounding does not tell two orders of the same rows apart.
    order = np.argsort([row.id for row in found.tokens], kind="stable")
    mean: F64 = found.matrix[order].astype(np.float64).mean(axis=0)
    return mean
