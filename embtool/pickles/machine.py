"""A pickle's stack machine without its two dangerous parts: it imports nothing and calls nothing.

`pickletools` of the standard library knows the operations and reads their arguments; this machine
carries out the few that data is made of. A global becomes a record of its name if it is one that
rebuilds tensors, and ends the reading if not; a call becomes the record of a tensor. The
operations of protocol 0, which take text apart, and all that make objects are refused by name.
"""

import io
import pickletools
from collections.abc import Callable
from typing import Any, Final

from embtool.errors import FormatError, UnsupportedError
from embtool.pickles.standins import AGAIN, SAFER, Pairs, Storage, build, known, stored

_MARK: Final = object()
_OPERATIONS = {op.code.encode("latin-1"): op for op in pickletools.opcodes}
# Refused operations whose argument names what they are after.
_TELLING = ("EXT1", "EXT2", "EXT4")


class Machine:
    """Reads pickles; `storages` are those they referred to, by key."""

    def __init__(self, file: str) -> None:
        self.storages: dict[str, Storage] = {}
        self._file = file
        self._stack: list[object] = []
        self._memo: dict[int, object] = {}

    def run(self, stream: io.BytesIO) -> object:
        """The value of the pickle that begins where the stream is, which is left behind it.

        Raises UnsupportedError, with its name, for what is refused; FormatError for a pickle that
        is malformed or ends too early.
        """
        self._stack, self._memo = [], {}
        try:
            while (code := stream.read(1)) != b".":
                if code not in _STEPS:
                    self._refuse(code, stream)
                step, argument = _STEPS[code]
                step(self, argument(stream) if argument else None)
            [value] = self._stack
        except (ValueError, IndexError, KeyError, OverflowError) as error:
            raise FormatError(f"{self._file}: its pickle is malformed: {error}", AGAIN) from error
        if value is _MARK:
            raise FormatError(f"{self._file}: its pickle is malformed: a mark is left", AGAIN)
        return value

    def _refuse(self, code: bytes, stream: io.BytesIO) -> None:
        """Raise for an operation that is not let pass, with what it is after where it tells."""
        operation = _OPERATIONS.get(code)
        if operation is None:
            raise ValueError(f"no operation {code!r}" if code else "it ends before its end")
        asked = ""
        if operation.name == "INST":
            asked = f" {ascii(_two_lines(stream).replace(' ', '.'))[:80]}"
        elif operation.arg is not None and operation.name in _TELLING:
            asked = f" {operation.arg.reader(stream)}"
        raise self._refused(f"{operation.name}{asked}")

    def _refused(self, operation: str) -> UnsupportedError:
        return UnsupportedError(
            f"{self._file} is a pickle with the operation {operation}, which no tensor needs; "
            "nothing was run",
            SAFER,
        )

    def _pop(self) -> object:
        value = self._stack.pop()
        if value is _MARK:
            raise ValueError("a mark where a value should be")
        return value

    def _top(self) -> object:
        if self._stack[-1] is _MARK:
            raise ValueError("a mark where a value should be")
        return self._stack[-1]

    def _since_mark(self) -> list[object]:
        items: list[object] = []
        while (value := self._stack.pop()) is not _MARK:
            items.append(value)
        items.reverse()
        return items

    def _push(self, value: object) -> None:
        self._stack.append(value)

    def _put(self, place: object) -> None:
        self._memo[_number(place)] = self._top()

    def _get(self, place: object) -> None:
        self._stack.append(self._memo[_number(place)])

    def _memoize(self, _: object) -> None:
        self._memo[len(self._memo)] = self._top()

    def _tuple(self, _: object) -> None:
        self._stack.append(tuple(self._since_mark()))

    def _short_tuple(self, count: int) -> None:
        items = tuple(self._stack[-count:])
        if len(items) < count or any(item is _MARK for item in items):
            raise ValueError("a mark where a value should be")
        self._stack[-count:] = [items]

    def _list(self, _: object) -> None:
        self._stack.append(self._since_mark())

    def _append(self, _: object) -> None:
        self._extend([self._pop()])

    def _appends(self, _: object) -> None:
        self._extend(self._since_mark())

    def _extend(self, items: list[object]) -> None:
        target = self._top()
        if not isinstance(target, list):
            raise ValueError(f"items for a {type(target).__name__}")
        target.extend(items)

    def _dict(self, _: object) -> None:
        items = self._since_mark()
        self._stack.append(Pairs())
        self._set(items)

    def _setitem(self, _: object) -> None:
        value, key = self._pop(), self._pop()
        self._set([key, value])

    def _setitems(self, _: object) -> None:
        self._set(self._since_mark())

    def _set(self, items: list[object]) -> None:
        target = self._top()
        if not isinstance(target, Pairs) or len(items) % 2:
            raise ValueError(f"{len(items)} keys and values for a {type(target).__name__}")
        target.items.extend(zip(items[::2], items[1::2], strict=True))

    def _global(self, name: object) -> None:
        self._stack.append(known(str(name), self._file))

    def _stack_global(self, _: object) -> None:
        name, module = self._pop(), self._pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise ValueError("a global whose name is no text")
        self._stack.append(known(f"{module} {name}", self._file))

    def _persistent(self, _: object) -> None:
        storage = stored(self._pop(), self._file)
        before = self.storages.setdefault(storage.key, storage)
        if (before.dtype, before.count) != (storage.dtype, storage.count):
            raise ValueError(f"the storage {storage.key[:40]!r} is described twice, differently")
        self._stack.append(before)

    def _reduce(self, _: object) -> None:
        arguments, what = self._pop(), self._pop()
        self._stack.append(build(what, arguments, self._file))

    def _build(self, _: object) -> None:
        """The `_metadata` of a state dict, an attribute that says nothing of its tensors."""
        self._pop()
        if not isinstance(self._top(), Pairs):
            raise self._refused(f"BUILD on a {type(self._top()).__name__}")

    def _nothing(self, _: object) -> None:
        """PROTO and FRAME change nothing."""


