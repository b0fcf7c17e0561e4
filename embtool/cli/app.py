"""The commands by their names, and what `embtool` itself says."""

import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from embtool import __version__

#: The commands in the order of the help, each with the file that holds it under its name.
_FILES = {
    **dict.fromkeys(("params", "models", "use"), "count"),
    **dict.fromkeys(("tokens", "find", "lookup"), "texts"),
    **dict.fromkeys(("neighbors", "rank", "similarity"), "nearest"),
    **dict.fromkeys(("analogy", "evaluate"), "analogies"),
    **dict.fromkeys(("explain", "compare", "dimensions"), "explain"),
    **dict.fromkeys(("stats", "undertrained", "diff", "graph"), "training"),
    "export": "export",
    "plot": "plot",
    **dict.fromkeys(("download", "cache"), "hub"),
}


class _Commands(TyperGroup):
    """The commands, built when they are asked for: all of them cost as much as importing typer."""

    def list_commands(self, _: object) -> list[str]:
        return list(_FILES)

    def get_command(self, _: object, cmd_name: str) -> Any:  # noqa: ANN401 -- typer's own copy of click
        if cmd_name not in self.commands:
            # A name that is none may be a slip, and what is near it is looked for among all.
            home = typer.Typer()
            for name in [cmd_name] if cmd_name in _FILES else _FILES:
                command = getattr(import_module(f"embtool.cli.{_FILES[name]}"), name)
                if isinstance(command, typer.Typer):
                    home.add_typer(command, name=name)
                else:
                    home.command(name)(command)
            self.commands.update(typer.main.get_group(home).commands)
        return self.commands.get(cmd_name)


app = typer.Typer(
    name="embtool",
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Look inside the token-embedding tables of real language models.",
    epilog="Example: embtool analogy 国王 男人 女人",
)


def _version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"embtool {__version__}\n")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Look inside the token-embedding tables of real language models."""
