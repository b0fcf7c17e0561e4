"""Run the command line inside the test's own process."""

from dataclasses import dataclass

import numpy as np

from embtool.cli.app import app
from embtool.source.notes import keep_quiet


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    code: int
    out: str
    err: str


def run(capsys, *args: str) -> Done:
    """`embtool ARGS` with what it printed; nothing may be left over from before."""
    capsys.readouterr()
    with np.errstate(all="warn"):
        try:
            app(list(args))
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0
        finally:
            keep_quiet(False)
    out, err = capsys.readouterr()
    return Done(code, out, err)
