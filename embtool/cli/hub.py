"""`download` and `cache`: what is brought to this machine, and what is kept here."""

from typing import Annotated

import typer

from embtool.cli.session import OUTPUT, Session, shares


@shares("offline", *OUTPUT)
def download(
    session: Session,
    model: Annotated[str, typer.Argument(help="A model of the Hub.")],
    table: Annotated[str, typer.Option(help="input, output, both, or a tensor.")] = "input",
    shard: Annotated[bool, typer.Option("--shard", help="The whole file with the table.")] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Hash the whole file as published.")
    ] = False,
) -> None:
    """Fetch a model's config, tokenizer and table, and print where they are.

    Example: embtool download Qwen/Qwen3-0.6B
    """
    from embtool.queries.download import download

    opened = session.open(model)
    found = download(opened, table, shard=shard, verify=verify, progress=session.meter())
    session.emit([found])


@shares(*OUTPUT)
def held(session: Session, ctx: typer.Context) -> None:
    """Show what is kept of which model: tables, rows, headers, and what was computed.

    Example: embtool cache
    """
    if ctx.invoked_subcommand is None:
        from embtool.queries.kept import kept

        session.emit([kept()])


@shares("quiet")
def remove(
    session: Session, model: Annotated[str, typer.Argument(help="A model, as elsewhere.")]
) -> None:
    """Remove what is kept of a model; the Hub library's own cache (see hf cache) is left alone.

    Example: embtool cache rm Qwen/Qwen3-0.6B
    """
    from embtool.queries.kept import forget

    session.note(f"{model}: {forget(model):,} bytes removed")


@shares()
def path(session: Session) -> None:
    """Print the folder of the cache.

    Example: embtool cache path
    """
    from embtool.source.derived import assets

    typer.echo(assets())


cache = typer.Typer(help="Show and empty the cache.", invoke_without_command=True)
cache.callback()(held)
cache.command("rm")(remove)
cache.command("path")(path)
