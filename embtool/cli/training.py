"""`stats`, `undertrained`, `diff`, `graph`: for those who train models."""

from typing import Annotated, Literal

import typer

from embtool.cli import options
from embtool.cli.session import PAGE, TABLE, Session, shares
from embtool.cli.stdin import numbers

#: What tells an untrained row.
Indicator = Literal["auto", "norm", "cosine"]


@shares(*PAGE)
def stats(session: Session, top: options.Top = 10) -> None:
    """Show a table's norms, spectrum, broken and duplicate rows, in one pass.

    Example: embtool stats
    """
    from embtool.queries.stats import stats

    session.emit([stats(session.model, session.table, top)])


@shares(*TABLE)
def undertrained(
    session: Session,
    indicator: Annotated[Indicator, typer.Option("--indicator", help="What tells.")] = "auto",
    reference: Annotated[
        str | None, typer.Option("--reference", help="Ids that are known to be untrained: 5,6,7.")
    ] = None,
    top: options.Top = 10,
) -> None:
    """Rank the tokens that training hardly touched.

    Example: embtool undertrained -k 20
    """
    from embtool.queries.undertrained import undertrained

    table = None if session.table == "input" else session.table
    known = numbers(reference or "", "--reference")
    session.emit([undertrained(session.model, indicator, table, known, top)])


@shares("page_format", "output", "quiet", "offline")
def diff(
    session: Session,
    model_a: Annotated[str, typer.Argument(help="A model.")],
    model_b: Annotated[str | None, typer.Argument(help="Another; none: the same.")] = None,
    tables: Annotated[tuple[str, str], typer.Option("--tables", help="Which table of each.")] = (
        "input",
        "input",
    ),
    top: options.Top = 10,
) -> None:
    """Show which rows two models' tables share, and which moved.

    Example: embtool diff google/gemma-3-270m google/gemma-3-270m-it
    """
    from embtool.queries.diff import diff

    one = session.open(model_a)
    other = one if model_b is None else session.open(model_b)
    session.emit([diff(one, other, *tables, k=top)])


@shares(*TABLE)
def graph(
    session: Session,
    top: options.Top = 10,
    metric: options.MetricOption = "cosine",
    ids: Annotated[str | None, typer.Option("--ids", help="Some rows: 5,6,7.")] = None,
) -> None:
    """Show the k nearest neighbors of every row; with -o FILE.tsv or .parquet, resumable.

    Example: embtool graph --ids 9886,5237 -k 3
    """
    from embtool.queries.graph import graph, graph_cost, write_graph

    chosen = numbers(ids, "--ids") if ids is not None else None
    model, table, meter, file = (
        session.model,
        session.table,
        session.meter("rows"),
        session.edge_file,
    )
    session.note(f"note: {graph_cost(model, table, chosen)}")
    if file is None:
        session.emit(graph(model, table, top, metric, chosen, meter), many=True)
        return
    path, header = file
    done = write_graph(model, path, table, top, metric, chosen, meter, header=header)
    session.note(f"note: {done.nodes:,} rows in {done.file}, {done.resumed:,} of them from before")
