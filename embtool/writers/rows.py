"""What is written: which rows, in which order, and what each is called."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]

#: Rows that are read and written at a time.
STEP = 2048


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows to write: `read` gives those of some ids, (n, d_model) float32.

    stored: the same as they are stored, (n, row bytes) uint8, in `dtype`. tokens and raws: as
    `lookup` shows them, None for a row without a token.
    """

    tensor: str
    d_model: int
    dtype: str
    ids: Sequence[int]
    tokens: Sequence[str | None]
    raws: Sequence[str | None]
    read: Callable[[Sequence[int]], F32]
    stored: Callable[[Sequence[int]], NDArray[np.uint8]]

    def blocks(self) -> Iterator[F32]:
        """The rows in order, some at a time."""
        for first in range(0, len(self.ids), STEP):
            yield self.read(self.ids[first : first + STEP])

    def labels(self) -> list[str]:
        """One word a row, no two alike, without a space or a line break in it.

        The escaped token with `\\x20` for each space, which `embtool.vocab.unescape` undoes; where
        another row has that already, the vocabulary's own spelling; else `id:` and the number.
        """
        seen: set[str] = set()
        labels = []
        for token_id, token, raw in zip(self.ids, self.tokens, self.raws, strict=True):
            tries = (token and _word(token), raw and _word(raw), f"id:{token_id}")
            label = next(each for each in tries if each and each not in seen)
            seen.add(label)
            labels.append(label)
        return labels


def _word(text: str) -> str:
    return text.replace(" ", "\\x20")
