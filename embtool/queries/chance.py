"""What a cosine is to be judged by: those of random pairs of a table's own tokens."""

from dataclasses import dataclass

import numpy as np

from embtool.queries.candidates import Candidates, allowed_rows
from embtool.queries.cosines import Chance
from embtool.queries.ground import F64, Ground
from embtool.search.blocks import I64
from embtool.search.pairs import pair_cosines, random_pairs

#: Two rows a pair: reading them costs a twentieth of a second, and leaves the mean of cosines
#: whose deviation is 0.1 uncertain by 0.0016.
PAIRS = 4096
SEED = 0
PERCENTILES = (1, 5, 25, 50, 75, 95, 99)


@dataclass(frozen=True, slots=True)
class Sample:
    """Random pairs of rows, (n,) ids twice, and their cosines (n,) float64, all finite."""

    first: I64
    second: I64
    cosines: F64


def chance(ground: Ground) -> Chance | None:
    """The table's own distribution, in the ground's space.

    None where the whole table is not on this machine, since no row is fetched for it, and where
    it has no two rows to compare.
    """
    if ground.table.is_cut or not ground.table.is_here:
        return None
    return distribution(sample(ground).cosines)


def sample(ground: Ground) -> Sample:
    """Random pairs of rows that have a token and a direction."""
    table = ground.table
    allowed = allowed_rows(ground.vocabulary, table.shape[0], Candidates())
    known = np.arange(table.shape[0]) if allowed is None else np.flatnonzero(allowed)
    first, second = random_pairs(known, PAIRS, SEED)
    cosines = pair_cosines(lambda ids: table.rows(ids.tolist()), first, second, ground.moved)
    good = ~np.isnan(cosines)
    return Sample(first[good], second[good], cosines[good])


def distribution(cosines: F64) -> Chance | None:
    """The record of some cosines; None for none."""
    if not len(cosines):
        return None
    points = np.percentile(cosines, PERCENTILES).tolist()
    return Chance(
        len(cosines),
        SEED,
        float(cosines.mean()),
        float(cosines.std()),
        dict(zip(map(str, PERCENTILES), points, strict=True)),
    )
