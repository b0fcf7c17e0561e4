"""Analogies, a : b = c : ?, for one question or for thousands in the same pass."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from embtool.errors import UnsupportedError
from embtool.quant import F32
from embtool.search.blocks import I64, Pass, finite, unit
from embtool.search.methods import Asked, CosAdd, CosMul, Formula, Method, PairDirection, Table
from embtool.search.nearest import TOLERANCE, Hit, hits, top_k
from embtool.search.scan import Scan, in_space, left_out_keys
from embtool.search.stream import Sheet
from embtool.space import F64, Space

# Questions that are scored together: at most, with 1,024 rows, 2 MiB of scores.
_QUESTIONS = 512


def analogies(
    work: Pass,
    vectors: NDArray[np.floating],
    terms: I64,
    weights: Sequence[float],
    *,
    k: int,
    method: Method = "3cosadd",
    exclude: Sequence[Sequence[int]] = (),
) -> list[list[Hit]]:
    """The k best answers to each question, best first, equal scores by id.

    vectors: (w, d_model), in the space of the pass. terms: (n, t), a question's rows of `vectors`.
    weights: (t,), the same for every question: (1, -1, 1) for b - a + c with the terms b, a, c.
    exclude: for each question the ids that it leaves out; its own terms, usually.

    A question whose terms have no direction (a zero vector, b = a for pairdirection, a sum that is
    zero) has no answers. Raises UnsupportedError for weights that the method is not defined for.
    """
    check_weights(method, weights)
    if not len(terms):
        return []
    units = unit(vectors)
    if method != "3cosadd":
        scorer = AnalogyScorer(units, terms, weights, [method], work.space)
        found = Scan(work, scorer, k, left_out_keys(exclude)).run()
        return [hits(*best) for best in found]
    sums = np.zeros((len(terms), units.shape[1]))
    for column, weight in zip(terms.T, weights, strict=True):
        sums += weight * units[column]
    good = np.flatnonzero(finite(sums))
    answers: list[list[Hit]] = [[] for _ in terms]
    some = [exclude[question] for question in good.tolist()] if len(exclude) else ()
    for question, best in zip(good, top_k(work, sums[good], k, exclude=some), strict=True):
        answers[question] = best
    return answers


def check_weights(method: Method, weights: Sequence[float]) -> None:
    """Raise UnsupportedError where the method is not defined for terms of these weights."""
    if method == "3cosmul" and not {*weights} <= {1, -1}:
        raise UnsupportedError(
            "3cosmul multiplies and divides by its terms: a weight other than 1 and -1 has no "
            "meaning in it",
            "use --method 3cosadd for a weighted sum",
        )
    if method == "pairdirection" and tuple(weights) != (1, -1, 1):
        raise UnsupportedError(
            "pairdirection compares two differences: it takes three terms, A - B + C",
            "use --method 3cosadd for any other sum",
        )


def evaluate_analogies(
    work: Pass, questions: I64, methods: Sequence[Method]
) -> dict[Method, NDArray[np.int64]]:
    """What each method answers to a : b = c : ?, all in one pass.

    questions: (n, 3 or more) row ids a, b, c; a fourth column, the expected answer, is not read.
    Returns for each method the ids of its answers, (n,): of all rows that may rank but the
    question's own three the one with the largest score, of equal ones the smallest id; -1 where
    there is none, as for a question with a zero row.

    A block is multiplied once by the distinct terms; a question then costs a few additions or
    products an element. Memory beside the pass is 12 bytes x d_model a distinct term, some
    kilobytes a term and part for the block, and below 1 kB a question and method.
    """
    if not len(questions):
        return {method: np.empty(0, np.int64) for method in methods}
    ids, terms = np.unique(questions[:, [1, 0, 2]], return_inverse=True)
    terms = terms.reshape(len(questions), 3)
    units = unit(in_space(work, work.rows_of(ids)))
    scorer = AnalogyScorer(units, terms, (1, -1, 1), methods, work.space)
    own = questions[:, :3].tolist() * len(methods)
    found = Scan(work, scorer, 1, left_out_keys(own)).run()
    best = np.array([int(ids[0]) if len(ids) else -1 for ids, _ in found], np.int64)
    return dict(zip(methods, best.reshape(len(methods), len(questions)), strict=True))


class AnalogyScorer:
    """Scores of rows as answers: every question, by every method, is a query of the scan.

    units: (w, d_model) float64, in the space. terms: (n, t). weights: (t,), as for `analogies`.
    """

    def __init__(
        self,
        units: F64,
        terms: I64,
        weights: Sequence[float],
        methods: Sequence[Method],
        space: Space | None,
    ) -> None:
        self.plain = False
        bounds = list(pairwise([*range(0, len(terms), _QUESTIONS), len(terms)]))
        starts = range(0, len(terms) * len(methods), len(terms))
        self.groups = [range(start + a, start + b) for start in starts for a, b in bounds]
        self.vectors: F32 = units.astype(np.float32)
        self._offsets: F32 | None = None
        if space is not None and space.mean is not None:
            self._offsets = (units @ space.mean).astype(np.float32)[:, None]
        self._terms = terms
        self._asked = {a: Asked(terms[a:b]) for a, b in bounds}
        self._formulas = [_formula(method, units, weights) for method in methods]

    def prepare(self, sheet: Sheet) -> list[Table]:
        """The cosines of the distinct terms with the rows, as each method uses them."""
        cosines = sheet.times(self.vectors, slice(None))
        if self._offsets is not None:
            cosines -= self._offsets
        cosines *= np.reciprocal(sheet.norms)
        return [formula.table(cosines) for formula in self._formulas]

    def scores(self, tables: list[Table], group: range, low: F32) -> tuple[I64, F32]:
        """The formula's values for the questions that may reach `low`."""
        at, start = divmod(group.start, len(self._terms))
        return self._formulas[at].scores(tables[at], self._asked[start], low)

    def delicate(self, tables: list[Table], group: range) -> tuple[I64, I64]:
        """The pairs (query, column) that the formula left to float64."""
        at, start = divmod(group.start, len(self._terms))
        vectors, columns = tables[at].delicate
        if not len(vectors):
            return vectors, columns
        divisors = self._asked[start].terms[:, self._formulas[at].divisors]
        meets = np.zeros((len(group), len(columns)), bool)
        for column in divisors.T:
            meets |= column[:, None] == vectors
        questions, pairs = np.nonzero(meets)
        return questions + group.start, columns[pairs]

    def margin(self, queries: I64, best: F64, kth: F64) -> F64:
        """1e-5 of the largest score, or of what float32 computes it from."""
        formula, terms = self._of(queries)
        scale: F64 = np.maximum(np.abs(best), formula.scale(terms))
        return TOLERANCE * scale

    def exact(self, queries: I64, rows: F64) -> F64:
        """The formula in float64, for pairs of a question and a row."""
        formula, terms = self._of(queries)
        return formula.exact(terms, unit(rows))

    def _of(self, queries: I64) -> tuple[Formula, I64]:
        """The formula and the terms of queries, which are of one group."""
        at, questions = np.divmod(queries, len(self._terms))
        return self._formulas[int(at[0])], self._terms[questions]


def _formula(method: Method, units: F64, weights: Sequence[float]) -> Formula:
    match method:
        case "3cosadd":
            return CosAdd(units, weights)
        case "3cosmul":
            return CosMul(units, weights)
        case "pairdirection":
            return PairDirection(units)
