"""Which model a command looks into when none is named."""

import os
from pathlib import Path

from embtool.errors import SourceError
from embtool.source.offline import OFFLINE_MODEL, installed

_FALLBACK = "Qwen/Qwen3-0.6B"


def chosen_model() -> str:
    """`$EMBTOOL_MODEL`, else the saved one, else the offline model, else a small one of the Hub."""
    named = os.environ.get("EMBTOOL_MODEL") or saved_model()
    return named or (OFFLINE_MODEL if installed() else _FALLBACK)


def saved_model() -> str | None:
    """What `save_model` kept, if anything."""
    try:
        return _setting().read_text(encoding="utf-8").strip() or None
    except OSError:
        return None


def save_model(ref: str) -> Path:
    """Keep `ref` as the default; a path is kept absolute. Returns the file that holds it."""
    path = _setting()
    expanded = Path(ref).expanduser()
    kept = str(expanded.resolve()) if expanded.exists() else ref
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(kept + "\n", encoding="utf-8")
    except OSError as error:
        raise SourceError(
            f"{path} cannot be written: {error.strerror or error}",
            "set EMBTOOL_MODEL instead, or make that folder writable",
        ) from error
    return path


def _setting() -> Path:
    """A setting is no cache: it stays when the cache is emptied."""
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "embtool" / "model"
