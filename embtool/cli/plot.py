"""`plot`: pictures of words, analogies, cosines and norms."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from embtool.cli import options
from embtool.cli.session import RANKED, Session, shares
from embtool.cli.stdin import read_words

if TYPE_CHECKING:
    from embtool.plot import Figure

#: What `session` takes beside: a picture has endings of its own, and no header.
_SHARED = tuple(name for name in RANKED if name not in ("format", "output", "no_header"))


Picture = Literal["text", "png", "svg", "html", "json"]

_Format = Annotated[
    Picture | None, typer.Option("--format", "-f", help="Default: text, in characters.")
]
_Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Write to a .png, .svg, .html or .txt file.")
]
_Neighbors = Annotated[
    int, typer.Option("--neighbors", min=0, metavar="K", help="And the K nearest rows of each.")
]


@shares(*_SHARED)
def plot(
    session: Session,
    words: options.SomeWords = None,
    neighbors: _Neighbors = 0,
    analogy: Annotated[bool, typer.Option("--analogy", help="A - B + C and its answer.")] = False,
    heatmap: Annotated[bool, typer.Option("--heatmap", help="The words' cosines.")] = False,
    norms: Annotated[bool, typer.Option("--norms", help="The norms of all rows.")] = False,
    fold: options.Fold = False,
    kind: _Format = None,
    output: _Output = None,
) -> None:
    """Draw words on the plane of their two main components, or one of three other pictures.

    Example: embtool plot 国王 女王 男人 女人 猫 狗 -o words.html
    """
    from embtool.plot.writing import Target

    chosen = [name for name, on in _kinds(analogy, heatmap, norms) if on]
    _check(words, chosen, neighbors)
    try:
        target = Target(kind, output)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    figure = _figure(session, words or [], chosen, neighbors, fold)
    for note in target.write(figure):
        session.note(f"note: {note}")


def _kinds(analogy: bool, heatmap: bool, norms: bool) -> list[tuple[str, bool]]:
    return [("--analogy", analogy), ("--heatmap", heatmap), ("--norms", norms)]


def _check(words: list[str] | None, chosen: list[str], neighbors: int) -> None:
    """Refuse questions that contradict themselves."""
    if len(chosen) > 1:
        raise typer.BadParameter(f"{' and '.join(chosen)} are two pictures; choose one")
    if chosen and neighbors:
        raise typer.BadParameter(f"--neighbors belongs to a map of words, not to {chosen[0]}")
    if bool(words) == (chosen == ["--norms"]):
        raise typer.BadParameter("give words, or --norms without any")
    if chosen == ["--analogy"] and len(words or ()) != 3:
        raise typer.BadParameter(f"an analogy has three words, not {len(words or ())}")


def _figure(
    session: Session, words: list[str], chosen: list[str], neighbors: int, fold: bool
) -> "Figure":
    from embtool.queries import figure
    from embtool.queries.similarity import similarity

    choices, candidates = session.choices, session.candidates(fold=fold)
    match chosen:
        case ["--norms"]:
            return figure.norm_figure(session.model, choices)
        case ["--heatmap"]:
            return similarity(session.model, read_words(words), choices)
        case ["--analogy"]:
            return figure.analogy_map(session.model, read_words(words), choices, candidates)
    return figure.words_map(session.model, read_words(words), choices, candidates, neighbors)
