"""`download` and `cache`: all of it for pipelines, what matters for people."""

from typing import TYPE_CHECKING

from embtool.output.counts import nbytes, short
from embtool.output.view import Cell, View

if TYPE_CHECKING:
    from embtool.queries.download import Download
    from embtool.queries.kept import Kept

#: Enough of a commit to tell it from another, as git shows it.
_COMMIT = 8


def download(record: "Download") -> View:
    """Every file and tensor with its path, and where in it the tensor begins."""
    columns = ("role", "name", "nbytes", "start", "path", "sha256")
    rows: list[tuple[Cell, ...]] = [
        (s.role, s.name, s.nbytes, s.start, s.path, s.sha256) for s in record.stored
    ]
    return View(columns, rows, lines=record.stored)


def downloaded(record: "Download") -> View:
    """The same to read: the paths stand below, whole, so that they can be copied."""
    columns: tuple[str, ...] = ("role", "name", "size")
    rows: list[tuple[Cell, ...]] = [(s.role, s.name, nbytes(s.nbytes)) for s in record.stored]
    if any(s.sha256 for s in record.stored):
        columns = (*columns, "sha256 as published")
        rows = [(*row, s.sha256) for row, s in zip(rows, record.stored, strict=True)]
    title = f"{record.model} at {(record.revision or record.source)[:_COMMIT]}"
    paths = tuple(dict.fromkeys(s.path for s in record.stored))
    return View(columns, rows, title, footer=paths)


def kept(record: "Kept") -> View:
    """Every piece with its path."""
    columns = ("model", "commit", "kind", "tensor", "nbytes", "last_used", "path")
    rows: list[tuple[Cell, ...]] = [
        (p.model, p.commit, p.kind, p.tensor, p.nbytes, p.last_used, p.path) for p in record.pieces
    ]
    return View(columns, rows, lines=record.pieces)


def held(record: "Kept") -> View:
    """The same to read: short commits, sizes and times, no paths."""
    columns = ("model", "commit", "kind", "tensor", "size", "last used (UTC)")
    rows: list[tuple[Cell, ...]] = [
        (
            p.model or "(files of this machine)",
            p.commit and p.commit[:_COMMIT],
            p.kind,
            p.tensor,
            short(p.nbytes),
            p.last_used[:16].replace("T", " "),
        )
        for p in record.pieces
    ]
    total = sum(piece.nbytes for piece in record.pieces)
    return View(columns, rows, f"{nbytes(total)} are kept")
