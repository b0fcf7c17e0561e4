"""`neighbors`, `analogy`, `similarity`: rows compared with rows."""

import typer

from embtool.cli import options
from embtool.cli.session import TABLE, Session, shares
from embtool.cli.stdin import batches


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

    chosen = session.words(form, pool)
    found = neighbors(session.model, batches(words), chosen, metric.value, top)
    session.sink.emit(found, many=len(words) > 1 or words == ["-"])
