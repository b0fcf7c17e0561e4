"""`neighbors`, `rank`, `similarity`: rows compared with rows."""

from pathlib import Path
from typing import Annotated

import typer

from embtool.cli import options
from embtool.cli.session import RANKED, WORDS, Session, shares
from embtool.cli.stdin import batches, is_stdin, read_vectors, read_words


@shares(*RANKED)
def neighbors(
    session: Session,
    words: options.SomeWords = None,
    top: options.Top = 10,
    metric: options.MetricOption = "cosine",
    fold: options.Fold = False,
    between: Annotated[bool, typer.Option("--between", help="Of the words' midpoint.")] = False,
    vector: Annotated[str | None, typer.Option("--vector", help=options.VECTOR_HELP)] = None,
) -> None:
    """Show the rows nearest to each word's row; the word's own row is left out.

    Example: embtool neighbors 国王 -k 5
    """
    from embtool.queries.nearest import Nearest

    if bool(words) == (vector is not None):
        raise typer.BadParameter("give either words or --vector")
    candidates = session.candidates(fold=fold)
    nearest = Nearest(session.model, session.choices, candidates, metric, top)
    if words is None:
        session.emit(nearest.vectors(*read_vectors(vector or "-")), many=True)
    elif between:
        session.emit(nearest.between(read_words(words)))
    else:
        alone = len(words) == 1 and not is_stdin(words)
        session.emit(nearest.words(batches(words), alone=alone), many=not alone)


@shares(*RANKED)
def rank(
    session: Session,
    a: Annotated[str, typer.Argument(help="The word whose neighbors are counted.")],
    b: Annotated[str, typer.Argument(help="The word that is looked for among them.")],
    metric: options.MetricOption = "cosine",
) -> None:
    """Show how near B is to A: its place among A's neighbors.

    Example: embtool rank 国王 女王
    """
    from embtool.queries.rank import rank

    words = read_words([a, b])
    session.emit([rank(session.model, words, session.choices, session.candidates(), metric)])


@shares(*WORDS)
def similarity(
    session: Session,
    words: options.SomeWords = None,
    rows: Annotated[Path | None, typer.Option("--rows", help="Words, one a line.")] = None,
    cols: Annotated[Path | None, typer.Option("--cols", help="Words, one a line.")] = None,
) -> None:
    """Show the cosine of each word's row with every other's, or of two lists of words.

    Example: embtool similarity 猫 狗 数据库
    """
    from embtool.queries.similarity import cross, similarity

    if words and rows is None and cols is None:
        session.emit([similarity(session.model, read_words(words), session.choices)])
    elif not words and rows and cols:
        lists = (read_words(["-"], rows), read_words(["-"], cols))
        session.emit([cross(session.model, *lists, session.choices)])
    else:
        raise typer.BadParameter("give either words, or both --rows and --cols")
