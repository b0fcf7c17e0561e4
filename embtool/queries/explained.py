"""What `explain` answers: frozen records whose fields are the JSON fields, in order."""

from dataclasses import dataclass

from embtool.queries.cosines import Chance
from embtool.queries.records import Row
from embtool.queries.rows import Ids


@dataclass(frozen=True, slots=True)
class Beside:
    """The row before or after another by its number, and the cosine of the two."""

    id: int
    token: str | None
    raw: str | None
    cosine: float | None


@dataclass(frozen=True, slots=True)
class Address:
    """A row and those next to it; None where the table begins or ends."""

    id: int
    token: str | None
    raw: str | None
    before: Beside | None
    after: Beside | None


@dataclass(frozen=True, slots=True)
class Addresses:
    """Whether numbers that are near each other mean rows that are near each other.

    rank_correlation: Spearman's, of |id difference| and cosine over `pairs` random pairs.
    """

    rows: tuple[Address, ...]
    pairs: int
    seed: int
    rank_correlation: float | None


@dataclass(frozen=True, slots=True)
class Product:
    """one_hot(ids) @ E, every row multiplied.

    equal: to E[ids], as numbers; same_bits: to the last bit, which a negative zero in E prevents.
    nonfinite: rows with an infinity or NaN, for which 0 · E is no zero.
    """

    ids: tuple[int, ...]
    equal: bool
    same_bits: bool
    nonfinite: Ids


@dataclass(frozen=True, slots=True)
class OneHot:
    """An id as a vector of zeros and a one.

    zeros: the share of zeros; nbytes and row_nbytes: of it and of a row in float32. distance and
    cosine: of any two different ones.
    """

    length: int
    zeros: float
    nbytes: int
    row_nbytes: int
    distance: float
    cosine: float
    product: Product


@dataclass(frozen=True, slots=True)
class Matrix:
    """The table E. nbytes: as stored; share: of this table in the model's parameters."""

    rows: int
    d_model: int
    params: int
    dtype: str
    nbytes: int
    tied: bool | None
    total_params: int | None
    share: float | None


@dataclass(frozen=True, slots=True)
class NewToken:
    """What one token more costs: params and nbytes of its row in this table, and in both."""

    params: int
    nbytes: int
    note: str


@dataclass(frozen=True, slots=True)
class Read:
    """How much of the table the text needs: distinct rows, their stored bytes, their share."""

    rows: int
    nbytes: int
    share: float


@dataclass(frozen=True, slots=True)
class Pair:
    """Two of the text's tokens; random: the cosine of the same rows of an untrained table."""

    ids: tuple[int, int]
    tokens: tuple[str | None, str | None]
    cosine: float | None
    random: float | None


@dataclass(frozen=True, slots=True)
class Random:
    """An untrained table of the same shape.

    sigma: 1 / sqrt(d_model), the deviation of the cosine of two random directions; chance: that
    of the table's random pairs, the same as those of the trained one.
    """

    seed: int
    sigma: float
    chance: Chance | None


@dataclass(frozen=True, slots=True)
class Scale:
    """What the model multiplies a row by at run time, and how that is known."""

    factor: float
    source: str | None


@dataclass(frozen=True, slots=True)
class Explained:
    """One text's way from characters to its matrix."""

    model: str
    table: str
    text: str
    shape: tuple[int, int]
    tokens: tuple[Row, ...]
    addresses: Addresses
    one_hot: OneHot
    matrix: Matrix
    new_token: NewToken
    read: Read
    scale: Scale | None
    chance: Chance | None
    pairs: tuple[Pair, ...]
    random: Random | None
