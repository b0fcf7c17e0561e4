"""`tokens`, `find`, `lookup`: what a text becomes, and what the vocabulary holds."""

from typing import Annotated

import typer

from embtool.cli import options
from embtool.cli.session import MODEL, TABLE, Session, shares
from embtool.cli.stdin import check, numbers, text_argument


@shares(*MODEL)
def tokens(
    session: Session,
    text: Annotated[str | None, typer.Argument(help=options.TEXT_HELP)] = None,
    ids: Annotated[str | None, typer.Option("--ids", help="Ids instead: 5237,301.")] = None,
    special: Annotated[
        bool, typer.Option("--special", help="Add the model's own special tokens.")
    ] = False,
) -> None:
    """Show the tokens of a text: position, id, token, and the vocabulary's own spelling.

    Example: embtool tokens 今天西安的天气怎么样？
    """
    from embtool.queries import texts

    if (text is None) == (ids is None):
        raise typer.BadParameter("give either a text or --ids")
    if text is not None:
        found = texts.tokens(session.model, text_argument(text), special=special)
    else:
        found = texts.tokens_of_ids(session.model, numbers(ids or "", "--ids"))
    session.emit([found])


@shares(*MODEL)
def find(
    session: Session,
    pattern: Annotated[str, typer.Argument(help="A text, or a regular expression with -e.")],
    regex: Annotated[bool, typer.Option("--regex", "-e", help="It is a pattern.")] = False,
    ignore_case: Annotated[bool, typer.Option("--ignore-case", "-i", help="Any case.")] = False,
) -> None:
    """List the vocabulary's tokens whose displayed form holds a text or matches a pattern.

    Example: embtool find -e '^ ?[Qq]ueens?$'
    """
    from embtool.queries import texts

    found = texts.find(session.model, check(pattern), regex=regex, ignore_case=ignore_case)
    session.emit([found])


@shares(*TABLE)
def lookup(
    session: Session,
    text: options.Text,
    dims: options.Dims = None,
    scaled: Annotated[
        bool, typer.Option("--scaled", help="Times the model's own factor at run time.")
    ] = False,
) -> None:
    """Show the rows of a text's tokens: a matrix of T tokens × d_model.

    They are as they are stored. Some models multiply them before use (Gemma by the square root
    of d_model), which --scaled does too.

    Example: embtool lookup 今天西安的天气怎么样 -o rows.npy
    """
    from embtool.queries import texts

    if scaled and session.table != "input":
        raise typer.BadParameter("--scaled is about the input table, which models scale")
    shown = dims or (8 if session.sink.for_people else None)
    found = texts.lookup(session.model, text_argument(text), session.table, shown, scaled=scaled)
    session.emit([found])
