"""The file format of `torch.save` before release 1.6: pickles in a row, then the storages.

Source: torch/serialization.py, _legacy_save. Five pickles: a magic number, the protocol 1001, a
dictionary about the machine, the object, and the list of the storages' keys. Then, in the order
of that list, each storage: its count of numbers in 8 bytes, and the numbers.
"""

import io
from collections.abc import Callable

from embtool import dtypes
from embtool.errors import FormatError, UnsupportedError
from embtool.header import Read
from embtool.pickles.machine import Machine
from embtool.pickles.standins import AGAIN, SAFER, Pairs, Storage

MAGIC = 0x1950_A86A_20F9_469C_FC6C
#: How the magic number's own pickle begins, after two bytes of protocol.
START = b"\x8a\x0a" + MAGIC.to_bytes(10, "little") + b"."
LARGEST_PICKLE = 4 << 20  # thousands of tensors take some hundred kB
_WINDOW = 64 << 10
_PROTOCOL = 1001
_MOST_ENTRIES = 16  # about the machine; torch writes three

#: Where a storage's bytes are, (start, stop), by its key.
Locate = Callable[[str], tuple[int, int]]


def read_legacy(read: Read, nbytes: int, file: str) -> tuple[object, Locate]:
    """The object that was saved, and where its storages are.

    Reads as much as the pickles take, in growing pieces; a storage's count is checked when it is
    asked for. Raises as `Machine.run` does.
    """
    machine, values, data = _pickles(read, nbytes, file)
    magic, protocol, about, root, keys = values
    if magic != MAGIC or protocol != _PROTOCOL:
        raise FormatError(
            f"{file} is no file of torch: its protocol is {str(protocol)[:20]}", AGAIN
        )
    entries = about.items if isinstance(about, Pairs) else []
    if ("little_endian", True) not in entries[:_MOST_ENTRIES]:
        raise UnsupportedError(f"{file} was written on a big-endian machine", SAFER)
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise FormatError(f"{file} has no list of its storages", AGAIN)
    if sorted(keys) != sorted(machine.storages):
        raise FormatError(
            f"{file} lists {len(keys)} storages, its object uses {len(machine.storages)}", AGAIN
        )
    starts: dict[str, int] = {}
    for key in keys:
        starts[key] = data
        data += 8 + storage_nbytes(machine.storages[key])
    if data > nbytes:
        raise FormatError(f"{file} is truncated: it should have {data} bytes, not {nbytes}", AGAIN)

    def locate(key: str) -> tuple[int, int]:
        storage, start = machine.storages[key], starts[key]
        count = int.from_bytes(read(start, start + 8), "little")
        if count != storage.count:
            raise FormatError(
                f"{file}: the storage at byte {start} has {count} numbers, not {storage.count}",
                AGAIN,
            )
        return start + 8, start + 8 + storage_nbytes(storage)

    return root, locate


def storage_nbytes(storage: Storage) -> int:
    """The bytes of a storage."""
    return storage.count * (dtypes.block(storage.dtype)[1] if storage.dtype else 1)


def _pickles(read: Read, nbytes: int, file: str) -> tuple[Machine, list[object], int]:
    """The machine that read the five pickles, their values, and where they end."""
    window = _WINDOW
    while True:
        stream = io.BytesIO(read(0, min(window, nbytes)))
        machine = Machine(file)
        try:
            values = [machine.run(stream) for _ in range(5)]
            return machine, values, stream.tell()
        except FormatError:
            if window >= min(nbytes, LARGEST_PICKLE):
                raise
            window *= 4
