"""Vectors seen on the plane that keeps most of their differences: principal components."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Plane:
    """Two directions through a mean, and the share of the variance that lies along each.

    mean: (d,). axes: (2, d), orthonormal, or zero where the vectors do not spread so far.
    shares: between 0 and 1; both 0 where all vectors are equal.
    """

    mean: F64
    axes: F64
    shares: tuple[float, float]

    def place(self, vectors: F64) -> F64:
        """Coordinates of vectors (n, d) on the plane, (n, 2)."""
        placed: F64 = (vectors - self.mean) @ self.axes.T
        return placed


def main_plane(vectors: F64) -> Plane:
    """The plane of the two largest principal components of vectors (n, d), n >= 1, in float64.

    By the singular values of the vectors less their mean. A direction and its opposite serve
    equally: the one whose largest component is positive is taken, so that a picture is the same
    each time. What is below rounding is no direction.
    """
    mean = vectors.mean(axis=0)
    _, values, directions = np.linalg.svd(vectors - mean, full_matrices=False)
    axes, shares = np.zeros((2, vectors.shape[1])), [0.0, 0.0]
    noise = max(vectors.shape) * np.finfo(np.float64).eps * max(values[0], np.abs(mean).max())
    for j, value in enumerate(values[:2]):
        if value > noise:
            largest = directions[j, np.abs(directions[j]).argmax()]
            axes[j] = directions[j] * np.sign(largest)
            shares[j] = float(value**2 / (values**2).sum())
    return Plane(mean, axes, (shares[0], shares[1]))
