"""`params`, `models`, `use`: counting, and choosing what to count."""

from typing import Annotated, Literal

import typer

from embtool.cli.session import OUTPUT, Session, shares

#: What several models are put in order by: numbers from the largest, names from A.
SortKey = Literal["model", "rows", "d_model", "params", "total_params", "share"]

_PRECISIONS = "fp32,bf16,fp8,int8,int4"


@shares("offline", *OUTPUT)
def params(
    session: Session,
    model: Annotated[list[str] | None, typer.Argument(help="Models; none: the default.")] = None,
    vocab_size: Annotated[int | None, typer.Option(help="Rows of a table that is not.")] = None,
    d_model: Annotated[int | None, typer.Option(help="Its width.")] = None,
    total_params: Annotated[str | None, typer.Option(help="The whole model: 8e9.")] = None,
    add_tokens: Annotated[int, typer.Option(min=0, help="Tokens to add.")] = 0,
    pad_to: Annotated[int | None, typer.Option(min=1, help="Pad the rows to this.")] = None,
    sort: Annotated[SortKey | None, typer.Option(help="Order several models by this.")] = None,
    dtype: Annotated[str, typer.Option(help="Precisions for the memory.")] = _PRECISIONS,
) -> None:
    """Count a table's rows, width, parameters and bytes, and their share of the model.

    With --vocab-size and --d-model, no model is asked: the table need not exist.

    Example: embtool params --vocab-size 129280 --d-model 4096 --total-params 8e9
    """
    from embtool.queries import counting

    growth, precisions = counting.Growth(add_tokens, pad_to), dtype.split(",")
    if vocab_size is None and d_model is None and total_params is None:
        refs = model or [session.chosen()]
        found = counting.params(refs, session.open, growth, precisions)
        session.emit(counting.ordered(found, sort), many=len(refs) > 1)
        return
    if model or vocab_size is None or d_model is None:
        raise typer.BadParameter("give MODEL, or both of --vocab-size and --d-model")
    total = _count(total_params)
    session.emit([counting.given(vocab_size, d_model, total, growth, precisions)])


@shares(*OUTPUT)
def models(session: Session) -> None:
    """List the models whose facts are known without a network.

    Example: embtool models -f tsv | head
    """
    from embtool.queries.known import known

    session.emit([known()])


@shares("offline", "quiet")
def use(
    session: Session,
    model: Annotated[str | None, typer.Argument(help="The model; none: show the default.")] = None,
) -> None:
    """Save the model that commands look into when none is named.

    Example: embtool use gemma-3-270m
    """
    from embtool.source.chosen import save_model

    if model is None:
        typer.echo(session.chosen())
        return
    session.open(model)
    path = save_model(model)
    session.note(f"{model} is the default now, kept in {path}")


def _count(text: str | None) -> int | None:
    """A count as people write it: 8e9, 8_000_000_000."""
    if text is None:
        return None
    try:
        return int(text.replace(",", "")) if text.replace(",", "").isdigit() else int(float(text))
    except (ValueError, OverflowError):
        raise typer.BadParameter(f"--total-params takes a number, not {text!r}") from None
