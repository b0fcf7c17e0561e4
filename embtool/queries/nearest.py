"""`neighbors`: the rows nearest to each word's, to the point between words, or to any vector."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from embtool.errors import FormatError
from embtool.model import Model
from embtool.queries.candidates import Candidates
from embtool.queries.failures import Failure
from embtool.queries.folding import folded
from embtool.queries.ground import F64, Choices, Ground, attempt
from embtool.queries.ranked import Neighbors
from embtool.search.blocks import finite, unit
from embtool.search.nearest import Metric, top_k
from embtool.vocab import Word

_Asked = tuple[Word, F64]


class Nearest:
    """The k nearest rows under some metric; the words of a batch share one pass."""

    def __init__(
        self, model: Model, choices: Choices, candidates: Candidates, metric: Metric, k: int
    ) -> None:
        self._ground = Ground(model, choices, candidates)
        self._metric = metric
        self._k = k

    def words(
        self, batches: Iterable[Sequence[str]], *, alone: bool
    ) -> Iterator[Neighbors | Failure]:
        """The neighbours of each word, in order; its own ids are left out.

        `alone`: there is one word only, so its error is raised.
        """

        def resolve(text: str) -> _Asked:
            word = self._ground.word(text)
            return word, self._ground.vectors([word])[0]

        for batch in batches:
            asked = [attempt(resolve, text, text, alone) for text in batch]
            found = iter(self._nearest([pair for pair in asked if not isinstance(pair, Failure)]))
            yield from (each if isinstance(each, Failure) else next(found) for each in asked)

    def between(self, texts: Sequence[str]) -> Iterator[Neighbors]:
        """The neighbours of the point between words: the mean of their unit vectors."""
        words = [self._ground.word(text) for text in texts]
        middle = unit(self._ground.vectors(words)).mean(axis=0)
        forms = dict.fromkeys(word.form for word in words)
        joined = Word(
            " + ".join(word.text.strip() for word in words),
            "+".join(forms),
            tuple(token_id for word in words for token_id in word.ids),
            tuple(token for word in words for token in word.tokens),
            "between",
        )
        return self._nearest([(joined, middle)])

    def vectors(self, name: str, vectors: F64) -> Iterator[Neighbors]:
        """The neighbours of any vectors (n, d_model), each called `name` and its number.

        Raises:
            FormatError: they are not as wide as the table, or one is zero or not finite.
        """
        width = self._ground.table.shape[1]
        if vectors.ndim != 2 or vectors.shape[1] != width:
            shown = " x ".join(map(str, vectors.shape))
            raise FormatError(
                f"{name} holds {shown} numbers, and the table's rows are {width} wide",
                f"give vectors of {width} numbers",
            )
        moved = self._ground.moved(vectors)
        for number in np.flatnonzero(~finite(moved)).tolist():
            raise FormatError(
                f"{name}: vector {number} is zero or not finite, so nothing is near it",
                "leave it out",
            )
        words = [Word(f"{name}[{number}]", "vector", (), ()) for number in range(len(moved))]
        return self._nearest(list(zip(words, moved, strict=True)))

    def _nearest(self, asked: Sequence[_Asked]) -> Iterator[Neighbors]:
        if not asked:
            return
        vectors = np.stack([vector for _, vector in asked])
        exclude = [word.ids for word, _ in asked]
        ground = self._ground
        found = folded(
            ground,
            self._k,
            lambda k: ground.search(lambda work: top_k(work, vectors, k, self._metric, exclude)),
        )
        for (word, _), ranked in zip(asked, found, strict=True):
            yield Neighbors(ground.model.ref, ground.table.tensor, self._metric, word, ranked)
