"""Where a model's files are: the Hub, a folder, one file, or the offline model.

`open_source` reads DESIGN's MODEL grammar. Every source gives the same few things, so that
nothing above this floor knows where a byte comes from.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from embtool.errors import SourceError
from embtool.header import TensorInfo

#: Endings of files that can stand for a whole model: checkpoints, and classic word vectors.
FILE_ENDINGS = (
    *(".safetensors", ".gguf", ".bin", ".pth", ".pt"),
    *(".npy", ".npz", ".vec", ".txt", ".gz"),
)
_HUB_ID = r"(?P<repo>[\w.-]+(?:/[\w.-]+)?)(?:@(?P<revision>[^:@\s]+))?(?::(?P<file>[^:\s]+))?"

#: (bytes that are there, bytes in all): called while a table is fetched.
Progress = Callable[[int, int], None]


def silent(done: int, total: int) -> None:
    """The progress of who does not ask for it."""


class Source(Protocol):
    """Files of one model. Names are relative to its folder and use "/"."""

    ref: str  # as typed
    checkpoint: str | None  # the one file that MODEL names, if it names one

    @property
    def repo(self) -> str | None:
        """owner/name of a Hub model, else None."""

    @property
    def kind(self) -> str:
        """`hub`, `cache` (of the Hub, without a request), `folder`, `file` or `offline`."""

    @property
    def revision(self) -> str | None:
        """The commit of a Hub model, else None."""

    def names(self) -> list[str]:
        """Every file of the model."""

    def has(self, name: str) -> bool:
        """Whether the file exists."""

    def read(self, name: str) -> bytes:
        """A small file, whole."""

    def size(self, name: str) -> int:
        """Bytes of a file."""

    def bytes(self, name: str, start: int, stop: int) -> bytes:
        """Bytes [start, stop) of a file."""

    def path(self, name: str) -> Path | None:
        """The whole file on this machine, or None."""

    def key(self, name: str) -> str:
        """The identity of a file's content, for naming what is derived from it."""

    def total_params(self) -> int | None:
        """Parameters of the whole model as the Hub counts them, where it does."""

    def local(self, name: str, tensor: TensorInfo) -> tuple[Path, int] | None:
        """A file on this machine that holds the whole tensor, and where it starts there."""

    def fetch(self, name: str, tensor: TensorInfo, progress: Progress) -> tuple[Path, int]:
        """The same as `local`, after bringing the tensor here if it is not."""

    def shard(self, name: str, progress: Progress) -> Path:
        """The whole file, hashed against what the Hub publishes; fetched if it must be."""

    def verify(self, name: str, tensor: TensorInfo, progress: Progress) -> str:
        """The sha256 of a tensor, after its bytes were compared with those of the whole file."""

    def rows(
        self,
        name: str,
        tensor: TensorInfo,
        ids: Sequence[int],
        row_nbytes: int,
        progress: Progress = silent,
    ) -> NDArray[np.uint8]:
        """Stored rows of a tensor, (len(ids), row_nbytes); `progress` as in `fetch`."""


def open_source(ref: str, *, offline: bool = False) -> Source:
    """The source that `ref` names (DESIGN §1).

    An existing path wins over everything; what looks like a path and is not there is an
    error, never a request.

    Raises:
        SourceError: a path that does not exist, or a name that is none.
    """
    from embtool.source.local import open_local
    from embtool.source.offline import OFFLINE_MODEL, open_offline

    local = open_local(ref)
    if local is not None:
        return local
    if ref == OFFLINE_MODEL:
        return open_offline(ref)
    match = re.fullmatch(_HUB_ID, ref)
    if looks_like_path(ref) or match is None:
        raise SourceError(
            f"{ref}: there is no such file or folder",
            "give a path that exists, or a model of the Hub as owner/name[@revision][:file]",
        )
    from embtool.source.hub import open_hub

    return open_hub(ref, match["repo"], match["revision"], match["file"], offline=offline)


def repo_of(ref: str) -> str | None:
    """owner/name of a model of the Hub as MODEL names it, or None."""
    match = None if looks_like_path(ref) else re.fullmatch(_HUB_ID, ref)
    return match["repo"] if match else None


def looks_like_path(ref: str) -> bool:
    """Whether `ref` can only have been meant as a path: `./x`, `/x`, `~/x`, `x.gguf`."""
    return ref.startswith((".", "/", "~")) or (":" not in ref and ref.endswith(FILE_ENDINGS))
