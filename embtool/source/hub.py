"""A model on the Hub: its rows by byte ranges, its tables as slices, its shards if asked for.

A tensor's bytes are looked for in this order: the whole shard in huggingface_hub's cache, the
tensor's slice, the rows that were kept, and then the network.
"""

from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from threading import Event

import numpy as np
from numpy.typing import NDArray

from embtool.errors import SourceError
from embtool.header import TensorInfo
from embtool.source import Progress, cache, silent
from embtool.source.failures import About, in_words, not_writable
from embtool.source.files import HubFiles
from embtool.source.notes import note
from embtool.source.ranges import RemoteFile, Span, near, side_by_side
from embtool.source.rows import KeptRows
from embtool.source.shards import check_shard, sha256_of
from embtool.source.slices import fetch_slice, slice_start

#: Ranges that are always asked for one by one; and what one more is worth: while 8 workers wait
#: 130 ms each for an answer, this many bytes of a table arrive at 16 MB/s.
_MANY, _RANGE = 256, 256 << 10


def open_hub(
    ref: str,
    repo: str,
    revision: str | None = None,
    file: str | None = None,
    *,
    offline: bool = False,
) -> "HubSource":
    """A model of the Hub at `revision` (a branch, tag or commit; by default `main`).

    Makes no request. `file` is the one checkpoint that was named, if one was.

    Raises:
        SourceError: `repo` is no valid id.
    """
    from embtool.source.client import constants, validate_repo_id

    with in_words(About(repo, revision or "main", file or "")):
        validate_repo_id(repo)
    files = HubFiles(repo, revision or "main", offline=offline or constants.HF_HUB_OFFLINE)
    return HubSource(ref, files, file)


