"""PyTorch's own files, `.bin`, `.pt` and `.pth`, read without running what is in them.

    read_pickle(read, nbytes, file) -> Pickled
    Pickled.header() -> Header, as of a safetensors file

Since release 1.6 such a file is a zip archive (torch/csrc/jit/serialization, and torch/
serialization.py): `NAME/data.pkl`, a pickle of the object in which a tensor is a call with a
reference to its storage, and `NAME/data/KEY`, a storage's bytes, uncompressed and aligned to 64.
`legacy` is the format before that. The pickle goes through a machine that imports and calls
nothing; see `machine` and `standins` for what it lets pass.
"""

import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import prod

from embtool import dtypes
from embtool.errors import FormatError, UnsupportedError
from embtool.header import Header, Read, TensorInfo, refuse_pointer, shown
from embtool.pickles.archive import read_archive
from embtool.pickles.flatten import flatten
from embtool.pickles.legacy import LARGEST_PICKLE, START, Locate, read_legacy, storage_nbytes
from embtool.pickles.machine import Machine
from embtool.pickles.standins import AGAIN, SAFER, Storage, Tensor

__all__ = ["Pickled", "read_pickle"]


@dataclass(slots=True)
class Pickled:
    """The tensors of a file: name -> (dtype, shape).

    `left_out` are those whose numbers do not lie row by row, and why; they are in `shapes` too.
    """

    file: str
    nbytes: int
    shapes: dict[str, tuple[str, tuple[int, ...]]]
    left_out: dict[str, str]
    _tensors: dict[str, Tensor] = field(repr=False)
    _locate: Locate = field(repr=False)
    _located: dict[str, tuple[int, int]] = field(default_factory=dict, repr=False)

    def header(self, names: Iterable[str] | None = None) -> Header:
        """Where tensors lie: those named, or all but the ones left out.

        Each storage costs one small read, of what stands before it.

        Raises UnsupportedError for a tensor that is left out, FormatError where a storage is not
        there or is too short.
        """
        wanted = [n for n in self.shapes if n not in self.left_out] if names is None else names
        return Header({name: self._place(name) for name in wanted}, {}, self.nbytes)

    def _place(self, name: str) -> TensorInfo:
        if name in self.left_out:
            raise UnsupportedError(
                f"{self.file}: {shown(name)} {self.left_out[name]}", "save it contiguously"
            )
        tensor = self._tensors[name]
        key = tensor.storage.key
        if key not in self._located:
            self._located[key] = self._locate(key)
        first, last = self._located[key]
        size = dtypes.block(tensor.dtype)[1]
        start = first + size * tensor.first
        stop = start + size * prod(tensor.shape)
        if stop > last:
            raise FormatError(
                f"{self.file}: {shown(name)} needs {stop - first} bytes of a storage that has "
                f"{last - first}",
                AGAIN,
            )
        return TensorInfo(name, tensor.dtype, tensor.shape, start, stop)


def read_pickle(read: Read, nbytes: int, file: str) -> Pickled:
    """Read the description of the tensors in a file of `nbytes` bytes that torch wrote.

    Nothing of it is run. Raises UnsupportedError, with its name, for anything but plain tensors
    in dictionaries and lists; FormatError for a malformed or truncated file.
    """
    first = read(0, min(nbytes, 64))
    refuse_pointer(first, file)
    if first.startswith(b"PK\x03\x04"):
        root, locate = _read_zip(read, nbytes, file)
    elif first.startswith(b"\x80") and START in first:
        root, locate = read_legacy(read, nbytes, file)
    else:
        raise UnsupportedError(
            f"{file} is no file that torch saved: it begins with {first[:8]!r}",
            "give a .bin or .pth file of PyTorch, or a .safetensors or .gguf file",
        )
    tensors = flatten(root, file)
    if not tensors:
        raise FormatError(f"{file} holds no tensor", "give the file that holds the model's tensors")
    shapes = {name: (tensor.dtype, tensor.shape) for name, tensor in tensors.items()}
    left_out = {name: why for name, tensor in tensors.items() if (why := _scattered(tensor))}
    return Pickled(file, nbytes, shapes, left_out, tensors, locate)


def _read_zip(read: Read, nbytes: int, file: str) -> tuple[object, Locate]:
    archive = read_archive(read, nbytes, file)
    pickles = [name for name in archive.members if name.count("/") == 1]
    pickles = [name for name in pickles if name.endswith("/data.pkl")]
    if len(pickles) != 1:
        raise FormatError(
            f"{file} is a zip file with {len(pickles)} members NAME/data.pkl, torch writes one",
            "give a .bin or .pth file of PyTorch",
        )
    folder = pickles[0].removesuffix("data.pkl")
    if archive.members[pickles[0]].size > LARGEST_PICKLE:
        raise UnsupportedError(
            f"{file}: its pickle has {archive.members[pickles[0]].size} bytes, at most "
            f"{LARGEST_PICKLE} are read",
            SAFER,
        )
    order = f"{folder}byteorder"
    if order in archive.members and read(*archive.place(read, order)) != b"little":
        raise UnsupportedError(f"{file} was written on a big-endian machine", SAFER)
    machine = Machine(file)
    root = machine.run(io.BytesIO(read(*archive.place(read, pickles[0]))))
    return root, _members(lambda name: archive.place(read, f"{folder}data/{name}"), machine, file)


def _members(place: Locate, machine: Machine, file: str) -> Callable[[str], tuple[int, int]]:
    def locate(key: str) -> tuple[int, int]:
        start, stop = place(key)
        storage: Storage = machine.storages[key]
        if stop - start < storage_nbytes(storage):
            raise FormatError(
                f"{file}: the storage {shown(key)} has {stop - start} bytes, "
                f"{storage_nbytes(storage)} are needed",
                AGAIN,
            )
        return start, stop

    return locate


def _scattered(tensor: Tensor) -> str | None:
    """Why a tensor's numbers are not in the order of its shape, or None."""
    step = 1
    for side, stride in zip(reversed(tensor.shape), reversed(tensor.strides), strict=True):
        if side == 0:
            return None
        if side > 1 and stride != step:
            return f"{list(tensor.shape)} is a view with strides {list(tensor.strides)}"
        step *= side
    return None
