"""`analogy` and `evaluate`: sums of words, one or thousands."""

from pathlib import Path
from typing import Annotated

import typer

from embtool.cli import options
from embtool.cli.session import CANDIDATES, RANKED, SPACE, TABLE, Session, shares
from embtool.cli.stdin import check, is_stdin, triples


@shares(*RANKED)
def analogy(
    session: Session,
    words: Annotated[
        list[str] | None, typer.Argument(help=options.TERMS_HELP, metavar="A B C")
    ] = None,
    expr: Annotated[str | None, typer.Option("--expr", help=options.EXPR_HELP)] = None,
    method: options.MethodOption = "3cosadd",
    top: options.Top = 10,
    fold: options.Fold = False,
) -> None:
    """Show the rows nearest to A − B + C; the rows of A, B and C are left out.

    Example: embtool analogy 国王 男人 女人
    """
    from embtool.queries.analogy import Sums
    from embtool.queries.expression import parse

    if bool(words) == (expr is not None):
        raise typer.BadParameter("give either three words or --expr")
    candidates = session.candidates(fold=fold)
    if words is None:
        terms, weights = parse(check(expr or ""))
        sums = Sums(session.model, session.choices, candidates, top, method, weights)
        session.emit(sums.answer([[terms]], alone=True))
        return
    sums = Sums(session.model, session.choices, candidates, top, method)
    session.emit(sums.answer(triples(words), alone=not is_stdin(words)), many=is_stdin(words))


@shares(*TABLE, *SPACE, *CANDIDATES, "form")
def evaluate(
    session: Session,
    file: Annotated[
        Path, typer.Argument(help="Questions: lines of four words, `: section` lines.")
    ],
    method: Annotated[
        str, typer.Option("--method", help="One or more of 3cosadd, 3cosmul, pairdirection.")
    ] = "3cosadd,3cosmul",
    lower: Annotated[bool, typer.Option("--lower", help="Lower-case the questions.")] = False,
    oov: options.OovOption = "skip",
) -> None:
    """Answer a file of analogies, word2vec's questions-words or CA8, and count what is right.

    Example: embtool evaluate questions-words.txt --form spaced
    """
    from embtool.queries.evaluate import evaluate

    methods, meter = options.methods(method), session.meter("rows")
    chosen = (session.choices, session.candidates())
    found = evaluate(session.model, file, *chosen, methods, lower=lower, oov=oov, progress=meter)
    session.emit([found])
