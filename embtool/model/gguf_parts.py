"""A GGUF checkpoint: one file, or parts that llama.cpp split it into, here or on the Hub.

A part is named `PREFIX-00001-of-00003.gguf`; the first holds the metadata, and each the header of
its own tensors. Keys of the metadata: `split.no`, `split.count`
(https://github.com/ggml-org/llama.cpp/tree/master/tools/gguf-split).
"""

import mmap
import re
from pathlib import Path
from typing import TYPE_CHECKING

from embtool.errors import FormatError, SourceError
from embtool.header import TensorInfo
from embtool.model.gguf_kept import kept_header
from embtool.model.records import Checkpoint
from embtool.source import Source

if TYPE_CHECKING:
    from embtool.gguf import Gguf

_PART = r"(?P<prefix>.+)-(?P<number>\d{5,})-of-(?P<count>\d{5,})\.gguf"
_MOST = 9999
# A header from the Hub is read in growing steps: most are short, one with a vocabulary has 5 to
# 10 MB, and less than the last step is read in vain.
_FIRST, _LAST = 64 << 10, 2 << 20


def first_part(name: str) -> str:
    """The file that stands for the whole: the first part of a split file, else the file itself."""
    return part_names(name)[0]


def part_names(name: str) -> list[str]:
    """All parts of the file that `name` is a part of; the file alone where it is not split.

    >>> part_names("big-00002-of-00002.gguf")
    ['big-00001-of-00002.gguf', 'big-00002-of-00002.gguf']
    """
    part = re.fullmatch(_PART, name) if "-of-" in name else None
    if part is None or not 1 <= int(part["count"]) <= _MOST:
        return [name]
    digits, count = len(part["count"]), int(part["count"])
    return [
        f"{part['prefix']}-{number:0{digits}}-of-{part['count']}.gguf"
        for number in range(1, count + 1)
    ]


def open_gguf(source: Source, file: str) -> Checkpoint:
    """The headers of all parts. A part that is not there, or cut short, is noted.

    Raises:
        SourceError: the first part is not there.
        FormatError: a header is malformed, or two parts hold the same tensor.
    """
    names = part_names(file)
    if len(names) > 1 and not source.has(names[0]):
        raise SourceError(
            f"{source.ref}: the first part, {names[0]}, is not there, and it holds the metadata",
            "put all parts into one folder",
        )
    first = _parse(source, names[0])
    checkpoint = Checkpoint(names[0], metadata=first.metadata)
    _check_count(source, names, first)
    for name in names:
        if name != names[0] and not source.has(name):
            checkpoint.complete = False
            checkpoint.note(f"{name} is not there, one of {len(names)} parts")
            continue
        gguf = first if name == names[0] else _parse(source, name)
        _add(source, checkpoint, name, gguf.tensors)
        if gguf.missing:
            checkpoint.note(
                f"{name} is cut short: it has {gguf.nbytes:,} bytes, and {gguf.missing:,} more "
                "are missing"
            )
    return checkpoint


def _check_count(source: Source, names: list[str], first: "Gguf") -> None:
    """A file that was renamed hides its other parts."""
    count = first.metadata.get("split.count", 0)
    if isinstance(count, int) and count > 1 and count != len(names):
        raise FormatError(
            f"{source.ref}: {names[0]} is one of {count} parts, its name says {len(names)}",
            f"name the parts as they were: NAME-00001-of-{count:05}.gguf",
        )


def _add(source: Source, checkpoint: Checkpoint, file: str, tensors: dict[str, TensorInfo]) -> None:
    for name, info in tensors.items():
        if name in checkpoint.files:
            raise FormatError(
                f"{source.ref}: {checkpoint.files[name]} and {file} both hold {name}",
                "download the parts again",
            )
        checkpoint.tensors[name] = info
        checkpoint.files[name] = file


def _parse(source: Source, file: str) -> "Gguf":
    from embtool.gguf import NeedMore, parse

    path = source.path(file)
    if path is not None:
        return kept_header(source, file, lambda: _parse_here(source, file, path))
    nbytes, head, step = source.size(file), b"", _FIRST
    while True:
        stop = min(nbytes, len(head) + step)
        head += source.bytes(file, len(head), stop)
        try:
            return parse(head, file, nbytes)
        except NeedMore as short:
            step = max(min(3 * len(head), _LAST), short.need - len(head))


def _parse_here(source: Source, file: str, path: Path) -> "Gguf":
    from embtool.gguf import parse

    try:
        with path.open("rb") as stream:
            buffer = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise SourceError(
            f"{source.ref}: {file} cannot be read: {error}", "check the path"
        ) from error
    return parse(buffer, file, len(buffer))
