"""Safetensors headers and the index of shards: parsed, and believed only where they add up.

The format (https://github.com/huggingface/safetensors#format): 8 bytes of a little-endian
length, a JSON object of that length, then the tensors' bytes, one after another without holes.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeGuard

from embtool.dtypes import block
from embtool.errors import FormatError, UnsupportedError

#: Bytes [start, stop) of a file.
Read = Callable[[int, int], bytes]

MAX_HEADER_NBYTES = 100_000_000
FIRST_READ_NBYTES = 64 << 10
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_AGAIN = "download or copy the file again"


class TensorInfo(NamedTuple):
    """Where a tensor lies: bytes [start, stop) of its file; shape has the rows first."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int


class Header(NamedTuple):
    """A safetensors header: its tensors, its `__metadata__`, and the bytes of the whole file."""

    tensors: dict[str, TensorInfo]
    metadata: dict[str, str]
    nbytes: int


class Index(NamedTuple):
    """An index of shards: tensor -> the shard that holds it, and what it says of the whole.

    A total is None where the index does not give it as a whole number.
    """

    weight_map: dict[str, str]
    total_size: int | None
    total_parameters: int | None


def read_header(read: Read, nbytes: int, file: str) -> Header:
    """Read and check the header of a safetensors file of `nbytes` bytes.

    `read` is called with at most the first 64 KiB, and once more for exactly the rest of a longer
    header. `file` names the file in messages. A tensor of an unknown dtype is listed as it is:
    only its size cannot be checked.

    Raises FormatError for anything that the format does not allow, for a file that is shorter or
    longer than its tensors, and for a Git LFS pointer.
    """
    first = read(0, min(nbytes, FIRST_READ_NBYTES))
    refuse_pointer(first, file)
    if nbytes < 8:
        raise FormatError(f"{file} has {nbytes} bytes, a safetensors file at least 8", _AGAIN)
    length = int.from_bytes(first[:8], "little")
    if length > MAX_HEADER_NBYTES:
        raise FormatError(
            f"{file}: its first 8 bytes call for a header of {length} bytes, "
            f"and the format allows {MAX_HEADER_NBYTES}",
            "this is no safetensors file, or a damaged one: " + _AGAIN,
        )
    data = 8 + length
    if data > nbytes:
        raise FormatError(
            f"{file} is truncated: its header ends at byte {data}, the file at {nbytes}", _AGAIN
        )
    raw = first[8:data]
    if len(raw) < length:
        raw += read(8 + len(raw), data)
    if len(raw) != length:
        raise FormatError(f"{file}: the header has {length} bytes, {len(raw)} came", _AGAIN)
    return _header(raw, data, nbytes, file)


def refuse_pointer(first: bytes, file: str) -> None:
    """Raise FormatError where the first bytes of a file are those of a Git LFS pointer."""
    if first.startswith(_LFS_POINTER):
        raise FormatError(
            f"{file} is a Git LFS pointer, not the file", "run `git lfs pull` where it was cloned"
        )


def parse_index(raw: bytes, file: str) -> Index:
    """Parse a `model.safetensors.index.json`.

    Raises FormatError where it is malformed, and where a shard's name could lead out of the
    folder that holds the index: an absolute path, `..`, a backslash, a drive or a URL.
    """
    index = _json_object(raw, file)
    weight_map = index.get("weight_map")
    if not isinstance(weight_map, dict):
        raise FormatError(f"{file} has no weight_map of tensors to shards", _AGAIN)
    for shard in {shard if isinstance(shard, str) else None for shard in weight_map.values()}:
        _check_shard(shard, file)
    metadata = index.get("metadata")
    if not isinstance(metadata, dict):
        metadata = {}
    total_size, total_parameters = metadata.get("total_size"), metadata.get("total_parameters")
    return Index(weight_map, _whole(total_size), _whole(total_parameters))


def find_in_fragment(fragment: bytes, names: Iterable[str]) -> dict[str, str]:
    """The shards of some tensors, as far as they stand in a piece of an index.

    The piece may begin and end anywhere, also within an entry or a character: an entry counts
    where it is there whole, from the sign before its name to the sign after its shard. A name
    that is not in the answer may still be in the rest of the index.

    Raises FormatError for a shard's name as `parse_index` does.
    """
    spellings = {
        json.dumps(name, ensure_ascii=ascii_only).encode(): name
        for name in names
        for ascii_only in (True, False)
    }
    if not spellings:
        return {}
    # JSON escapes every quote within a string, so these signs cannot be the inside of one.
    pattern = rb'[{,]\s*(%s)\s*:\s*("(?:[^"\\]|\\.)*")(?=\s*[,}])'
    found = {}
    for entry in re.finditer(pattern % b"|".join(map(re.escape, spellings)), fragment, re.DOTALL):
        try:
            shard = json.loads(entry[2])
        except ValueError as error:
            raise FormatError(f"the index is malformed: {error}", _AGAIN) from error
        _check_shard(shard, "the index")
        found[spellings[entry[1]]] = shard
    return found


