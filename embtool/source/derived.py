"""Derived files (token index, norms, mean row): kept in the cache, never beside a user's file.

They live under `HF_HOME/assets/embtool/derived/<key>/`, where the key is the identity of what
they were derived from (`Source.key`). A cache that cannot be written means slower, not broken.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from embtool.source.notes import note

#: File systems stop at 255 bytes a name; the rest is for endings.
_NAME = 180
_noted = False


def assets() -> Path:
    """The folder of everything embtool keeps: `HF_HOME/assets/embtool` (or `HF_ASSETS_CACHE`)."""
    from huggingface_hub import constants

    return Path(constants.HF_ASSETS_CACHE) / "embtool"


def derived(key: str, name: str) -> Path:
    """Where the derived file `name` of the thing with identity `key` lives; it may not exist."""
    return assets() / "derived" / key / short_name(name)


def joined_key(keys: Sequence[str]) -> str:
    """The identity of files that are read as one: their own where it is one file."""
    if len(set(keys)) == 1:
        return keys[0]
    import hashlib

    return "joined-" + hashlib.sha256(" ".join(keys).encode()).hexdigest()


def short_name(name: str) -> str:
    """A file name of no more than 180 bytes of ASCII: a longer one ends in its hash."""
    if len(name) <= _NAME:
        return name
    import hashlib

    return name[: _NAME - 65] + "-" + hashlib.sha256(name.encode()).hexdigest()


def write_atomic(path: Path, write: Callable[[BinaryIO], None]) -> bool:
    """Write a derived file so that nobody ever sees half of it.

    Returns False, after one note on standard error in the life of the process, where the
    cache cannot be written.
    """
    global _noted  # noqa: PLW0603 -- one note a process, whoever asks
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"{path.name}.{os.getpid()}-{os.urandom(4).hex()}")
        with temporary.open("xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        if not _noted:
            reason = error.strerror or str(error)
            note(f"the cache {path.parent} cannot be written: {reason}")
            _noted = True
        return False
    finally:
        if temporary is not None:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
    return True
