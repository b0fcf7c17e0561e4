"""Where no tokenizer can be applied."""

from collections.abc import Iterator, Sequence

from embtool.errors import SourceError, UnsupportedError


class Refusal:
    """Stands where a tokenizer would, and says why there is none."""

    limits: str | None = None

    def __init__(self, error: SourceError | UnsupportedError) -> None:
        self._error = error

    def encode(self, text: str, special: bool = False, prefix: bool = True) -> list[int]:
        """Raise the reason."""
        raise self._error

    def many(self, texts: Sequence[str], prefix: bool) -> Iterator[list[int]]:
        """Raise the reason."""
        raise self._error
