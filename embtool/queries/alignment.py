"""`diff` of two vocabularies: one table turned onto the other by the tokens that both have."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from embtool.align import agreement, overlap, procrustes
from embtool.errors import TokenError
from embtool.model import Model
from embtool.quant import F32
from embtool.search.blocks import I64, Pass, finite
from embtool.search.nearest import top_k
from embtool.search.threads import threads
from embtool.space import F64
from embtool.table import Table
from embtool.vocab import Vocabulary

# Every so many shared tokens one is kept back, to try the rotation on.
_HELD_OUT = 5
_SAMPLE = 1000
_SEED = 0
_NEIGHBORS = 10
# Elements of float32 that are read of a table at a time: 4 MiB.
_STEP = 1 << 20
# A single byte as SentencePiece spells it, which looks the same as the letter that it is.
_BYTE = re.compile(r"<0x[0-9A-F]{2}>")


@dataclass(frozen=True, slots=True)
class SharedToken:
    """A token of both vocabularies; cosine: of its rows after the rotation, None for a zero row."""

    rank: int
    token: str
    id_a: int
    id_b: int
    cosine: float | None


@dataclass(frozen=True, slots=True)
class Overlap:
    """How far tokens have the same neighbours in both tables, among the shared tokens.

    mean: the part of the k nearest rows by cosine that both have, over `sample` tokens drawn with
    the seed; chance: what it is between tables that have nothing in common.
    """

    k: int
    sample: int
    seed: int
    mean: float | None
    chance: float


@dataclass(frozen=True, slots=True)
class Alignment:
    """Two tables of different vocabularies or widths, aligned on the tokens of equal text.

    The rotation (orthogonal Procrustes, of centred unit rows) is made from four fifths of the
    shared tokens. cosine: the mean over the fifth that it was not made from; cosine_fitted: over
    those that it was. least_alike: the shared tokens whose rows agree least, `k` of them.
    """

    model_a: str
    model_b: str
    table_a: str
    table_b: str
    rows_a: int
    rows_b: int
    d_model_a: int
    d_model_b: int
    shared: int
    held_out: int
    cosine: float | None
    cosine_fitted: float | None
    neighbors: Overlap
    least_alike: tuple[SharedToken, ...]


def align(model_a: Model, model_b: Model, one: Table, other: Table, k: int) -> Alignment:
    """Align two models' tables.

    Raises:
        TokenError: fewer than two tokens are shared.
    """
    tokens, ids_a, ids_b = _shared(model_a, model_b, one.shape[0], other.shape[0])
    if len(tokens) < 2:
        raise TokenError(
            f"{model_a.ref} and {model_b.ref} share {len(tokens)} tokens, of {one.shape[0]:,} and "
            f"{other.shape[0]:,} rows",
            "name their tokenizers with --tokenizer, or compare other models",
        )
    back = np.zeros(len(tokens), bool)
    back[_HELD_OUT - 1 :: _HELD_OUT] = True
    rotation = procrustes(_rows(one, other, ids_a[~back], ids_b[~back]))
    pieces = [agreement(rotation, a, b) for a, b in _rows(one, other, ids_a, ids_b)]
    cosines = np.concatenate(pieces)
    order = np.argsort(np.nan_to_num(cosines, nan=np.inf), kind="stable")[:k].tolist()
    return Alignment(
        *(model_a.ref, model_b.ref, one.tensor, other.tensor, one.shape[0], other.shape[0]),
        *(one.shape[1], other.shape[1], len(tokens), int(back.sum())),
        cosine=_mean(cosines[back]),
        cosine_fitted=_mean(cosines[~back]),
        neighbors=_overlap(one, other, ids_a, ids_b),
        least_alike=tuple(
            SharedToken(rank, tokens[i], int(ids_a[i]), int(ids_b[i]), _known(cosines[i]))
            for rank, i in enumerate(order, 1)
        ),
    )


def _shared(model_a: Model, model_b: Model, rows_a: int, rows_b: int) -> tuple[list[str], I64, I64]:
    """Tokens that both vocabularies have, by id in the first, and their ids in both."""
    first = _by_text(model_a.vocabulary, rows_a)
    second = _by_text(model_b.vocabulary, rows_b)
    tokens = [token for token in first if token in second]
    ids = [(first[token], second[token]) for token in tokens]
    both = np.array(ids, np.int64).reshape(-1, 2)
    return tokens, both[:, 0], both[:, 1]


def _by_text(vocabulary: Vocabulary, rows: int) -> dict[str, int]:
    """The lowest id of each text, without tokens that stand for none and bytes spelled as such."""
    special = vocabulary.special_ids
    found: dict[str, int] = {}
    for row, token in enumerate(vocabulary.displayed()[:rows]):
        if not token or row in special or token in found:
            continue
        if len(token) <= 4 and _BYTE.fullmatch(vocabulary.raw(row) or ""):
            continue
        found[token] = row
    return found


def _rows(one: Table, other: Table, ids_a: I64, ids_b: I64) -> Iterator[tuple[F32, F32]]:
    step = max(1, _STEP // max(one.shape[1], other.shape[1], 1))
    for start in range(0, len(ids_a), step):
        here = slice(start, start + step)
        yield one.rows(ids_a[here].tolist()), other.rows(ids_b[here].tolist())


def _mean(cosines: F64) -> float | None:
    known = cosines[~np.isnan(cosines)]
    return float(known.mean()) if len(known) else None


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _overlap(one: Table, other: Table, ids_a: I64, ids_b: I64) -> Overlap:
    usable = np.concatenate([finite(a) & finite(b) for a, b in _rows(one, other, ids_a, ids_b)])
    places = np.flatnonzero(usable)
    rng = np.random.default_rng(_SEED)
    sample = np.sort(rng.choice(places, min(_SAMPLE, len(places)), replace=False))
    k = min(_NEIGHBORS, max(0, len(places) - 1))
    chance = k / max(1, len(places) - 1)
    if not k:
        return Overlap(k, len(sample), _SEED, None, chance)
    shares = overlap(
        _neighbors(one, ids_a[usable], ids_a[sample], k),
        _neighbors(other, ids_b[usable], ids_b[sample], k),
    )
    return Overlap(k, len(sample), _SEED, float(shares.mean()), chance)


def _neighbors(table: Table, shared: I64, ids: I64, k: int) -> list[I64]:
    """For each row the places among `shared` of its nearest rows in them."""
    allowed = np.zeros(table.shape[0], bool)
    allowed[shared] = True
    place = np.zeros(table.shape[0], np.int64)
    place[shared] = np.arange(len(shared))
    work = Pass(table.parts(threads()), lambda ids: table.rows(ids.tolist()), None, allowed)
    found = top_k(work, table.rows(ids.tolist()), k, exclude=[[row] for row in ids.tolist()])
    return [place[[hit.id for hit in hits]] for hits in found]
