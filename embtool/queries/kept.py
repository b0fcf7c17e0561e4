"""`cache`: what is kept, and removing it."""

from dataclasses import dataclass
from datetime import UTC, datetime

from embtool.errors import SourceError
from embtool.source.held import held, remove


@dataclass(frozen=True, slots=True)
class Piece:
    """One thing that is kept; `last_used` is in UTC.

    `model` is None for what was computed from files of this machine.
    """

    model: str | None
    commit: str | None
    kind: str
    tensor: str | None
    nbytes: int
    last_used: str
    path: str


@dataclass(frozen=True, slots=True)
class Kept:
    """All of it, the last used first."""

    pieces: tuple[Piece, ...]


def kept() -> Kept:
    """What the cache holds now."""
    return Kept(
        tuple(
            Piece(
                one.model,
                one.commit,
                one.kind,
                one.tensor,
                one.nbytes,
                datetime.fromtimestamp(one.last_used, UTC).isoformat(timespec="seconds"),
                str(one.path),
            )
            for one in held()
        )
    )


def forget(model: str) -> int:
    """Remove what is kept of a model; the bytes that are free now.

    Raises:
        SourceError: nothing is kept of it, or it cannot be removed.
    """
    nbytes = remove(model)
    if not nbytes:
        raise SourceError(f"{model}: nothing is kept of it", "see what is: embtool cache")
    return nbytes
