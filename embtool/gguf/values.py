"""The values of a GGUF header, taken one after another out of a buffer."""

import struct
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from embtool.errors import FormatError

AGAIN = "download or copy the file again"

# The numbers of the metadata's types (enum gguf_type in gguf.h).
_NUMBERS = {
    0: "u1",
    1: "i1",
    2: "<u2",
    3: "<i2",
    4: "<u4",
    5: "<i4",
    6: "<f4",
    10: "<u8",
    11: "<i8",
    12: "<f8",
}
_BOOL, _STRING, _ARRAY = 7, 8, 9
_MAX_NESTING = 4
_LENGTH = struct.Struct("<Q").unpack_from


class NeedMore(FormatError):
    """The buffer is the beginning of a longer file, and its header goes on beyond it.

    need: how many bytes from the file's start are needed next, more than the buffer has and at
    most the file's bytes. The whole header may need more still, so read on in growing steps.
    """

    def __init__(self, file: str, need: int) -> None:
        super().__init__(f"{file}: its header needs {need} bytes at least", AGAIN)
        self.need = need


class Strings:
    """An array of strings, each given as bytes: a token need not be valid UTF-8.

    They are taken out of the buffer each time they are gone through.
    """

    __slots__ = ("_count", "_view")

    def __init__(self, view: memoryview, count: int) -> None:
        self._view = view
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[bytes]:
        raw = bytes(self._view)
        at = 0
        for _ in range(self._count):
            start = at + 8
            at = start + _LENGTH(raw, at)[0]
            yield raw[start:at]


class Cursor:
    """Takes one value after another from the buffer, never beyond its end."""

    def __init__(self, view: memoryview, file: str, nbytes: int | None) -> None:
        self.view = view
        self.file = file
        self.nbytes = len(view) if nbytes is None else nbytes
        self.at = 0

    def take(self, count: int) -> int:
        """Step over `count` bytes, and return where they begin."""
        start, self.at = self.at, self.at + count
        if self.at > len(self.view):
            self.run_out(self.at)
        return start

    def run_out(self, need: int) -> NoReturn:
        """Raise for a value that ends at byte `need`: NeedMore or FormatError."""
        if need <= self.nbytes:
            raise NeedMore(self.file, need)
        raise FormatError(
            f"{self.file} is truncated or damaged: it has {self.nbytes} bytes, and its header "
            f"goes on for {need - self.nbytes} at least",
            AGAIN,
        )

    def numbers(self, dtype: str, count: int) -> NDArray[Any]:
        """Take numbers as an array over the buffer itself, (count,)."""
        start = self.take(count * np.dtype(dtype).itemsize)
        return np.frombuffer(self.view, dtype, count, start)

    def number(self, dtype: str) -> Any:  # noqa: ANN401 -- int or float, as the dtype says
        """Take one number."""
        return self.numbers(dtype, 1)[0].item()

    def text(self) -> str:
        """Take a string; bytes that are no UTF-8 are escaped as `\\xff`."""
        length = self.number("<u8")
        start = self.take(length)
        return str(self.view[start : start + length], "utf-8", "backslashreplace")

    def value(self, kind: int) -> Any:  # noqa: ANN401 -- one of the types that Gguf lists
        """Take a value of the metadata, of the type with this number."""
        if kind == _STRING:
            return self.text()
        if kind == _ARRAY:
            return self.array(_MAX_NESTING)
        return self.plain(kind, 1)[0].item()

    def array(self, nesting: int) -> NDArray[Any] | Strings | list[Any]:
        """Take an array, of arrays at most `nesting` deep."""
        kind, count = self.number("<u4"), self.number("<u8")
        if kind == _STRING:
            return self.strings(count)
        if kind != _ARRAY:
            return self.plain(kind, count)
        if nesting == 0:
            raise FormatError(f"{self.file}: its metadata is nested too deeply", AGAIN)
        if count * 12 > self.nbytes - self.at:
            self.run_out(self.at + count * 12)
        return [self.array(nesting - 1) for _ in range(count)]

    def plain(self, kind: int, count: int) -> NDArray[Any]:
        """Take numbers or booleans, (count,)."""
        dtype = "u1" if kind == _BOOL else _NUMBERS.get(kind)
        if dtype is None:
            raise FormatError(
                f"{self.file}: its metadata has a value of the unknown type {kind} before byte "
                f"{self.at}",
                AGAIN,
            )
        values = self.numbers(dtype, count)
        if kind != _BOOL:
            return values
        if (values > 1).any():
            raise FormatError(f"{self.file}: a boolean is neither 0 nor 1", AGAIN)
        return values.view(np.bool_)

    def strings(self, count: int) -> Strings:
        """Step over strings: only the length of each says where the next begins."""
        view, start = self.view, self.at
        if count * 8 > self.nbytes - start:
            self.run_out(start + count * 8)
        at = start
        left = iter(range(count, 0, -1))
        try:
            for _ in left:
                at += 8 + _LENGTH(view, at)[0]
        except (struct.error, OverflowError):
            self.run_out(at + 8 * (1 + next(left, 0)))
        self.at = start
        self.take(at - start)
        return Strings(view[start:at], count)
