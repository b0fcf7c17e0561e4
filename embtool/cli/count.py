"""`params`, `models`, `use`: counting, and choosing what to count."""

from typing import Annotated

import typer

from embtool.cli import options
from embtool.cli.session import OUTPUT, Session, shares
from embtool.params import PRECISIONS


def add(app: typer.Typer) -> None:
    """Put the commands of this file into the app."""
    app.command()(params)
    app.command()(models)
    app.command()(use)


@shares("offline", *OUTPUT)
def params(
    session: Session,
    models: options.Models = None,
    vocab_size: options.VocabSize = None,
    d_model: options.DModel = None,
    total_params: options.TotalParams = None,
    add_tokens: options.AddTokens = 0,
    pad_to: options.PadTo = None,
    dtype: options.Precisions = ",".join(PRECISIONS),
) -> None:
    """Count a table's rows, width, parameters and bytes, and their share of the model.

    Without any model, answers for a table that exists nowhere yet.

    Example: embtool params --vocab-size 129280 --d-model 4096 --total-params 8e9
    """
    from embtool.queries import counting

    given = counting.Given(vocab_size, d_model, total_params, add_tokens, pad_to)
    found = counting.params(session.open_all(models), given, dtype.split(","))
    session.sink.emit(found, many=len(models or ()) > 1)
