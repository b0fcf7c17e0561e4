"""How a table's rows spread over its dimensions."""

from dataclasses import dataclass

import numpy as np

from embtool.space import F64


@dataclass(frozen=True, slots=True)
class Spectrum:
    """The eigenvalues of a second-moment matrix, and how many of them count.

    eigenvalues: (d_model,) float64, largest first, none negative.
    effective_rank: exp of the entropy of the eigenvalues' shares p = value / sum (Roy and
        Vetterli, "The effective rank: a measure of effective dimensionality", EUSIPCO 2007; a
        symmetric matrix's singular values are its eigenvalues).
    participation_ratio: (sum of values)^2 / sum of values^2.
    Both are between 1 and d_model, and None where every row is zero.
    """

    eigenvalues: F64
    effective_rank: float | None
    participation_ratio: float | None

    def shares(self, count: int) -> list[float]:
        """The part of the whole of the `count` largest eigenvalues; 0 where every row is zero."""
        total = self.eigenvalues.sum()
        chosen = self.eigenvalues[:count]
        shares: list[float] = (chosen / total if total > 0 else chosen).tolist()
        return shares


def spectrum(second_moment: F64) -> Spectrum:
    """The spectrum of a symmetric (d_model, d_model) matrix without negative eigenvalues."""
    values = np.maximum(np.linalg.eigvalsh(second_moment)[::-1], 0)
    total = values.sum()
    if not total > 0:
        return Spectrum(values, None, None)
    shares = values[values > 0] / total
    entropy = -(shares * np.log(shares)).sum()
    return Spectrum(values, float(np.exp(entropy)), float(1 / (shares @ shares)))
