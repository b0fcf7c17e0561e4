"""A view as a table for people; the only importer of rich."""

from typing import TextIO

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from embtool.errors import one_line
from embtool.output.view import Cell, View

#: Off a terminal a table is as wide as it needs.
_UNBOUNDED = 1 << 20


def draw(view: View, stream: TextIO) -> None:
    """Write a view as a table: in colour on a terminal, plain elsewhere."""
    if stream.isatty():
        console = Console(file=stream, highlight=False)
        _render(view, console)
        return
    console = Console(file=stream, highlight=False, width=_UNBOUNDED, no_color=True)
    with console.capture() as capture:
        _render(view, console)
    lines = [line.rstrip() for line in capture.get().split("\n")]
    stream.write("\n".join(lines))


def _render(view: View, console: Console) -> None:
    if view.title:
        console.print(Text(one_line(view.title), "bold"))
    if view.columns:
        console.print(_table(view))
    elif view.title:
        console.print()
    for line in view.footer:
        # A path stays in one piece, so that it can be copied.
        console.print(
            Text(one_line(line), "dim" if view.columns else ""), soft_wrap=" " not in line
        )
    if view.footer:
        console.print()


def _table(view: View) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_header=not view.page, pad_edge=False)
    columns = view.columns[: len(view.columns) - view.beside]
    for index, name in enumerate(columns):
        numbers = all(isinstance(row[index], int | float | None) for row in view.rows)
        table.add_column(
            Text(name),
            justify="right" if numbers and view.rows else "left",
            overflow="fold",
            no_wrap=numbers,
        )
    for row in view.rows:
        table.add_row(*(_text(cell) for cell in row[: len(columns)]))
    return table


def _text(cell: Cell) -> Text:
    """A cell as literal text: rich would read `[/INST]` in a plain string as markup."""
    if cell is None:
        return Text("")
    if isinstance(cell, bool):
        return Text("yes" if cell else "no")
    if isinstance(cell, float):
        return Text(f"{cell:.4f}")
    return Text(one_line(str(cell)))
