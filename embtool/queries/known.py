"""`models`: what is known of well-known models without a network."""

from dataclasses import dataclass

from embtool.catalogue import Entry, load


@dataclass(frozen=True, slots=True)
class Known:
    """The catalogue's entries, by name."""

    models: tuple[Entry, ...]


def known() -> Known:
    """All of the catalogue."""
    return Known(load())
