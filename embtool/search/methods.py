"""The formulas of analogies: a : b = c : ?, answered by a row x.

Terms and rows are unit vectors here, cos(x, t) is the dot product of x with a term t:

    3cosadd        sum of weight * cos(x, t); for b - a + c: cos(x, b) - cos(x, a) + cos(x, c).
                   Mikolov, Yih and Zweig, "Linguistic Regularities in Continuous Space Word
                   Representations" (NAACL 2013), who take the cosine of x with the sum of the
                   terms: the same order, as the sum's length does not depend on x.
    3cosmul        product of s(x, t) over the terms with weight 1, over the product of
                   s(x, t) + 0.000001 over those with weight -1, where s = (1 + cos) / 2.
                   Levy and Goldberg, "Linguistic Regularities in Sparse and Explicit Word
                   Representations" (CoNLL 2014), the shift to [0, 1] and the epsilon as there.
    pairdirection  cos(b - a, x - c): the same direction from c as from a to b, however far.
                   Of the same two papers; the name is Levy and Goldberg's.

Each is computed in float32 from the cosines of the distinct terms with some rows, (w, n), by
operations that cost a question a few nanoseconds a row, and in float64 for a few rows.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

import numpy as np

from embtool.quant import F32
from embtool.search.blocks import I64, dots
from embtool.space import F64

Method = Literal["3cosadd", "3cosmul", "pairdirection"]

_EPSILON = 1e-6
# Where float32 cannot divide to five digits: by s of a row that is nearly opposite to a term, and
# by the distance of a row that is nearly c. Few rows are, and those are left to float64.
_OPPOSITE = np.float32(0.01)
_BESIDE = np.float32(0.99)
# Two unit vectors nearer than this are one: they differ by the rounding of float64.
_SAME = 1e-7
_NO_PAIRS = (np.empty(0, np.int64), np.empty(0, np.int64))


class Table(NamedTuple):
    """What the questions of a formula take their scores from, for n rows.

    factors: one array (w, n) for each term of a question. delicate: vectors and columns, where
    the value of a divisor was left out as NaN. peaks: the largest value of each vector in the
    last factor, (w,).
    """

    factors: Sequence[F32]
    delicate: tuple[I64, I64]
    peaks: F32


def _table(factors: Sequence[F32], delicate: tuple[I64, I64] = _NO_PAIRS) -> Table:
    return Table(factors, delicate, np.fmax.reduce(factors[-1], axis=1))


class Asked:
    """Questions that are scored together: terms (q, t), rows of the unit vectors.

    Question files ask many questions of one pair a, b: all terms but the last are combined once
    for each such `prefixes` (p, t - 1), of which `which` (q,) names a question's own.
    """

    def __init__(self, terms: I64) -> None:
        self.terms = terms
        self.last = terms[:, -1]
        self.prefixes, which = terms[:1, :-1], np.zeros(len(terms), np.int64)
        if terms.shape[1] > 1:
            self.prefixes, which = np.unique(terms[:, :-1], axis=0, return_inverse=True)
        self.which: I64 = which.reshape(-1)

    def leading(self, table: Table) -> list[F32]:
        """The factors of all terms but the last, each (p, n)."""
        columns = zip(table.factors[:-1], self.prefixes.T, strict=True)
        return [np.take(factor, column, axis=0) for factor, column in columns]

    def both(self, table: Table, leading: F32, some: I64) -> tuple[F32, F32]:
        """For some questions (m,) what their prefix made, and their last factor: (m, n) twice."""
        last = np.take(table.factors[-1], self.last[some], axis=0)
        return np.take(leading, self.which[some], axis=0), last


class Formula(Protocol):
    """A method of answering questions whose terms are rows of unit vectors (w, d_model)."""

    divisors: list[int]
    """The columns of the terms whose values may be delicate."""

    def table(self, cosines: F32) -> Table:
        """From cosines (w, n)."""

    def scores(self, table: Table, asked: Asked, low: F32) -> tuple[I64, F32]:
        """The questions (m,) that may reach their score in `low` (q,), and scores (m, n) float32.

        The largest value of a prefix and that of the last factor bound the score, and for most
        questions and rows they leave no hope.
        """

    def scale(self, terms: I64) -> F64:
        """How large the numbers are whose rounding is the scores' error, for terms (m, t)."""

    def exact(self, terms: I64, rows: F64) -> F64:
        """The score of each pair of a question (m, t) and a unit row (m, d_model), (m,) float64."""


