"""`neighbors`, `analogy`, `similarity`: rows compared with rows."""

from typing import Annotated

import typer

from embtool.cli import options
from embtool.cli.session import TABLE, Session, shares
from embtool.cli.stdin import batches, is_stdin, triples


def add(app: typer.Typer) -> None:
    """Put the commands of this file into the app."""
    app.command()(neighbors)
    app.command()(analogy)
    app.command()(similarity)


@shares(*TABLE)
def neighbors(
    session: Session,
    words: options.Words,
    top: options.Top = 10,
    metric: options.MetricOption = options.Metric.cosine,
    form: options.FormOption = options.Form.auto,
    pool: options.PoolOption = None,
) -> None:
    """Show the rows nearest to each word's row; the word's own row is left out.

    Example: embtool neighbors 国王 -k 5
    """
    from embtool.queries.nearest import neighbors

    alone = len(words) == 1 and not is_stdin(words)
    choices = session.choices(form, pool)
    found = neighbors(session.model, batches(words), choices, metric.value, top, alone=alone)
    session.emit(found, many=not alone)


@shares(*TABLE)
def analogy(
    session: Session,
    words: Annotated[
        list[str], typer.Argument(help=options.TERMS_HELP, metavar="A B C", show_default=False)
    ],
    top: options.Top = 10,
    form: options.FormOption = options.Form.auto,
    pool: options.PoolOption = None,
) -> None:
    """Show the rows nearest to A − B + C; the rows of A, B and C are left out.

    Example: embtool analogy 国王 男人 女人
    """
    from embtool.queries.analogy import analogies

    alone = not is_stdin(words)
    choices = session.choices(form, pool)
    found = analogies(session.model, triples(words), choices, top, alone=alone)
    session.emit(found, many=not alone)


@shares(*TABLE)
def similarity(
    session: Session,
    words: options.Words,
    form: options.FormOption = options.Form.auto,
    pool: options.PoolOption = None,
) -> None:
    """Show the cosine of each word's row with every other's.

    Example: embtool similarity 猫 狗 数据库
    """
    from embtool.queries.similarity import similarity

    texts = [text for batch in batches(words) for text in batch]
    session.emit([similarity(session.model, texts, session.choices(form, pool))])
