"""Where data goes: one stream, one format, records written as they come."""

import contextlib
import json
import sys
from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path
from typing import TextIO

import numpy as np

from embtool.errors import EmbtoolError, SourceError, UnsupportedError, one_line
from embtool.output.notes import FULL, report
from embtool.output.plain import plain
from embtool.output.view import Cell, View
from embtool.output.views import for_people, view
from embtool.queries.failures import Failure
from embtool.source.notes import note

FORMATS = ("table", "json", "jsonl", "csv", "tsv", "npy")
_ENDINGS = {f".{name}": name for name in FORMATS if name != "table"} | {".txt": "table"}


def choose_format(chosen: str | None, output: Path | None) -> str:
    """The format that is asked for, else that of the file's ending, else of the terminal.

    Raises:
        ValueError: the file's ending says nothing, or contradicts what is asked for.
    """
    if output is not None:
        implied = _ENDINGS.get(output.suffix.lower())
        if implied is None and chosen is None:
            raise ValueError(f"{output.name}: its ending names no format; give one with -f")
        if chosen is not None and implied is not None and chosen != implied:
            raise ValueError(f"{output.name} ends as {implied}, but -f says {chosen}")
        return chosen or str(implied)
    return chosen or ("table" if sys.stdout.isatty() else "tsv")


class Sink:
    """Writes records in one format to standard output or a file."""

    def __init__(self, format_: str, output: Path | None, *, header: bool) -> None:
        self.format = format_
        self._failed = False
        self._output = output
        self._header = header

    @property
    def for_people(self) -> bool:
        """Whether a person will read it: vectors are then cut short."""
        return self.format == "table"

    def emit(self, records: Iterable[object], many: bool = False) -> bool:
        """Write records as they come; True when none of them was a failure.

        A failure is reported and does not stop the others. `many`: JSON becomes a list, even of
        one record.
        """
        if self.format == "npy":
            self._save(records)
            return not self._failed
        with self._stream() as stream:
            if self.format == "json":
                self._json(records, many, stream)
            elif self.format == "jsonl":
                self._lines(records, stream)
            elif self.format == "table":
                self._tables(records, many, stream)
            else:
                self._delimited(records, stream)
        return not self._failed

    @contextlib.contextmanager
    def _stream(self) -> Iterator[TextIO]:
        if self._output is None:
            yield sys.stdout
            sys.stdout.flush()
            return
        try:
            stream = self._output.open("w", encoding="utf-8", newline="")
        except OSError as error:
            raise self._unwritable(error) from error
        try:
            with stream:
                yield stream
        except OSError as error:
            if error.errno not in FULL:  # of what makes the records, not of the file
                raise
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> SourceError:
        return SourceError(
            f"{self._output} cannot be written: {error.strerror or error}",
            "name a file in a folder that exists and is writable",
        )

    def _good(self, records: Iterable[object]) -> Iterator[object]:
        for record in records:
            if isinstance(record, Failure):
                self._fail(record)
            else:
                yield record

    def _fail(self, failure: Failure) -> None:
        self._failed = True
        report(EmbtoolError(failure.error, failure.advice))

    def _json(self, records: Iterable[object], many: bool, stream: TextIO) -> None:
        separator = "[\n" if many else ""
        for record in records:
            if isinstance(record, Failure):
                self._fail(record)
            stream.write(separator + _dump(record))
            separator = ",\n"
        if many:
            stream.write("[]\n" if separator == "[\n" else "\n]\n")
        elif separator:
            stream.write("\n")

    def _lines(self, records: Iterable[object], stream: TextIO) -> None:
        for record in records:
            if isinstance(record, Failure):
                self._fail(record)
                parts: Iterable[object] = (record,)
            else:
                lines = view(record).lines
                parts = (record,) if lines is None else lines
            for part in parts:
                stream.write(_dump(part) + "\n")
            stream.flush()

    def _tables(self, records: Iterable[object], many: bool, stream: TextIO) -> None:
        from embtool.output.people import draw

        joined: list[View] = []
        for record in self._good(records):
            shown, in_one = for_people(record, many)
            if in_one:
                joined.append(shown)
                continue
            for section in shown.sections or (shown,):
                draw(section, stream)
        if joined:
            rows = [row for shown in joined for row in shown.rows]
            footer = tuple(line for shown in joined for line in shown.footer)
            draw(View(joined[0].columns, rows, footer=footer), stream)

    def _delimited(self, records: Iterable[object], stream: TextIO) -> None:
        header = self._header
        for record in self._good(records):
            shown = view(record)
            if shown.sections:
                raise UnsupportedError(
                    f"{self.format} holds columns, and this answer is a page",
                    "choose -f table or -f json",
                )
            rows: Iterable[tuple[object, ...]] = (tuple(map(_cell, row)) for row in shown.rows)
            rows = (shown.columns, *rows) if header else rows
            if self.format == "csv":
                import csv

                csv.writer(stream, lineterminator="\n").writerows(rows)
            else:
                stream.writelines("\t".join(map(str, row)) + "\n" for row in rows)
            stream.flush()
            for sentence in shown.notes:
                note(sentence)
            header = False

    def _save(self, records: Iterable[object]) -> None:
        for record in self._good(records):
            matrix = view(record).matrix
            if matrix is None:
                raise UnsupportedError(
                    "npy holds a matrix, and this answer is none", "choose another format with -f"
                )
            if self._output is None:
                # np.save into a stream of the system says nothing of why it fails
                buffer = BytesIO()
                np.save(buffer, matrix)
                sys.stdout.buffer.write(buffer.getbuffer())
                continue
            try:
                with self._output.open("wb") as file:
                    np.save(file, matrix)
            except OSError as error:
                raise self._unwritable(error) from error


def _dump(record: object) -> str:
    if isinstance(record, Failure):
        record = {"query": record.query, "error": record.error}
    return json.dumps(plain(record), ensure_ascii=False, allow_nan=False)


def _cell(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return one_line(str(cell))
