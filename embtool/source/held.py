"""What the cache holds of the Hub's models, and emptying it."""

import json
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from embtool.errors import SourceError
from embtool.source import repo_of
from embtool.source.cache import Shelf, key_of
from embtool.source.derived import assets
from embtool.source.local import open_local
from embtool.source.offline import OFFLINE_MODEL, offline_keys
from embtool.source.slices import slice_metadata

_OTHERS = ("derived", "offline")


@dataclass(frozen=True, slots=True)
class Held:
    """One thing that is kept.

    `kind` is `table` (all of `tensor`), `rows` (those that were read), `part` (a table that was
    not fetched to its end), `headers` (with indexes and lists of files), `file` (the joined offline
    model) or `derived` (what was computed from the model); the last three have no `tensor`.
    `model` is None for what was computed from other files of this machine. `last_used` is in
    seconds since the epoch. A `part` counts the bytes that it takes, which are those of the whole
    table.
    """

    model: str | None
    commit: str | None
    tensor: str | None
    kind: str
    nbytes: int
    last_used: float
    path: Path


def held() -> list[Held]:
    """Everything that is kept, the last used first."""
    owners: dict[str, str] = {}
    found = list(_offline(owners))
    for folder in _folders(assets()):
        if folder.name not in _OTHERS:
            found += _of_model(folder)
            owners = dict.fromkeys(_keys(folder), _model(folder)) | owners
    for path in _folders(assets() / "derived"):
        nbytes, last = _all_used(path)
        found.append(Held(owners.get(path.name), None, None, "derived", nbytes, last, path))
    return sorted(found, key=lambda one: (-one.last_used, one.model or "", one.kind))


def remove(ref: str) -> int:
    """Remove what is kept of a model, and return how many bytes that was; 0 if nothing was.

    `ref` names it as elsewhere; all its revisions go. Of a path only what was computed from its
    files is kept. huggingface_hub's own cache is left alone (`hf cache` empties that).

    Raises:
        SourceError: another process fetches something of it right now, or it cannot be removed.
    """
    gone = [path for path in _kept_of(ref) if path.is_dir()]
    nbytes = sum(_all_used(path)[0] for path in gone)
    try:
        for path in gone:
            shutil.rmtree(path)
    except OSError as error:
        raise SourceError(
            f"{error.filename} cannot be removed: {error.strerror or error}",
            "check its permissions",
        ) from error
    return nbytes


def _kept_of(ref: str) -> list[Path]:
    """The folders of what is kept of a model."""
    local = open_local(ref)
    repo = None if local is not None else repo_of(ref)
    if ref == OFFLINE_MODEL:
        return [assets() / "offline", *_derived(offline_keys())]
    if local is not None:
        return _derived([local.key(name) for name in local.names()])
    if repo is None or Shelf(repo).folder.name in _OTHERS:
        return []
    folder = Shelf(repo).folder
    _refuse_if_busy(repo, folder)
    return [folder, *_derived(_keys(folder))]


def _offline(owners: dict[str, str]) -> Iterator[Held]:
    """The joined offline model, if it is there; its key is added to `owners`."""
    folder = assets() / "offline"
    if folder.is_dir():
        owners |= dict.fromkeys(offline_keys(), OFFLINE_MODEL)
        yield Held(OFFLINE_MODEL, None, None, "file", *_all_used(folder), folder)


def _of_model(folder: Path) -> Iterator[Held]:
    model = _model(folder)
    commits = _commits(folder)
    for blob in _folders(folder / "blobs"):
        for path in sorted(blob.iterdir()):
            kind = _KINDS.get("".join(path.suffixes[-1:]))
            if kind is not None:
                tensor, commit = _tensor(path, kind)
                commit = commit or commits.get(blob.name)
                yield Held(model, commit, tensor, kind, *_used(path), path)
    nbytes, last = _all_used(folder, but=_KINDS)
    commit = next(reversed(commits.values()), None)
    yield Held(model, commit, None, "headers", nbytes, last, folder)


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
    shelf = Shelf(_model(folder))
    for path in sorted(files, key=lambda path: _used(path)[1]):
        for name, fact in shelf.facts(path.stem).items():
            if fact is not None:
                blob = shelf.blob(fact.etag, path.stem, name).name
                found.pop(blob, None)
                found[blob] = path.stem
    return found


def _keys(folder: Path) -> set[str]:
    """The identities of a model's files, under which things that were computed are kept."""
    return {key_of(folder / "blobs" / blob) for blob in _commits(folder)}


def _derived(keys: Iterable[str]) -> list[Path]:
    return [assets() / "derived" / key for key in keys]


def _model(folder: Path) -> str:
    return folder.name.replace("--", "/")


def _folders(parent: Path) -> list[Path]:
    return sorted(path for path in parent.glob("*") if path.is_dir())


def _used(path: Path) -> tuple[int, float]:
    """Bytes, and when they were last used; another process may have taken the file away."""
    try:
        status = path.stat()
    except OSError:
        return 0, 0.0
    return status.st_size, status.st_mtime


def _all_used(folder: Path, but: Iterable[str] = ()) -> tuple[int, float]:
    """The same of all files in a folder, without those of some endings."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix not in but]
    used = [_used(path) for path in files] or [(0, _used(folder)[1])]
    return sum(nbytes for nbytes, _ in used), max(last for _, last in used)


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
