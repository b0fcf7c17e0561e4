"""What every command shares: its model, its sink, and what becomes of an error."""

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from embtool.cli import options
from embtool.errors import EmbtoolError

if TYPE_CHECKING:
    from embtool.model import Model
    from embtool.output import Sink
    from embtool.output.progress import Meter
    from embtool.queries.candidates import Candidates
    from embtool.queries.ground import Choices

#: name -> (annotation, default) of the options that a `Session` takes.
_SHARED: dict[str, tuple[Any, Any]] = {
    "model": (options.ModelOption, None),
    "table": (options.TableOption, "input"),
    "tokenizer": (options.TokenizerOption, None),
    "format": (options.FormatOption, None),
    "page_format": (options.PageFormatOption, None),
    "output": (options.OutputOption, None),
    "no_header": (options.NoHeader, False),
    "form": (options.FormOption, "auto"),
    "pool": (options.PoolOption, None),
    "center": (options.Center, False),
    "remove_components": (options.Remove, 0),
    "only": (options.Only, None),
    "script": (options.Script, None),
    "begin_words": (options.BeginWords, False),
    "first": (options.First, None),
    "exclude_special": (options.NoSpecial, False),
    "offline": (options.Offline, False),
    "quiet": (options.Quiet, False),
}
OUTPUT = ("format", "output", "no_header", "quiet")
MODEL = ("model", "tokenizer", *OUTPUT, "offline")
TABLE = ("model", "table", "tokenizer", *OUTPUT, "offline")
PAGE = ("model", "table", "tokenizer", "page_format", "output", "quiet", "offline")
SPACE = ("center", "remove_components")
WORDS = (*TABLE, *SPACE, "form", "pool")
CANDIDATES = ("only", "script", "begin_words", "first", "exclude_special")
RANKED = (*WORDS, *CANDIDATES)
CHOSEN = ("model", "table", "tokenizer", "form", "pool", *CANDIDATES, "quiet", "offline")


class Session:
    """The shared options of one command, and the model and the sink they lead to."""

    def __init__(self, **given: Any) -> None:  # noqa: ANN401 -- the values of _SHARED's options
        self._given = given
        self.table: str = given.get("table", "input")
        self.quiet: bool = given.get("quiet", False)

    @functools.cached_property
    def sink(self) -> "Sink":
        """Where the records go."""
        from embtool.output import Sink, choose_format

        given = self._given
        output: Path | None = given["output"]
        wanted = given.get("format", given.get("page_format"))
        if "page_format" in given and output is None:
            wanted = wanted or "table"
        try:
            chosen = choose_format(wanted, output)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None
        return Sink(chosen, output, header=not given.get("no_header", False))

    @property
    def choices(self) -> "Choices":
        """How words and rows count in this command."""
        from embtool.queries.ground import Choices

        given = self._given
        return Choices(
            self.table,
            given["form"],
            given.get("pool"),
            given.get("center", False),
            given.get("remove_components", 0),
        )

    def candidates(self, *, fold: bool = False) -> "Candidates":
        """Which rows may be answers in this command."""
        from embtool.queries.candidates import Candidates

        given = self._given
        return Candidates(
            given["only"],
            given["script"],
            given["begin_words"],
            given["first"],
            given["exclude_special"],
            fold,
        )

    @property
    def edge_file(self) -> tuple[Path, bool] | None:
        """The file of `-o` where it is TSV or Parquet, and whether it gets a header; else None."""
        output: Path | None = self._given["output"]
        if output is not None and output.suffix == ".parquet":
            return output, False
        wanted = output is not None and self.sink.format == "tsv"
        return (output, not self._given["no_header"]) if wanted and output else None

    def emit(self, records: Iterable[object], *, many: bool = False) -> None:
        """Write records; a failure among them is the command's exit code at the end."""
        from embtool.source.notes import keep_quiet

        keep_quiet(self.quiet)
        if not self.sink.emit(records, many):
            raise typer.Exit(1)

    def note(self, text: str) -> None:
        """One line on standard error, unless quiet is wanted."""
        if not self.quiet:
            sys.stderr.write(f"{text}\n")

    @functools.cached_property
    def model(self) -> "Model":
        """The model that is named, else the chosen one."""
        return self.open(self._given["model"] or self.chosen())

    def chosen(self) -> str:
        """The model of who names none; it is named on standard error."""
        from embtool.source.chosen import chosen_model

        ref = chosen_model()
        self.note(f"model: {ref}")
        return ref

    def open(self, ref: str) -> "Model":
        """Any model, with this command's options."""
        from embtool.model import Model
        from embtool.source.notes import keep_quiet

        keep_quiet(self.quiet)
        given = self._given
        return Model.open(
            ref,
            tokenizer=given.get("tokenizer"),
            offline=given["offline"],
            progress=self.meter(),
        )

    def meter(self, unit: str = "") -> "Meter":
        """Shows how far something long has come, unless quiet is wanted."""
        from embtool.output.progress import Meter

        return Meter(quiet=self.quiet, unit=unit)


def shares(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the named options of `_SHARED`; it gets them as one `Session`, first.

    typer reads a command's options from its signature, so the signature is made here.
    """

    def wrap(function: Callable[..., None]) -> Callable[..., None]:
        own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
        added = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
            )
            for name, (annotation, default) in _SHARED.items()
            if name in names
        ]

        def call(**values: Any) -> None:  # noqa: ANN401
            session = Session(**{name: values.pop(name) for name in names})
            with_exit_code(lambda: function(session, **values))

        call.__name__ = function.__name__
        call.__doc__ = function.__doc__
        parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in (*own, *added)]
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        call.__annotations__ = {p.name: p.annotation for p in parameters}
        return call

    return wrap


def with_exit_code(body: Callable[[], None]) -> None:
    """Run a command's body; errors become two lines and exit codes (DESIGN §2)."""
    try:
        body()
        sys.stdout.flush()
    except (EmbtoolError, ValueError) as error:
        from embtool.vocab import UsageError

        if isinstance(error, UsageError):
            raise typer.BadParameter(str(error)) from None
        if not isinstance(error, EmbtoolError):
            raise
        if os.environ.get("EMBTOOL_DEBUG") == "1":
            raise
        from embtool.output import report

        sys.stdout.flush()
        report(error)
        raise typer.Exit(1) from None
    except BrokenPipeError:
        from embtool.output.notes import forget_output

        forget_output()  # the reader has what it wanted
        raise typer.Exit(0) from None
    except OSError as error:
        if os.environ.get("EMBTOOL_DEBUG") == "1":
            raise
        from embtool.output import report_refusal

        report_refusal(error)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