def _number(place: object) -> int:
    if not isinstance(place, int):
        raise ValueError("a memo without a number")
    return place


def _two_lines(stream: io.BytesIO) -> str:
    """A global's module and name; `pickletools` would see escapes in them, where there are none."""
    module, name = stream.readline(), stream.readline()
    if not name.endswith(b"\n"):
        raise ValueError("it ends before its end")
    return f"{module[:-1].decode()} {name[:-1].decode()}"


_Step = Callable[[Machine, Any], None]
_BY_NAME: dict[str, _Step] = {
    **dict.fromkeys(("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"), Machine._push),
    **dict.fromkeys(("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"), Machine._push),
    **dict.fromkeys(("BINSTRING", "SHORT_BINSTRING"), Machine._push),
    **dict.fromkeys(("BINBYTES", "SHORT_BINBYTES", "BINBYTES8"), Machine._push),
    "NONE": lambda machine, _: machine._push(None),
    "NEWTRUE": lambda machine, _: machine._push(True),
    "NEWFALSE": lambda machine, _: machine._push(False),
    "EMPTY_DICT": lambda machine, _: machine._push(Pairs()),
    "EMPTY_LIST": lambda machine, _: machine._push([]),
    "EMPTY_SET": lambda machine, _: machine._push([]),
    "EMPTY_TUPLE": lambda machine, _: machine._push(()),
    "MARK": lambda machine, _: machine._push(_MARK),
    "TUPLE1": lambda machine, _: machine._short_tuple(1),
    "TUPLE2": lambda machine, _: machine._short_tuple(2),
    "TUPLE3": lambda machine, _: machine._short_tuple(3),
    "TUPLE": Machine._tuple,
    "LIST": Machine._list,
    "FROZENSET": Machine._list,
    "DICT": Machine._dict,
    "APPEND": Machine._append,
    "APPENDS": Machine._appends,
    "ADDITEMS": Machine._appends,
    "SETITEM": Machine._setitem,
    "SETITEMS": Machine._setitems,
    "BINPUT": Machine._put,
    "LONG_BINPUT": Machine._put,
    "MEMOIZE": Machine._memoize,
    "BINGET": Machine._get,
    "LONG_BINGET": Machine._get,
    "STACK_GLOBAL": Machine._stack_global,
    "BINPERSID": Machine._persistent,
    "REDUCE": Machine._reduce,
    "BUILD": Machine._build,
    "PROTO": Machine._nothing,
    "FRAME": Machine._nothing,
}
# Code of an operation -> what carries it out, and what reads its argument.
_STEPS = {
    code: (_BY_NAME[op.name], op.arg.reader if op.arg else None)
    for code, op in _OPERATIONS.items()
    if op.name in _BY_NAME
} | {b"c": (Machine._global, _two_lines)}