class HubSource:
    """One model of the Hub, at the commit that its revision is at the first use."""

    def __init__(self, ref: str, files: HubFiles, checkpoint: str | None) -> None:
        self.ref = ref
        self.repo = files.repo
        self.checkpoint = checkpoint
        self._files = files
        self._noted = False

    @property
    def kind(self) -> str:
        """`hub`, or `cache` where no request is made: offline, or with the Hub out of reach."""
        return "cache" if self._files.offline else "hub"

    @property
    def revision(self) -> str:
        """The commit."""
        return self._files.commit

    def names(self) -> list[str]:
        """Every file of the model."""
        return self._files.names()

    def has(self, name: str) -> bool:
        """Whether the file exists."""
        return self._files.has(name)

    def read(self, name: str) -> bytes:
        """A small file, whole; raises MissingFileError where there is none."""
        return self._files.read(name)

    def size(self, name: str) -> int:
        """Bytes of a file."""
        return self._files.fact(name).size

    def bytes(self, name: str, start: int, stop: int) -> bytes:
        """Bytes [start, stop) of a file, fewer only where it ends."""
        return self._files.bytes(name, start, stop)

    def path(self, name: str) -> Path | None:
        """The whole file in huggingface_hub's cache, or None."""
        return self._files.path(name)

    def key(self, name: str) -> str:
        """`sha256-...` as the Hub publishes it for a large file."""
        return cache.key_of(self._files.blob(name))

    def total_params(self) -> int | None:
        """Parameters of the whole model as the Hub counts them, or None."""
        return self._files.total_params()

    def local(self, name: str, tensor: TensorInfo) -> tuple[Path, int] | None:
        """The shard, or the tensor's slice, where one of them is on this machine."""
        path = self.path(name)
        if path is not None:
            return path, tensor.start
        path = self._slice(name, tensor)
        start = slice_start(path, tensor)
        if start is None:
            return None
        cache.touch(path)
        return path, start

    def fetch(self, name: str, tensor: TensorInfo, progress: Progress) -> tuple[Path, int]:
        """The same, after fetching the slice where neither is there.

        Raises:
            SourceError: it cannot be fetched or kept; what had arrived is not lost.
        """
        here = self.local(name, tensor)
        if here is None:
            if self._files.offline:
                raise self._files.not_cached(f"the table {tensor.name}")
            path, nbytes = self._slice(name, tensor), tensor.stop - tensor.start
            told = {"source": f"{self.repo}/{name}", "commit": self.revision}
            remote = self._files.remote(name)
            note(
                f"fetching {tensor.name} of {self.repo}: {nbytes:,} bytes; "
                f"the other {remote.nbytes - nbytes:,} bytes of {name} stay there"
            )
            fetch_slice(remote, path, tensor, told=told, progress=progress, note=note)
            path.with_suffix(".rows").unlink(missing_ok=True)
            here = self.local(name, tensor)
        if here is None:
            raise SourceError(f"{self.repo}: the slice of {tensor.name} is gone again", "run again")
        return here

    def rows(
        self,
        name: str,
        tensor: TensorInfo,
        ids: Sequence[int],
        row_nbytes: int,
        progress: Progress = silent,
    ) -> NDArray[np.uint8]:
        """Stored rows, (len(ids), row_nbytes); only those that were never read are asked for.

        Where they are so many and so scattered that the whole table is there sooner, it is
        fetched, and `progress` is called as `fetch` calls it.
        """
        here = self.local(name, tensor)
        if here is not None:
            return _rows_of(here, tensor, ids, row_nbytes)
        path = self._slice(name, tensor).with_suffix(".rows")
        kept = KeptRows(path, tensor.name, row_nbytes)
        found = kept.load(ids)
        missing = sorted(set(ids) - found.keys())
        cache.touch(path)
        if missing:
            if self._files.offline:
                more = f", with {len(missing) - 1} more," if len(missing) > 1 else ""
                raise self._files.not_cached(f"row {missing[0]} of {tensor.name}{more}")
            spans = _spans(tensor.start, missing, row_nbytes)
            if len(spans) > _MANY and len(spans) * _RANGE > tensor.stop - tensor.start:
                return _rows_of(self.fetch(name, tensor, progress), tensor, ids, row_nbytes)
            fresh = _ask_rows(self._files.remote(name), tensor.start, missing, row_nbytes, spans)
            found |= {row: np.frombuffer(stored, np.uint8) for row, stored in fresh.items()}
            try:
                kept.add(fresh)
            except OSError as error:
                if not self._noted:
                    note(not_writable(path.parent, error).message)
                self._noted = True
        rows = np.empty((len(ids), row_nbytes), np.uint8)
        for at, row in enumerate(ids):
            rows[at] = found[row]
        return rows

    def shard(self, name: str, progress: Progress) -> Path:
        """The whole file in huggingface_hub's cache, hashed against the published sha256."""
        published = self._files.fact(name).etag
        here = self.path(name)
        path = here or self._files.download(name, progress)
        about = About(self.repo, self.revision, name)
        note(f"comparing {name} with the sha256 that the Hub publishes for it")
        check_shard(path, published, about, fresh=here is None)
        return path

    def verify(self, name: str, tensor: TensorInfo, progress: Progress) -> str:
        """Check the whole shard, and the tensor's slice against it; returns the tensor's sha256.

        Raises:
            SourceError: a hash differs; a slice that does is removed.
        """
        nbytes = tensor.stop - tensor.start
        right = sha256_of(self.shard(name, progress), tensor.start, nbytes)
        path = self._slice(name, tensor)
        start = slice_start(path, tensor)
        if start is not None and sha256_of(path, start, nbytes) != right:
            path.unlink(missing_ok=True)
            raise SourceError(
                f"{self.repo}: the slice {path} does not hold the bytes of {tensor.name}",
                "it is removed; run the command again",
            )
        return right

    def _slice(self, name: str, tensor: TensorInfo) -> Path:
        return self._files.blob(name) / (cache.file_name(tensor.name) + ".safetensors")


def _rows_of(
    here: tuple[Path, int], tensor: TensorInfo, ids: Sequence[int], row_nbytes: int
) -> NDArray[np.uint8]:
    """Rows of a tensor that lies whole in a file of this machine."""
    stored = np.memmap(here[0], np.uint8, "r", here[1], (tensor.stop - tensor.start,))
    return np.asarray(stored.reshape(-1, row_nbytes)[list(ids)])


def _spans(start: int, rows: Sequence[int], row_nbytes: int) -> list[Span]:
    """The ranges that bring sorted rows of a tensor that starts at `start`; near rows share one."""
    return near([(start + row * row_nbytes, start + (row + 1) * row_nbytes) for row in rows])


def _ask_rows(
    remote: RemoteFile, start: int, rows: Sequence[int], row_nbytes: int, spans: Sequence[Span]
) -> dict[int, bytes]:
    """The stored bytes of each row, cut from those of the spans."""

    def bring(span: Span, halted: Event) -> bytes:
        return remote.read(*span, halted)

    stored = dict(side_by_side(bring, spans))
    firsts = [first for first, _ in spans]
    found = {}
    for row in rows:
        at = start + row * row_nbytes
        span = spans[bisect_right(firsts, at) - 1]
        found[row] = stored[span][at - span[0] : at - span[0] + row_nbytes]
    return found