def _header(raw: bytes, data: int, nbytes: int, file: str) -> Header:
    """The header in `raw`, whose tensors' bytes begin at byte `data` of `nbytes`."""
    if not raw.startswith(b"{"):
        raise FormatError(f"{file}: its header is no JSON object", _AGAIN)
    entries = _json_object(raw, file)
    metadata = entries.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(type(v) is str for v in metadata.values()):
        raise FormatError(f"{file}: __metadata__ is no map of strings to strings", _AGAIN)
    tensors = {name: _tensor(name, entry, data, file) for name, entry in entries.items()}
    end = data
    for info in sorted(tensors.values(), key=lambda info: (info.start, info.stop)):
        if info.start != end:
            fault = "a hole before" if info.start > end else "an overlap at"
            raise FormatError(
                f"{file}: {fault} the tensor {shown(info.name)}: it begins at byte "
                f"{info.start}, the one before ends at {end}",
                _AGAIN,
            )
        end = info.stop
    if end != nbytes:
        fault = "is truncated" if end > nbytes else "is longer than its tensors"
        raise FormatError(
            f"{file} {fault}: its header describes {end} bytes, the file has {nbytes}", _AGAIN
        )
    return Header(tensors, metadata, nbytes)


def _tensor(name: str, entry: object, data: int, file: str) -> TensorInfo:
    """An entry of the header, checked by itself."""
    what = f"{file}: the tensor {shown(name)}"
    if not isinstance(entry, dict):
        raise FormatError(f"{what} is described by no JSON object", _AGAIN)
    dtype, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    if not isinstance(dtype, str):
        raise FormatError(f"{what} has no dtype", _AGAIN)
    if not _counts(shape):
        raise FormatError(f"{what} has no shape of whole numbers", _AGAIN)
    if not _counts(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise FormatError(f"{what} has no pair of ascending data_offsets", _AGAIN)
    start, stop = offsets
    expected = _nbytes(dtype, shape)
    if expected is not None and expected != stop - start:
        raise FormatError(
            f"{what} has {stop - start} bytes, but {dtype} {shape} takes {expected}", _AGAIN
        )
    return TensorInfo(name, dtype, tuple(shape), data + start, data + stop)


def _nbytes(dtype: str, shape: list[int]) -> int | float | None:
    """The bytes of a tensor; None if the dtype is unknown, a fraction if they are not whole."""
    try:
        elements, nbytes = block(dtype)
    except UnsupportedError:
        return None
    count = 0 if 0 in shape else 1
    for dim in shape:
        count *= dim
        if count >> 80:  # beyond any file; without this a hostile shape costs minutes
            break
    whole, rest = divmod(count * nbytes, elements)
    return whole if not rest else count * nbytes / elements


def _counts(values: object) -> TypeGuard[list[int]]:
    """Whether it is a list of integers from 0 to 2^63 - 1; JSON's `true` is none."""
    return isinstance(values, list) and all(type(v) is int and 0 <= v < 1 << 63 for v in values)


def _json_object(raw: bytes, file: str) -> dict[str, Any]:
    try:
        value = json.loads(
            raw.decode("utf-8"), object_pairs_hook=_distinct, parse_constant=_no_number
        )
    except RecursionError:
        raise FormatError(f"{file}: its JSON is nested too deeply", _AGAIN) from None
    except ValueError as error:
        raise FormatError(f"{file}: its JSON is malformed: {error}", _AGAIN) from error
    if not isinstance(value, dict):
        raise FormatError(f"{file} holds no JSON object", _AGAIN)
    return value


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        [(twice, _)] = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"the key {shown(twice)} stands twice")
    return entries


def _no_number(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _check_shard(shard: object, file: str) -> None:
    parts = shard.split("/") if isinstance(shard, str) else []
    hostile = not isinstance(shard, str) or re.search(r"[\\:\x00-\x1f]", shard)
    if hostile or not all(parts) or not {".", ".."}.isdisjoint(parts):
        raise FormatError(
            f"{file}: {shown(shard)} is no name of a shard in its folder",
            "do not use this model: its index points elsewhere",
        )


def _whole(value: object) -> int | None:
    """A count that some tools write as 1.0e9."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and value >= 0 else None


def shown(name: object) -> str:
    """A name that a file holds, safe to print: quoted, escaped and of bounded length."""
    text = repr(name)
    return text if len(text) <= 120 else text[:100] + "..."
