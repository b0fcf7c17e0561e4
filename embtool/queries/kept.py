"""`cache`: what is kept of models of the Hub."""

from dataclasses import dataclass
from datetime import UTC, datetime

from embtool.source.held import held


@dataclass(frozen=True, slots=True)
class Piece:
    """One thing that is kept; `last_used` is in UTC."""

    model: str
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
