"""`explain`, `compare`, `dimensions`: what a table is and is not, with its own numbers."""

from typing import Annotated

import typer

from embtool.cli import options
from embtool.cli.session import PAGE, TABLE, Session, shares
from embtool.cli.stdin import check, text_argument


@shares(*PAGE)
def explain(
    session: Session,
    text: options.Text,
    random: Annotated[
        bool, typer.Option("--random", help="Put an untrained table of the same shape beside it.")
    ] = False,
    dims: options.Dims = None,
) -> None:
    """Walk from a text to its matrix: tokens, ids, one-hot vectors, the table, its rows.

    Example: embtool explain 今天西安的天气怎么样
    """
    from embtool.queries.explain import explain

    shown = dims or (4 if session.sink.for_people else None)
    text = text_argument(text)
    session.emit([explain(session.model, text, session.table, shown, random=random)])


@shares(*PAGE)
def compare(
    session: Session,
    text_a: Annotated[str, typer.Argument(help="A text, or id:NUMBER.")],
    text_b: Annotated[str, typer.Argument(help="Another.")],
) -> None:
    """Show what two texts' matrices share: rows, their order, and the mean row.

    Example: embtool compare 狗咬人 人咬狗
    """
    from embtool.queries.compare import compare

    session.emit([compare(session.model, check(text_a), check(text_b), session.table)])


@shares(*TABLE, "form", "pool")
def dimensions(
    session: Session,
    word: Annotated[str | None, typer.Argument(help="A word, id:NUMBER or raw:PIECE.")] = None,
    index: Annotated[
        int | None, typer.Option("--index", min=0, help="One dimension instead, from 0.")
    ] = None,
    top: options.Top = 10,
) -> None:
    """Show a row's largest dimensions, or the tokens at the two ends of one dimension.

    Example: embtool dimensions 国王 -k 3
    """
    from embtool.queries.dimensions import dimension, word_dimensions

    if (word is None) == (index is None):
        raise typer.BadParameter("give either a word or --index")
    if word is not None:
        session.emit([word_dimensions(session.model, check(word), session.choices, top)])
    else:
        session.emit([dimension(session.model, index or 0, session.choices, top)])
