"""A folder laid out like a Hub repository, or a single file in one."""

import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from embtool.errors import SourceError
from embtool.header import TensorInfo
from embtool.source import Progress, silent


class LocalSource:
    """The files below one folder; nothing outside it is ever opened by a name from a file."""

    def __init__(self, ref: str, kind: str, folder: Path, checkpoint: str | None) -> None:
        self.ref = ref
        self.checkpoint = checkpoint
        self._kind = kind
        self._folder = folder

    @property
    def repo(self) -> str | None:
        """A folder is no repository of the Hub."""
        return None

    @property
    def kind(self) -> str:
        """`folder`, `file`, or `offline` for the model of the extra `gemma`."""
        return self._kind

    @property
    def revision(self) -> str | None:
        """A folder has no commit."""
        return None

    def names(self) -> list[str]:
        """Files of the folder and of its subfolders, hidden ones left out."""
        found = (path.relative_to(self._folder) for path in self._folder.rglob("*"))
        visible = (path for path in found if not any(p.startswith(".") for p in path.parts))
        return sorted(p.as_posix() for p in visible if (self._folder / p).is_file())

    def has(self, name: str) -> bool:
        """Whether the file exists."""
        return self._inside(name).is_file()

    def read(self, name: str) -> bytes:
        """A small file, whole."""
        try:
            return self._inside(name).read_bytes()
        except OSError as error:
            raise self._unreadable(name, error) from error

    def size(self, name: str) -> int:
        """Bytes of a file."""
        try:
            return self._inside(name).stat().st_size
        except OSError as error:
            raise self._unreadable(name, error) from error

    def bytes(self, name: str, start: int, stop: int) -> bytes:
        """Bytes [start, stop) of a file; fewer only where the file ends."""
        try:
            with self._inside(name).open("rb") as file:
                file.seek(start)
                return file.read(stop - start)
        except OSError as error:
            raise self._unreadable(name, error) from error

    def path(self, name: str) -> Path:
        """Where the file is."""
        return self._inside(name)

    def key(self, name: str) -> str:
        """From real path, bytes, mtime and inode: another file in its place is another key."""
        path = self._inside(name).resolve()
        status = path.stat()
        # In clear, all but the path: hashlib would take longer to import than a small file to read.
        parts = (zlib.crc32(bytes(path)), status.st_ino, status.st_size, status.st_mtime_ns)
        return "-".join(["local", *(f"{part:x}" for part in parts)])

    def total_params(self) -> int | None:
        """Nobody has counted a folder."""
        return None

    def local(self, name: str, tensor: TensorInfo) -> tuple[Path, int] | None:
        """The file itself."""
        return self._inside(name), tensor.start

    def fetch(self, name: str, tensor: TensorInfo, progress: Progress) -> tuple[Path, int]:
        """The file itself; there is nothing to bring."""
        return self._inside(name), tensor.start

    def shard(self, name: str, progress: Progress) -> Path:
        """The file itself; nobody has published a hash of it."""
        raise self._no_hub()

    def verify(self, name: str, tensor: TensorInfo, progress: Progress) -> str:
        """There is nothing to compare with."""
        raise self._no_hub()

    def rows(
        self,
        name: str,
        tensor: TensorInfo,
        ids: Sequence[int],
        row_nbytes: int,
        progress: Progress = silent,
    ) -> NDArray[np.uint8]:
        """Stored rows, (len(ids), row_nbytes)."""
        stored = np.memmap(self._inside(name), np.uint8, "r", tensor.start)
        # A file that was cut short ends within a row.
        whole = min(len(stored), tensor.stop - tensor.start) // row_nbytes * row_nbytes
        return np.asarray(stored[:whole].reshape(-1, row_nbytes)[list(ids)])

    def _no_hub(self) -> SourceError:
        return SourceError(
            f"{self.ref}: is on this machine; there is no published shard to fetch or compare",
            "leave out --shard and --verify, or name a model of the Hub",
        )

    def _inside(self, name: str) -> Path:
        path = self._folder / name
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise SourceError(
                f"{self.ref}: the file name {name!r} leaves the model's folder",
                "do not trust this model; its index was made by hand",
            )
        return path

    def _unreadable(self, name: str, error: OSError) -> SourceError:
        return SourceError(
            f"{self.ref}: {name} cannot be read: {error.strerror or error}",
            "check the path and its permissions",
        )


def open_local(ref: str) -> LocalSource | None:
    """A source for an existing path (`FOLDER`, `FILE` or `FOLDER:FILE`), else None."""
    path = Path(ref).expanduser()
    if path.is_dir():
        return LocalSource(ref, "folder", path, None)
    if path.is_file():
        return LocalSource(ref, "file", path.parent, path.name)
    folder, colon, file = ref.rpartition(":")
    if not colon or not Path(folder).expanduser().is_dir():
        return None
    source = LocalSource(ref, "file", Path(folder).expanduser(), file)
    # `FOLDER:Q4_K_M` names a quantization, which is no file.
    if not source.has(file) and ("." in file or "/" in file):
        raise SourceError(f"{folder}: there is no file {file} in it", f"see `ls {folder}`")
    return source