class CosAdd:
    """3cosadd."""

    def __init__(self, units: F64, weights: Sequence[float]) -> None:
        self.divisors: list[int] = []
        self._units = units
        self._weights = weights

    def table(self, cosines: F32) -> Table:
        """Cosines by weight."""
        weighted = {weight: cosines * np.float32(weight) for weight in set(self._weights)}
        return _table([weighted[weight] for weight in self._weights])

    def scores(self, table: Table, asked: Asked, low: F32) -> tuple[I64, F32]:
        """The sums."""
        leading = np.zeros((len(asked.prefixes), table.factors[0].shape[1]), np.float32)
        for factor in asked.leading(table):
            leading += factor
        highest = np.fmax.reduce(leading, axis=1)[asked.which] + table.peaks[asked.last]
        some = np.flatnonzero(~(highest < low))
        scores, last = asked.both(table, leading, some)
        scores += last
        return some, scores

    def scale(self, terms: I64) -> F64:
        """1, as cosines are."""
        return np.ones(len(terms))

    def exact(self, terms: I64, rows: F64) -> F64:
        """The sums."""
        total = np.zeros(len(rows))
        for column, weight in zip(terms.T, self._weights, strict=True):
            total += weight * dots(self._units[column], rows)
        return total


class CosMul:
    """3cosmul: weights are 1 and -1."""

    def __init__(self, units: F64, weights: Sequence[float]) -> None:
        self.divisors = [column for column, weight in enumerate(weights) if weight < 0]
        self._units = units
        self._weights = weights

    def table(self, cosines: F32) -> Table:
        """Shifted cosines, or what they divide by."""
        shifted = np.maximum((cosines + 1) * np.float32(0.5), 0)
        divided = np.reciprocal(shifted + np.float32(_EPSILON))
        vectors, columns = np.nonzero(shifted < _OPPOSITE)
        divided[vectors, columns] = np.nan
        factors = [divided if weight < 0 else shifted for weight in self._weights]
        return _table(factors, (vectors, columns))

    def scores(self, table: Table, asked: Asked, low: F32) -> tuple[I64, F32]:
        """The products."""
        leading = np.ones((len(asked.prefixes), table.factors[0].shape[1]), np.float32)
        for factor in asked.leading(table):
            leading *= factor
        highest = np.fmax.reduce(leading, axis=1)[asked.which] * table.peaks[asked.last]
        some = np.flatnonzero(~(highest < low))
        scores, last = asked.both(table, leading, some)
        scores *= last
        return some, scores

    def scale(self, terms: I64) -> F64:
        """1, as a quotient of cosines about is."""
        return np.ones(len(terms))

    def exact(self, terms: I64, rows: F64) -> F64:
        """The products."""
        total = np.ones(len(rows))
        for column, weight in zip(terms.T, self._weights, strict=True):
            shifted = (1 + dots(self._units[column], rows)) / 2
            total *= shifted if weight > 0 else 1 / (shifted + _EPSILON)
        return total


class PairDirection:
    """pairdirection: the terms of a question are b, a, c.

    With unit vectors, (b - a) . (x - c) = cos(x, b) - cos(x, a) - (b - a) . c, and
    |x - c| = sqrt(2 - 2 cos(x, c)).
    """

    def __init__(self, units: F64) -> None:
        self.divisors = [2]
        self._units = units
        self._cosines: F64 = units @ units.T

    def table(self, cosines: F32) -> Table:
        """Cosines with b, cosines with a, and one over the distance from c."""
        vectors, columns = np.nonzero(cosines > _BESIDE)
        nearness: F32 = np.reciprocal(np.sqrt(2 - 2 * cosines))
        nearness[vectors, columns] = np.nan
        return _table([cosines, cosines, nearness], (vectors, columns))

    def scores(self, table: Table, asked: Asked, low: F32) -> tuple[I64, F32]:
        """The cosines of the two differences."""
        leading, less = asked.leading(table)
        leading -= less
        leading /= self._lengths(asked.prefixes)[:, None].astype(np.float32)
        b, a, c = asked.terms.T
        offsets: F32 = (self._cosines[b, c] - self._cosines[a, c]) / self._lengths(asked.terms)
        offsets = offsets.astype(np.float32)
        highest = np.fmax.reduce(leading, axis=1)[asked.which] - offsets
        highest = np.maximum(highest, 0) * table.peaks[asked.last]
        some = np.flatnonzero(~(highest < low))
        scores, nearness = asked.both(table, leading, some)
        scores -= offsets[some, None]
        scores *= nearness
        return some, scores

    def scale(self, terms: I64) -> F64:
        """1, more where b and a nearly cancel."""
        scale: F64 = np.maximum(1, 0.1 / self._lengths(terms))
        return scale

    def exact(self, terms: I64, rows: F64) -> F64:
        """The cosines of the two differences; NaN where x is c."""
        b, a, c = (self._units[column] for column in terms.T)
        way, step = b - a, rows - c
        lengths = np.sqrt(dots(way, way) * dots(step, step))
        lengths[lengths < _SAME] = np.nan
        cosines: F64 = dots(way, step) / lengths
        return cosines

    def _lengths(self, terms: I64) -> F64:
        """|b - a|, NaN where they are the same: (m, 2 or more) -> (m,)."""
        lengths = np.sqrt(2 - 2 * self._cosines[terms[:, 0], terms[:, 1]])
        lengths[lengths < _SAME] = np.nan
        return lengths
