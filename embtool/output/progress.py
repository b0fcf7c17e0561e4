"""How far something long has come, on standard error: a bar on a terminal, else plain lines."""

import atexit
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

#: Off a terminal a line is written each time so many percent more are done.
_STEP = 10


class Meter:
    """Called with (done, total); `unit` is what is counted, bytes unless named otherwise."""

    def __init__(self, *, quiet: bool = False, unit: str = "") -> None:
        self._quiet = quiet
        self._unit = unit
        self._bar: Progress | None = None
        self._said = -1

    def __call__(self, done: int, total: int) -> None:
        """Show that `done` of `total` are there."""
        if self._quiet or total <= 0:
            return
        if sys.stderr.isatty():
            self._draw(done, total)
        elif (percent := 100 * done // total // _STEP * _STEP) > self._said:
            self._said = -1 if done >= total else percent
            sys.stderr.write(f"{percent}% of {total:,} {self._unit or 'bytes'}\n")
            sys.stderr.flush()

    def _draw(self, done: int, total: int) -> None:
        if self._bar is None:
            self._bar = self._make()
            # What breaks off half-way leaves no bar behind, and the cursor as it was.
            atexit.register(self._bar.stop)
            self._bar.start()
            self._bar.add_task("", total=total)
        self._bar.update(self._bar.task_ids[0], completed=done, total=total)
        if done >= total:
            self._bar.stop()
            self._bar = None

    def _make(self) -> "Progress":
        from rich import progress
        from rich.console import Console

        counted = (
            (progress.MofNCompleteColumn(),)
            if self._unit
            else (progress.DownloadColumn(), progress.TransferSpeedColumn())
        )
        columns = (progress.BarColumn(), *counted, progress.TimeRemainingColumn())
        return progress.Progress(*columns, console=Console(stderr=True), transient=True)
