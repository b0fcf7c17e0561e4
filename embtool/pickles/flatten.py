"""The tensors of a saved object by name: a state dict, whatever it is wrapped in."""

from collections.abc import Iterator

from embtool.errors import FormatError
from embtool.header import shown
from embtool.pickles.standins import AGAIN, Pairs, Tensor

# What training scripts call the model's part of a checkpoint, the likeliest first.
_WRAPPERS = ("state_dict", "model_state_dict", "model", "module", "net", "weights", "params")
_DEEPEST = 16
_LONGEST = 1000  # characters of a name
_MOST = 200_000  # tensors of a file


def flatten(root: object, file: str) -> dict[str, Tensor]:
    """Name -> tensor, in the file's order.

    A dictionary that holds no tensor itself but a state dict under one of the usual names is
    taken for that state dict, so that an optimizer's copies of the table are left out. Elsewhere
    a nested tensor's name is the keys that lead to it, joined by dots. A tensor alone is
    "tensor". Each dictionary is looked into once, by whatever path it is found first.

    Raises FormatError where two tensors have one name, and where names or nesting are beyond use.
    """
    if isinstance(root, Tensor):
        return {"tensor": root}
    try:
        return _walk(_inner(root))
    except ValueError as error:
        raise FormatError(f"{file} holds no state dict of a model: {error}", AGAIN) from error


def _walk(root: object) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    seen = {id(root)}
    waiting = [("", root, 0)]
    while waiting:
        path, holder, depth = waiting.pop()
        nested = []
        for name, value in _children(path, holder):
            if isinstance(value, Tensor):
                if found.setdefault(name, value) is not value:
                    raise ValueError(f"two tensors are called {shown(name)}")
            elif isinstance(value, Pairs | list | tuple) and id(value) not in seen:
                seen.add(id(value))
                nested.append((name, value, depth + 1))
        if len(found) > _MOST or (nested and depth == _DEEPEST):
            raise ValueError(f"more than {_MOST} tensors, or nested deeper than {_DEEPEST}")
        waiting += reversed(nested)
    return found


def _inner(root: object) -> object:
    if not isinstance(root, Pairs) or _has_tensors(root):
        return root
    entries = {key: value for key, value in root.pairs() if isinstance(key, str)}
    for name in _WRAPPERS:
        if _has_tensors(entries.get(name)):
            return entries[name]
    return root


def _has_tensors(value: object) -> bool:
    return isinstance(value, Pairs) and any(isinstance(item, Tensor) for _, item in value.pairs())


def _children(path: str, holder: object) -> Iterator[tuple[str, object]]:
    """What a dictionary (the last value of each key), a list or a tuple holds, by full name."""
    last: dict[str, object] = {}
    pairs = holder.pairs() if isinstance(holder, Pairs) else _numbered(holder)
    for place, (key, value) in enumerate(pairs):
        name = str(key) if isinstance(key, str) or type(key) is int else f"[{place}]"
        last[name] = value
    for name, value in last.items():
        if len(path) + len(name) > _LONGEST:
            raise ValueError(f"a name of {len(path) + len(name)} characters")
        yield f"{path}.{name}" if path else name, value


def _numbered(holder: object) -> Iterator[tuple[object, object]]:
    return enumerate(holder) if isinstance(holder, list | tuple) else iter(())
