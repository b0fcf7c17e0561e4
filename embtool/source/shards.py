"""Whole shards: huggingface_hub brings them and checks their size, embtool their sha256."""

import hashlib
import inspect
import re
from pathlib import Path
from typing import Any

from embtool import __version__
from embtool.errors import SourceError
from embtool.source import Progress
from embtool.source.failures import About

_BLOCK = 8 << 20


def download(repo: str, name: str, commit: str, progress: Progress | None) -> Path:
    """`hf_hub_download` without its progress bar; its own errors pass."""
    from huggingface_hub import hf_hub_download

    # Its first releases with this client could not be told which bar to draw.
    known = "tqdm_class" in inspect.signature(hf_hub_download).parameters
    drawn = {"tqdm_class": _bar(progress)} if known else {}
    return Path(
        hf_hub_download(
            repo,
            name,
            revision=commit,
            library_name="embtool",
            library_version=__version__,
            **drawn,
        )
    )


def check_shard(path: Path, published: str, about: About, *, fresh: bool) -> None:
    """Compare the sha256 of a file with the one that the Hub publishes for it.

    A file that fails is removed if this run downloaded it (`fresh`), else left to its owner.

    Raises:
        SourceError: they differ, or none is published.
    """
    if not re.fullmatch("[0-9a-f]{64}", published):
        raise SourceError(
            f"{about.repo}: the Hub publishes no sha256 for {about.file}, only {published}",
            "use it without a check: embtool download --shard, without --verify",
        )
    found = sha256_of(path, 0, path.stat().st_size)
    if found != published:
        if fresh:
            path.resolve().unlink(missing_ok=True)
            path.unlink(missing_ok=True)
        raise SourceError(
            f"{about.repo}: {about.file} has sha256 {found}, and the Hub publishes {published}",
            "run the command again" if fresh else f"delete {path.resolve()} and run it again",
        )


def sha256_of(path: Path, start: int, nbytes: int) -> str:
    """The sha256 of `nbytes` bytes of a file from `start` on, in hex."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        file.seek(start)
        while nbytes > 0 and (block := file.read(min(_BLOCK, nbytes))):
            digest.update(block)
            nbytes -= len(block)
    return digest.hexdigest()


def _bar(progress: Progress | None) -> Any:  # noqa: ANN401 -- a class that is made at run time
    """A class that huggingface_hub takes for its progress bar, and that draws nothing."""
    from huggingface_hub.utils import tqdm  # type: ignore[attr-defined]

    class Bar(tqdm):
        def __init__(self, *args: object, **options: object) -> None:
            options["disable"] = True
            super().__init__(*args, **options)  # type: ignore[no-untyped-call]

        def update(self, n: float | None = 1) -> None:
            self.n += n or 0
            if progress is not None:
                progress(int(self.n), int(self.total or 0))

        def update_transfer(self, n: float) -> None:
            """Bytes on the wire, which a deduplicating store counts beside those of the file."""

        def set_transfer_postfix_str(self, *args: object, **options: object) -> None:
            """Their rate."""

    return Bar
