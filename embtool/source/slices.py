"""One tensor of a shard, fetched in parallel ranges into a safetensors file of its own.

While it is fetched it is `<name>.part`, the final file but for the sha256 in its header, with
`<name>.part.log`: a line of JSON that says what is fetched, then `index etag crc32` for each
range that is whole in the part. A range is logged after it is written and believed after its
crc is checked, so that neither a kill nor a power cut lets a hole pass for zeros.
"""

import errno
import hashlib
import json
import os
import re
import shutil
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType

from embtool.header import TensorInfo
from embtool.source import Progress
from embtool.source.failures import not_writable
from embtool.source.ranges import STEP, RemoteFile, Span, side_by_side

_LOGGED = re.compile(r"(?P<index>\d+) (?P<etag>.*) (?P<crc>[0-9a-f]{8})")
_ALIGNED = 64
_HEADER = 1 << 20
#: dtypes of the safetensors format; a packed one of another format is stored as plain bytes.
_SAFETENSORS = ("F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2", "F8_E8M0", "I8", "U8")


def slice_start(path: Path, tensor: TensorInfo) -> int | None:
    """Where the tensor's bytes start in the slice `path`; None if it is not (all) there."""
    metadata, start = _read_slice(path)
    ours = metadata.get("tensor") == tensor.name and metadata.get("range") == _range(tensor)
    if not ours or path.stat().st_size != start + tensor.stop - tensor.start:
        return None
    return start


def slice_metadata(path: Path) -> dict[str, str]:
    """`source`, `commit`, `tensor`, `dtype`, `range`, `sha256` of a slice; empty if it is none."""
    return _read_slice(path)[0]


def _read_slice(path: Path) -> tuple[dict[str, str], int]:
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            metadata = json.loads(file.read(min(length, _HEADER)))["__metadata__"]
        return dict(metadata), 8 + int(length)
    except (OSError, struct.error, ValueError, KeyError, TypeError):
        return {}, 0


def fetch_slice(
    remote: RemoteFile,
    path: Path,
    tensor: TensorInfo,
    *,
    told: dict[str, str],
    progress: Progress,
    note: Callable[[str], None],
) -> None:
    """Bring a tensor to `path`; a part that a killed run left is finished, not begun again.

    `told` goes into the slice's metadata. A second process that wants the same tensor waits.

    Raises:
        SourceError: the ranges cannot be read, or the cache cannot be written; what had been
            fetched stays.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with alone(path, note):
            if slice_start(path, tensor) is None:
                with _Part(path, tensor, told) as part:
                    _fill(part, remote, tensor, progress)
                    part.finish()
    except OSError as error:
        raise not_writable(path.parent, error) from error


@contextmanager
def alone(path: Path, note: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock for `path`; a wait for another process is told."""
    from embtool.source.client import WeakFileLock

    lock = path.with_name(path.name + ".lock")
    with ExitStack() as held:
        try:
            held.enter_context(WeakFileLock(lock, timeout=0.5))
        except TimeoutError:
            note(f"another process fetches {path.name}; waiting for it")
            held.enter_context(WeakFileLock(lock))
        yield


def _fill(part: "_Part", remote: RemoteFile, tensor: TensorInfo, progress: Progress) -> None:
    total = tensor.stop - tensor.start
    spans = [
        (first, min(first + STEP, tensor.stop)) for first in range(tensor.start, tensor.stop, STEP)
    ]

    def bring(span: Span, halted: threading.Event) -> None:
        stored = remote.read(*span, halted, partial(count.come, span))
        part.put(spans.index(span), span, stored, json.dumps(remote.cdn_etag))

    whole = part.whole(spans)
    count = _Count(progress, total)
    missing = [span for index, span in enumerate(spans) if index not in whole]
    if whole and missing:
        bring(missing.pop(0), threading.Event())
        if json.dumps(remote.cdn_etag) != part.etag:
            # What an earlier run fetched may be of another object: none of it is kept.
            part.forget()
            missing = spans
    count.begin(total - sum(stop - start for start, stop in missing))
    for _ in side_by_side(bring, missing):
        pass


