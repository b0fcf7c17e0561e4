"""What is kept of the Hub's models, beside what huggingface_hub itself keeps.

    HF_HOME/assets/embtool/<org>--<name>/
      commits/refs.json                        revision -> commit, as last seen
      commits/<commit>.json                    file -> {etag, size}, or null: there is none
      commits/<commit>.api.json                what the Hub's API told of that commit
      blobs/<sha256 of a file>/<a>-<b>.bytes   bytes [a, b) (headers, ends of an index), and a crc
      blobs/<sha256>/<tensor>.rows             rows read so far: `rows`
      blobs/<sha256>/<tensor>.safetensors      one whole tensor: `slices`

A blob is named by its content, so that a commit which changes the README refetches nothing.
"""

import hashlib
import json
import os
import re
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from embtool.source.derived import assets, short_name, write_atomic

_SHA256 = re.compile(r"[0-9a-f]{64}")
_SHA1 = re.compile(r"[0-9a-f]{40}")
#: Longest piece of a file that is kept: a header of 100 MB is not, one of 3 MB is.
_PIECE = 16 << 20


@dataclass(frozen=True, slots=True)
class Fact:
    """A file of one commit. `etag` is the sha256 of a large file, git's sha1 of a small one."""

    etag: str
    size: int


class Shelf:
    """What is kept of one model."""

    def __init__(self, repo: str) -> None:
        self.folder = assets() / repo.replace("/", "--")
        self._commits = self.folder / "commits"

    def commit(self, revision: str) -> str | None:
        """The commit that `revision` was when it was last asked for."""
        commit = _read_json(self._commits / "refs.json").get(revision)
        return commit if isinstance(commit, str) and is_commit(commit) else None

    def keep_commit(self, revision: str, commit: str) -> None:
        """Remember a revision's commit, for when there is no network."""
        path = self._commits / "refs.json"
        known = _read_json(path)
        if known.get(revision) != commit:
            _write_json(path, {**known, revision: commit})

    def facts(self, commit: str) -> dict[str, Fact | None]:
        """The files of a commit that are known; None: it has no such file."""
        known: dict[str, Fact | None] = {}
        for name, value in _read_json(self._commits / f"{commit}.json").items():
            if value is None:
                known[name] = None
            elif isinstance(value, dict) and isinstance(value.get("size"), int):
                known[name] = Fact(str(value.get("etag")), value["size"])
        return known

    def keep_facts(self, commit: str, facts: Mapping[str, Fact | None]) -> None:
        """Add to the known files of a commit."""
        merged = {**self.facts(commit), **facts}
        values = {name: fact and asdict(fact) for name, fact in sorted(merged.items())}
        _write_json(self._commits / f"{commit}.json", values)

    def told(self, commit: str) -> dict[str, Any]:
        """What the Hub's API told of a commit: `total_params`, `names`."""
        return _read_json(self._commits / f"{commit}.api.json")

    def keep_told(self, commit: str, told: Mapping[str, Any]) -> None:
        """Add to what the API told."""
        _write_json(self._commits / f"{commit}.api.json", {**self.told(commit), **told})

    def blob(self, etag: str, commit: str, name: str) -> Path:
        """The folder for one file's content."""
        if _SHA256.fullmatch(etag) or _SHA1.fullmatch(etag):
            return self.folder / "blobs" / etag
        # An ETag that is no hash of the content is only worth something where it was seen.
        seen = hashlib.sha256(f"{commit}/{name}/{etag}".encode()).hexdigest()
        return self.folder / "blobs" / f"etag-{seen}"


def key_of(blob: Path) -> str:
    """The identity of a blob's content: `sha256-...` where the Hub published that."""
    name = blob.name
    kind = "sha256-" if _SHA256.fullmatch(name) else "git-" if _SHA1.fullmatch(name) else ""
    return kind + name


def is_commit(text: str) -> bool:
    """Whether `text` is a whole commit hash."""
    return _SHA1.fullmatch(text) is not None


def file_name(tensor: str) -> str:
    """A tensor's name as a file name: no separator, no leading dot, no more than 180 bytes.

    >>> file_name("../../etc/passwd")
    '%2E.%2F..%2Fetc%2Fpasswd'
    """
    name = quote(tensor, safe="")
    if name.startswith("."):
        name = "%2E" + name[1:]
    return short_name(name)


def read_piece(blob: Path, start: int, stop: int) -> bytes | None:
    """Bytes [start, stop) as kept, or None."""
    try:
        kept = (blob / f"{start}-{stop}.bytes").read_bytes()
    except OSError:
        return None
    piece, crc = kept[:-4], kept[-4:]
    sound = len(piece) == stop - start and zlib.crc32(piece).to_bytes(4, "little") == crc
    return piece if sound else None


def keep_piece(blob: Path, start: int, piece: bytes) -> None:
    """Keep bytes of a file that start at `start`."""
    if len(piece) <= _PIECE:
        path = blob / f"{start}-{start + len(piece)}.bytes"
        crc = zlib.crc32(piece).to_bytes(4, "little")
        write_atomic(path, lambda file: file.writelines((piece, crc)))


def touch(path: Path) -> None:
    """Note that a kept file was used just now."""
    with suppress(OSError):
        os.utime(path)


def hub_folder(repo: str) -> Path:
    """Where huggingface_hub keeps a model; embtool reads there and never writes."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE) / ("models--" + repo.replace("/", "--"))


def hub_commit(repo: str, revision: str) -> str | None:
    """The commit that huggingface_hub noted for a revision."""
    if ".." in revision.split("/"):
        return None
    try:
        commit = (hub_folder(repo) / "refs" / revision).read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return None
    return commit if is_commit(commit) else None


def hub_path(repo: str, commit: str, name: str, fact: Fact | None) -> Path | None:
    """A whole file in huggingface_hub's cache: of this commit, or of another one's same content."""
    folder = hub_folder(repo)
    path = folder / "snapshots" / commit / name
    if path.is_file():
        return path
    if fact is not None and (_SHA256.fullmatch(fact.etag) or _SHA1.fullmatch(fact.etag)):
        blob = folder / "blobs" / fact.etag
        if blob.is_file() and blob.stat().st_size == fact.size:
            return blob
    return None


def hub_fact(path: Path) -> Fact | None:
    """What a file in huggingface_hub's cache is, by the name of the blob it links to."""
    target = path.resolve()
    if _SHA256.fullmatch(target.name) or _SHA1.fullmatch(target.name):
        return Fact(target.name, target.stat().st_size)
    return None


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    raw = json.dumps(value, indent=1, ensure_ascii=False).encode()
    write_atomic(path, lambda file: file.writelines((raw, b"\n")))
