"""`explain`: from a text to its matrix, each step with the model's own numbers."""

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from embtool.errors import EmbtoolError, TokenError
from embtool.model import Model
from embtool.model.counting import model_params
from embtool.params import Params, hypothetical
from embtool.quant import F32
from embtool.queries.chance import SEED, Sample, distribution, sample
from embtool.queries.explained import (
    Address,
    Addresses,
    Beside,
    Explained,
    Matrix,
    NewToken,
    OneHot,
    Pair,
    Product,
    Random,
    Read,
    Scale,
)
from embtool.queries.failures import need_vocabulary
from embtool.queries.ground import F64, Choices, Ground
from embtool.queries.records import Lookup
from embtool.queries.rows import ids_record
from embtool.queries.texts import lookup
from embtool.search.blocks import Pass
from embtool.search.one_hot import one_hot_product
from embtool.search.pairs import pair_cosines, random_rows, rank_correlation
from embtool.search.rank import similarity
from embtool.table import Table

#: Distinct tokens whose one-hot vectors are multiplied, and whose neighbours by number are shown.
_MULTIPLIED = 16
_ADDRESSES = 8
#: Distinct tokens that are compared with each other: 15 pairs.
_PAIRED = 6


def explain(
    model: Model, text: str, table_name: str, dims: int | None, *, random: bool
) -> Explained:
    """Walk from a text to its T × d_model matrix, in one pass over the table.

    dims: how many components of each row come out. random: with an untrained table beside it.

    Raises:
        TokenError: the text has no tokens, or one without a row.
    """
    ground = Ground(model, Choices(table_name))
    table = ground.table
    vocabulary = model.vocabulary if text.startswith("id:") else need_vocabulary(model)
    ids = list(dict.fromkeys(vocabulary.text_ids(text, rows=table.shape[0])))
    if not ids:
        raise TokenError(f"{model.ref}: the text has no tokens to explain", "give a longer text")
    one_hot = _one_hot(ground, ids[:_MULTIPLIED])
    found = lookup(model, text, table_name, dims)
    near = sample(ground)
    matrix, new_token = _matrix(model, table)
    row_nbytes = table.nbytes // table.shape[0]
    return Explained(
        model=model.ref,
        table=table.tensor,
        text=text,
        shape=found.shape,
        tokens=found.tokens,
        addresses=_addresses(ground, ids[:_ADDRESSES], near),
        one_hot=one_hot,
        matrix=matrix,
        new_token=new_token,
        read=Read(len(ids), len(ids) * row_nbytes, len(ids) / table.shape[0]),
        scale=_scale(model) if table_name == "input" else None,
        chance=distribution(near.cosines),
        pairs=_pairs(ground, ids[:_PAIRED], found, random=random),
        random=_random(table, near) if random else None,
    )


def _one_hot(ground: Ground, ids: Sequence[int]) -> OneHot:
    """The product is compared with the rows that a lookup reads."""
    table = ground.table
    norms: list[F32] = []

    def ask(work: Pass) -> F32:
        product = one_hot_product(work, ids)
        norms.extend(() if work.norms is None else (work.norms,))
        return product

    product = ground.search(ask)
    looked_up = table.rows(ids)
    rows, width = table.shape
    return OneHot(
        length=rows,
        zeros=(rows - 1) / rows,
        nbytes=4 * rows,
        row_nbytes=4 * width,
        distance=math.sqrt(2),
        cosine=0.0,
        product=Product(
            ids=tuple(ids),
            equal=bool(np.array_equal(product, looked_up)),
            same_bits=product.tobytes() == looked_up.tobytes(),
            nonfinite=ids_record(np.flatnonzero(~np.isfinite(norms[0]))),
        ),
    )


def _addresses(ground: Ground, ids: Sequence[int], near: Sample) -> Addresses:
    apart = np.abs(near.first - near.second)
    return Addresses(
        tuple(_address(ground, row) for row in ids),
        len(near.cosines),
        SEED,
        rank_correlation(apart, near.cosines),
    )


def _address(ground: Ground, row: int) -> Address:
    vocabulary, last = ground.vocabulary, ground.table.shape[0] - 1
    ids = [other for other in (row - 1, row, row + 1) if 0 <= other <= last]
    rows = ground.table.rows(ids)
    cosines = similarity(rows[ids.index(row)][None], rows)[0].tolist()
    beside = {
        other: Beside(other, vocabulary.token(other), vocabulary.raw(other), _known(cosine))
        for other, cosine in zip(ids, cosines, strict=True)
    }
    middle = beside[row]
    return Address(row, middle.token, middle.raw, beside.get(row - 1), beside.get(row + 1))


def _matrix(model: Model, table: Table) -> tuple[Matrix, NewToken]:
    rows, width = table.shape
    params = rows * width
    counted = _counted(model)
    tied = None if counted is None else counted.tied
    total = None if counted is None else counted.total_params
    share = params / total if total else None
    matrix = Matrix(rows, width, params, table.dtype, table.nbytes, tied, total, share)
    grown = hypothetical(rows, width, add_tokens=1, tied=tied)
    return matrix, NewToken(width, table.nbytes // rows, grown.notes[-1])


def _counted(model: Model) -> Params | None:
    """The model's count; None where it has no table of its own that can be counted."""
    try:
        return model_params(model)
    except EmbtoolError:
        return None


def _scale(model: Model) -> Scale | None:
    config = model.config
    if config is None or config.scale is None:
        return None
    return Scale(config.scale, config.scale_from)


def _pairs(ground: Ground, ids: Sequence[int], found: Lookup, *, random: bool) -> tuple[Pair, ...]:
    places = {row.id: place for place, row in enumerate(found.tokens)}
    rows = found.matrix[[places[row] for row in ids]]
    trained = similarity(rows, rows)
    chance: F64 | None = None
    if random:
        untrained = random_rows(np.asarray(ids, np.int64), found.shape[1], SEED)
        chance = similarity(untrained, untrained)
    token = ground.vocabulary.token
    return tuple(
        Pair(
            (ids[i], ids[j]),
            (token(ids[i]), token(ids[j])),
            _known(float(trained[i, j])),
            None if chance is None else float(chance[i, j]),
        )
        for i, j in combinations(range(len(ids)), 2)
    )


def _random(table: Table, near: Sample) -> Random:
    width = table.shape[1]
    cosines = pair_cosines(lambda ids: random_rows(ids, width, SEED), near.first, near.second)
    return Random(SEED, 1 / math.sqrt(width), distribution(cosines))


def _known(cosine: float) -> float | None:
    return cosine if math.isfinite(cosine) else None