class _Count:
    """Bytes that are there, counted while the ranges of many workers arrive."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress = progress
        self._total = total
        self._done = 0
        self._come: dict[Span, int] | None = None
        self._lock = threading.Lock()

    def begin(self, done: int) -> None:
        """Count from here on; `done` bytes were there before."""
        self._done, self._come = done, {}
        self._progress(done, self._total)

    def come(self, span: Span, nbytes: int) -> None:
        """So many bytes of a range have come; what another try brings again is not counted."""
        with self._lock:
            if self._come is None:
                return
            more = nbytes - self._come.get(span, 0)
            if more > 0:
                self._come[span] = nbytes
                self._done += more
                self._progress(self._done, self._total)


class _Part:
    """A slice on its way: the file with room for all of it, and the log of what is in it."""

    def __init__(self, path: Path, tensor: TensorInfo, told: dict[str, str]) -> None:
        self.etag: str | None = None
        self._path = path
        self._tensor = tensor
        self._told = told
        self._part = path.with_name(path.name + ".part")
        self._log = path.with_name(path.name + ".part.log")
        self._lock = threading.Lock()
        self._start = len(self._header("0" * 64))
        self._plan = json.dumps(
            {"tensor": tensor.name, "range": _range(tensor), "start": self._start, "step": STEP}
        )

    def __enter__(self) -> "_Part":
        lines = self._lines()
        if not self._part.is_file() or not lines or lines[0] != self._plan:
            self._log.unlink(missing_ok=True)
            self._part.unlink(missing_ok=True)
        fresh = not self._part.is_file()
        self._file = os.open(self._part, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _make_room(self._part, self._file, self._start + self._tensor.stop - self._tensor.start)
        except OSError:
            os.close(self._file)
            if fresh:
                self._part.unlink(missing_ok=True)
            raise
        # After a line that a kill cut short, the next one begins a line of its own.
        self._append(self._plan if fresh else "")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._file)

    def whole(self, spans: list[Span]) -> set[int]:
        """The ranges that are in the part, each checked against its crc."""
        found: set[int] = set()
        for line in self._lines()[1:]:
            logged = _LOGGED.fullmatch(line)
            if logged is None or int(logged["index"]) >= len(spans):
                continue
            start, stop = spans[int(logged["index"])]
            stored = os.pread(self._file, stop - start, self._at(start))
            if f"{zlib.crc32(stored):08x}" == logged["crc"]:
                found.add(int(logged["index"]))
                self.etag = logged["etag"]
        return found

    def put(self, index: int, span: Span, stored: bytes, etag: str) -> None:
        """Write one range and log it."""
        view, at = memoryview(stored), self._at(span[0])
        while view:
            written = os.pwrite(self._file, view, at)
            view, at = view[written:], at + written
        self._append(f"{index} {etag} {zlib.crc32(stored):08x}")

    def forget(self) -> None:
        """Begin the log again."""
        self._log.unlink()
        self._append(self._plan)

    def finish(self) -> None:
        """Give the whole part its sha256 and its name."""
        digest, at = hashlib.sha256(), self._start
        while block := os.pread(self._file, STEP, at):
            digest.update(block)
            at += len(block)
        os.pwrite(self._file, self._header(digest.hexdigest()), 0)
        os.fsync(self._file)
        self._part.replace(self._path)
        _sync_folder(self._path.parent)
        self._log.unlink(missing_ok=True)

    def _at(self, position: int) -> int:
        return self._start + position - self._tensor.start

    def _lines(self) -> list[str]:
        """Whole lines of the log: one that a kill cut short has no end."""
        try:
            return self._log.read_text(encoding="utf-8").split("\n")[:-1]
        except (OSError, ValueError):
            return []

    def _append(self, line: str) -> None:
        with self._lock, self._log.open("ab") as log:
            log.write(line.encode() + b"\n")

    def _header(self, sha256: str) -> bytes:
        tensor = self._tensor
        nbytes = tensor.stop - tensor.start
        known = tensor.dtype in _SAFETENSORS
        header = {
            "__metadata__": {
                **self._told,
                "tensor": tensor.name,
                "dtype": tensor.dtype,
                "range": _range(tensor),
                "sha256": sha256,
            },
            tensor.name: {
                "dtype": tensor.dtype if known else "U8",
                "shape": list(tensor.shape) if known else [nbytes],
                "data_offsets": [0, nbytes],
            },
        }
        raw = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
        raw += b" " * (-(len(raw) + 8) % _ALIGNED)
        return struct.pack("<Q", len(raw)) + raw


def _range(tensor: TensorInfo) -> str:
    return f"{tensor.start}-{tensor.stop}"


def _make_room(part: Path, file: int, nbytes: int) -> None:
    """Blocks on the disk for all of it, so that a full one shows before the first request."""
    try:
        os.posix_fallocate(file, 0, nbytes)
    except (AttributeError, OSError) as error:
        unsupported = {errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS, None}
        if getattr(error, "errno", None) not in unsupported:
            raise
        if shutil.disk_usage(part.parent).free < nbytes - os.fstat(file).st_size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
        os.truncate(file, nbytes)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
