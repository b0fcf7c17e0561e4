"""What the cache holds of the Hub's models, and emptying it."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from embtool.errors import SourceError
from embtool.source.cache import Shelf, key_of
from embtool.source.derived import assets
from embtool.source.slices import slice_metadata

_OTHERS = ("derived", "offline")


@dataclass(frozen=True, slots=True)
class Held:
    """One thing that is kept.

    `kind` is `table` (all of `tensor`), `rows` (those that were read), `part` (a table that was
    not fetched to its end), `headers` (with indexes and lists of files) or `derived` (what was
    computed from the model); the last two have no `tensor`. `last_used` is in seconds since the
    epoch. A `part` counts the bytes that it takes, which are those of the whole table.
    """

    model: str
    commit: str | None
    tensor: str | None
    kind: str
    nbytes: int
    last_used: float
    path: Path


def held() -> list[Held]:
    """Everything that is kept of models of the Hub, the last used first."""
    root = assets()
    folders = [path for path in root.iterdir() if path.is_dir()] if root.is_dir() else []
    found = [one for folder in folders if folder.name not in _OTHERS for one in _of_model(folder)]
    return sorted(found, key=lambda one: (-one.last_used, one.model, one.kind))


def remove(model: str) -> int:
    """Remove what is kept of a model, and return how many bytes that was; 0 if nothing was.

    huggingface_hub's own cache is left alone (`hf cache` empties that).

    Raises:
        SourceError: another process fetches something of it right now, or it cannot be removed.
    """
    folder = Shelf(model).folder
    if "/" in folder.name or folder.name in (*_OTHERS, "", ".", "..") or not folder.is_dir():
        return 0
    _refuse_if_busy(model, folder)
    gone = [folder, *_derived(folder)]
    nbytes = sum(_nbytes(path) for path in gone)
    try:
        for path in gone:
            shutil.rmtree(path)
    except OSError as error:
        raise SourceError(
            f"{error.filename} cannot be removed: {error.strerror or error}",
            "check its permissions",
        ) from error
    return nbytes


def _of_model(folder: Path) -> Iterator[Held]:
    model = folder.name.replace("--", "/")
    commits = _commits(folder)
    for blob in sorted((folder / "blobs").glob("*")):
        for path in sorted(blob.iterdir()):
            kind = _KINDS.get("".join(path.suffixes[-1:]))
            if kind is not None:
                tensor, commit = _tensor(path, kind)
                commit = commit or commits.get(blob.name)
                yield Held(model, commit, tensor, kind, *_used(path), path)
    small = [path for path in folder.rglob("*") if path.is_file() and path.suffix not in _KINDS]
    if small:
        nbytes, last = zip(*(_used(path) for path in small), strict=True)
        commit = next(reversed(commits.values()), None)
        yield Held(model, commit, None, "headers", sum(nbytes), max(last), folder)
    for path in _derived(folder):
        yield Held(model, None, None, "derived", _nbytes(path), path.stat().st_mtime, path)


_KINDS = {".safetensors": "table", ".rows": "rows", ".part": "part"}


def _tensor(path: Path, kind: str) -> tuple[str | None, str | None]:
    """The name of the tensor in a kept file, and the commit that it was fetched at."""
    if kind == "table":
        metadata = slice_metadata(path)
        return metadata.get("tensor"), metadata.get("commit")
    described = path.with_name(path.name + ".log") if kind == "part" else path
    try:
        with described.open("rb") as file:
            return json.loads(file.readline(1 << 16)).get("tensor"), None
    except (OSError, ValueError, AttributeError):
        return None, None


def _commits(folder: Path) -> dict[str, str]:
    """The last seen commit that has a blob, by the blob's name; the newest comes last."""
    found: dict[str, str] = {}
    files = [path for path in (folder / "commits").glob("*.json") if len(path.stem) == 40]
    shelf = Shelf(folder.name.replace("--", "/"))
    for path in sorted(files, key=lambda path: path.stat().st_mtime):
        for name, fact in shelf.facts(path.stem).items():
            if fact is not None:
                blob = shelf.blob(fact.etag, path.stem, name).name
                found.pop(blob, None)
                found[blob] = path.stem
    return found


def _derived(folder: Path) -> list[Path]:
    """Folders of what was computed from a model's files, by the key of each."""
    keys = [key_of(blob) for blob in (folder / "blobs").glob("*")]
    return [path for key in keys for path in (assets() / "derived").glob(key + "*")]


def _used(path: Path) -> tuple[int, float]:
    status = path.stat()
    return status.st_size, status.st_mtime


def _nbytes(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def _refuse_if_busy(model: str, folder: Path) -> None:
    from embtool.source.client import WeakFileLock

    for part in folder.glob("blobs/*/*.part"):
        lock = part.with_suffix(".lock")
        try:
            with WeakFileLock(lock, timeout=0.2):
                pass
        except TimeoutError as error:
            raise SourceError(
                f"{model}: another process is fetching {part.stem} right now",
                "wait for it, or stop it",
            ) from error
