"""What a pickle of tensors may ask for, as plain records: nothing here is a function of torch.

The names are those that `torch.save` writes for tensors (torch/_utils.py, torch/_tensor.py and
torch/serialization.py of releases 0.4 to 2.13). Every other name is refused.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from embtool.errors import FormatError, UnsupportedError

AGAIN = "download or copy the file again"
SAFER = "look for a revision of the model with .safetensors files"


@dataclass(frozen=True, slots=True, eq=False)
class Global:
    """A name that a pickle asked for, "module name"; it stands for itself and is never imported."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Storage:
    """A run of `count` numbers; `dtype` is None where each tensor says its own (then bytes)."""

    dtype: str | None
    key: str
    count: int


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """A view of a storage: `first` and the strides count numbers, not bytes."""

    storage: Storage
    dtype: str
    first: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(slots=True, eq=False)
class Pairs:
    """A dictionary as the list of its pairs: no key of a pickle is hashed before it is known.

    `items` should be tuples or lists of two, and may be anything.
    """

    items: list[object] = field(default_factory=list)

    def pairs(self) -> Iterator[tuple[object, object]]:
        """The keys and values. Raises ValueError for an item that is no pair."""
        for item in self.items:
            if not isinstance(item, tuple | list) or len(item) != 2:
                raise ValueError("a dictionary of something else than pairs")
            yield item[0], item[1]


# torch's storage classes and dtypes, by the name of safetensors.
_STORAGES = {
    "Double": "F64",
    "Float": "F32",
    "Half": "F16",
    "BFloat16": "BF16",
    "Long": "I64",
    "Int": "I32",
    "Short": "I16",
    "Char": "I8",
    "Byte": "U8",
    "Bool": "BOOL",
    "ComplexFloat": "C64",
}
STORAGES: dict[str, str | None] = {
    f"{module} {name}Storage": dtype
    for module in ("torch", "torch.cuda")
    for name, dtype in _STORAGES.items()
} | {"torch.storage UntypedStorage": None}
_DTYPES = {
    "torch float64": "F64",
    "torch float32": "F32",
    "torch float16": "F16",
    "torch bfloat16": "BF16",
    "torch float8_e4m3fn": "F8_E4M3",
    "torch float8_e5m2": "F8_E5M2",
    "torch float8_e4m3fnuz": "F8_E4M3FNUZ",
    "torch float8_e5m2fnuz": "F8_E5M2FNUZ",
    "torch float8_e8m0fnu": "F8_E8M0",
    "torch int64": "I64",
    "torch int32": "I32",
    "torch int16": "I16",
    "torch int8": "I8",
    "torch uint64": "U64",
    "torch uint32": "U32",
    "torch uint16": "U16",
    "torch uint8": "U8",
    "torch bool": "BOOL",
    "torch complex64": "C64",
}
_MOST_SIDES = 64  # as in torch
# Types that stand as an argument beside a tensor, and are never called.
_TYPES = ("torch Tensor", "torch.nn.parameter Parameter")


def known(name: str, file: str) -> Global:
    """The stand-in for a global; UnsupportedError, with its name, where it rebuilds no tensor."""
    if name in _BUILDERS or name in STORAGES or name in _DTYPES or name in _TYPES:
        return Global(name)
    shown = ascii(name.replace(" ", "."))[:100]
    raise UnsupportedError(
        f"{file} is a pickle that asks for {shown}, which rebuilds no tensor; nothing was run",
        SAFER,
    )


def build(what: object, arguments: object, file: str) -> object:
    """What a call of a global would have made, as a record."""
    builder = _BUILDERS.get(what.name) if isinstance(what, Global) else None
    if builder is None or not isinstance(arguments, tuple):
        name = ascii(what.name.replace(" ", ".")) if isinstance(what, Global) else _kind(what)
        raise UnsupportedError(
            f"{file} is a pickle that calls {name[:100]}; nothing was run", SAFER
        )
    try:
        return builder(arguments)
    except (ValueError, IndexError) as error:
        raise FormatError(f"{file}: a tensor is described wrongly: {error}", AGAIN) from error


def stored(persistent_id: object, file: str) -> Storage:
    """The storage that a persistent id names: ("storage", class, key, device, count[, view])."""
    match persistent_id:
        case ("storage", Global(name=name), str(key), str(), int(count)) | (
            "storage",
            Global(name=name),
            str(key),
            str(),
            int(count),
            None,
        ) if name in STORAGES and 0 <= count < 1 << 60:
            return Storage(STORAGES[name], key, count)
    raise UnsupportedError(
        f"{file} refers to something outside of it that is no storage of numbers", SAFER
    )


def _kind(value: object) -> str:
    return f"a {type(value).__name__}"


def _tensor(arguments: Sequence[object]) -> Tensor:
    """_rebuild_tensor[_v2](storage, first, shape, strides, ...), with a dtype in _v3."""
    storage, first, shape, strides = arguments[:4]
    if not isinstance(storage, Storage):
        raise ValueError(f"its storage is {_kind(storage)}")
    sides, steps, [start] = _counts(shape), _counts(strides), _counts((first,))
    if len(sides) != len(steps):
        raise ValueError(f"{len(sides)} sides and {len(steps)} strides")
    dtype = storage.dtype
    if len(arguments) > 6 and isinstance(arguments[6], Global):
        dtype = _DTYPES.get(arguments[6].name)
    if dtype is None:
        raise ValueError("it has no dtype")
    return Tensor(storage, dtype, start, sides, steps)


def _counts(values: object) -> tuple[int, ...]:
    if not isinstance(values, tuple) or len(values) > _MOST_SIDES:
        raise ValueError("its shape or strides are no short tuple")
    if not all(type(value) is int and 0 <= value < 1 << 60 for value in values):
        raise ValueError("its offset, shape or strides are no whole numbers")
    return values


def _first_tensor(arguments: Sequence[object]) -> Tensor:
    """_rebuild_parameter(tensor, requires_grad, hooks[, state])."""
    if not isinstance(arguments[0], Tensor):
        raise ValueError(f"a parameter of {_kind(arguments[0])}")
    return arguments[0]


def _of_type(arguments: Sequence[object]) -> object:
    """_rebuild_from_type_v2(function, type, arguments, state): a tensor with attributes."""
    function, kind, inner = arguments[:3]
    builder = _REBUILD.get(function.name) if isinstance(function, Global) else None
    if builder is None or not isinstance(kind, Global) or kind.name not in _TYPES:
        raise ValueError("a tensor of a type that is not known")
    if not isinstance(inner, tuple):
        raise ValueError("a tensor without arguments")
    return builder(inner)


def _dictionary(arguments: Sequence[object]) -> Pairs:
    """OrderedDict(), or of a list of pairs, as Python 2 wrote it; the list itself is kept."""
    if not arguments:
        return Pairs()
    if not isinstance(arguments[0], list):
        raise ValueError(f"a dictionary of {_kind(arguments[0])}")
    return Pairs(arguments[0])


_REBUILD = {
    "torch._utils _rebuild_tensor": _tensor,
    "torch._utils _rebuild_tensor_v2": _tensor,
    "torch._utils _rebuild_tensor_v3": _tensor,
    "torch._utils _rebuild_parameter": _first_tensor,
    "torch._utils _rebuild_parameter_with_state": _first_tensor,
}
_BUILDERS: dict[str, Callable[[Sequence[object]], object]] = {
    **_REBUILD,
    "torch._tensor _rebuild_from_type_v2": _of_type,
    "collections OrderedDict": _dictionary,
}
