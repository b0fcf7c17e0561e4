"""How each record reads as a list: its columns, its rows, and a title for people."""

from importlib import import_module
from typing import Any

from embtool.output.view import View


def view(record: object) -> View:
    """The list form of any record that a command gives."""
    return _view(_VIEWS[type(record).__name__], record)


def for_people(record: Any, many: bool) -> tuple[View, bool]:  # noqa: ANN401 -- any record
    """The view that a person gets, and whether it is a line of one table with the others."""
    kind = type(record).__name__
    if kind == "Params" and many:
        return _view("counts.brief", record), True
    return _view(_PEOPLE.get(kind, _VIEWS[kind]), record), False


def _view(place: str, record: object) -> View:
    file, name = place.split(".")
    found: View = getattr(import_module(f"embtool.output.{file}"), name)(record)
    return found


# By the names of the record's class, of the file, and of the function: to import every question,
# and every view, to answer one question would be slow.
_VIEWS = {
    "Alignment": "training.alignment",
    "Analogy": "rankings.analogy",
    "Cross": "rankings.cross",
    "Evaluation": "rankings.evaluation",
    "Download": "stores.download",
    "Compared": "pages.compared",
    "Diff": "training.diff",
    "DimensionEnds": "dimensions.of_index",
    "Dimensions": "dimensions.of_word",
    "Explained": "pages.explained",
    "Found": "texts.found",
    "Kept": "stores.kept",
    "Known": "counts.known",
    "Lookup": "texts.lookup",
    "Neighbors": "rankings.neighbors",
    "Node": "training.node",
    "Params": "counts.line",
    "Rank": "rankings.rank",
    "Similarity": "rankings.similarity",
    "Stats": "training.stats",
    "Tokens": "texts.tokens",
    "Undertrained": "training.undertrained",
}
# What a person gets instead.
_PEOPLE = {"Params": "counts.page", "Download": "stores.downloaded", "Kept": "stores.held"}
