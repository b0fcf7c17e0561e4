"""Which file of a model is its checkpoint, and which others stand beside it.

The file or the quantization that MODEL names wins; then the index of shards; then
`model.safetensors`; then the only checkpoint there is, PyTorch's own files last. Files
at the top come before those in folders, and the parts of one checkpoint count as one.
"""

import re
from collections.abc import Iterable, Sequence

from embtool.errors import SourceError
from embtool.model.gguf_parts import first_part
from embtool.model.records import PICKLES
from embtool.source import Source

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
_LISTED = 4
# Pickles of weights; `training_args.bin`, `optimizer.pt` and the like are none.
_WEIGHTS = r"(.*/)?(pytorch_model|model|consolidated)\b[^/]*\.(bin|pth|pt|ckpt)"
_TORCH_INDEX = r"(.*/)?pytorch_model\.bin\.index(\.[\w-]+)?\.json"
_VARIANT = r".*\.safetensors\.index(\.[\w-]+)?\.json"
# Files that have no table: what projects pictures, and what weighs a quantization.
_BESIDE = r"(.*/)?(mmproj|imatrix)[^/]*"
# The number of a part: `-00001-of-00003`, `consolidated.00.pth`.
_NUMBER = r"(?<![0-9A-Za-z])\d+(?=-of-\d+\.|\.pth$)"


def choose_file(source: Source) -> str:
    """The checkpoint's file, or its index; of a GGUF in parts the first.

    Raises:
        SourceError: no checkpoint, or several of equal right.
    """
    if source.checkpoint is not None:
        return _named(source, source.checkpoint)
    for name in (INDEX, SINGLE):
        if source.has(name):
            return name
    names = source.names()
    top = [name for name in names if "/" not in name]
    deeper = [name for name in names if "/" in name]
    return _likeliest(source, top) or _likeliest(source, deeper) or _refuse(source, names)


def passed_over(source: Source, used: Iterable[str]) -> str | None:
    """A sentence that names the checkpoints beside the chosen one, or None.

    `used`: the files that the chosen one consists of. One that MODEL names has nothing beside it.
    """
    if source.checkpoint is not None:
        return None
    try:
        names = source.names()
    except SourceError:
        return None
    own = {_label(name) for name in used}
    others = [name for name in names if _is_checkpoint(name) and _label(name) not in own]
    labels = _grouped(others)
    if not labels:
        return None
    more = f" and {len(labels) - _LISTED} more" if len(labels) > _LISTED else ""
    listed = ", ".join(labels[:_LISTED])
    return f"other checkpoints passed over: {listed}{more}; MODEL:FILE chooses one"


def _named(source: Source, name: str) -> str:
    """What stands behind the colon of MODEL: a file, else a quantization's name."""
    if _is_checkpoint(name) or name.endswith((*PICKLES, ".json")) or source.has(name):
        return first_part(name)
    files = _ggufs(source.names())
    word = re.compile(rf"(?<![0-9A-Za-z_]){re.escape(name)}(?![0-9A-Za-z_])", re.IGNORECASE)
    holding = [file for file in files if name.lower() in file.lower()]
    found = [file for file in holding if word.search(file)] or holding
    if len(found) == 1:
        return found[0]
    if found:
        raise _several(source, found)
    there = ", ".join(files[:_LISTED]) or "none"
    raise SourceError(
        f"{source.ref}: there is no file {name}, and no .gguf with that in its name; "
        f"those there are: {there}",
        f"name a file: {_model(source)}:FILE",
    )


def _likeliest(source: Source, names: Sequence[str]) -> str | None:
    """The one checkpoint among these files, by the first kind that any of them is of."""
    indexes = [name for name in names if re.fullmatch(_VARIANT, name)]
    tensors = [name for name in names if name.endswith(".safetensors")]
    kinds = (
        [name for name in indexes if name.endswith(f"/{INDEX}")],
        [name for name in tensors if name.endswith(f"/{SINGLE}")],
        indexes,
        tensors,
        _ggufs(names),
        [name for name in names if re.fullmatch(_TORCH_INDEX, name)],
        [
            name
            for name in names
            if name.endswith("pytorch_model.bin") and re.fullmatch(_WEIGHTS, name)
        ],
        _pickles(names),
    )
    found = next((kind for kind in kinds if kind), [])
    if len(found) > 1 and len(set(map(_label, found))) == 1:
        raise SourceError(
            f"{source.ref}: {_grouped(found)[0]} are the parts of a checkpoint without an index",
            f"fetch its .index.json too, or name the part that holds the table: "
            f"{_model(source)}:{found[0]}",
        )
    if len(found) > 1:
        raise _several(source, found)
    return found[0] if found else None


def _refuse(source: Source, names: Sequence[str]) -> str:
    where = "no checkpoint of it is in the cache"
    if source.kind != "cache":
        where = "there is no checkpoint in it"
    raise SourceError(
        f"{source.ref}: {where} (.safetensors, .gguf or .bin)",
        _advice(source, names),
    )


def _advice(source: Source, names: Sequence[str]) -> str:
    """What to do without a checkpoint; a file under a name of its own may be one."""
    maybe = [name for name in names if name.endswith((*PICKLES, ".npy", ".npz", ".vec", ".vec.gz"))]
    if maybe:
        return f"name the file if it is one: {_model(source)}:{maybe[0]}"
    return "name a folder, a file or a model of the Hub that has one"


def _several(source: Source, found: Sequence[str]) -> SourceError:
    labels = _grouped(found)
    more = f" and {len(labels) - _LISTED} more" if len(labels) > _LISTED else ""
    return SourceError(
        f"{source.ref}: several checkpoints fit: {', '.join(labels[:_LISTED])}{more}",
        f"name one: {_model(source)}:{found[0]}",
    )


def _model(source: Source) -> str:
    """MODEL without what it names behind its colon."""
    return source.ref.removesuffix(f":{source.checkpoint}")


def _ggufs(names: Iterable[str]) -> list[str]:
    """GGUF files that can hold a table; one in parts is there once, by its first part."""
    ggufs = (name for name in names if name.endswith(".gguf") and not re.fullmatch(_BESIDE, name))
    return list(dict.fromkeys(map(first_part, ggufs)))


def _pickles(names: Iterable[str]) -> list[str]:
    """PyTorch's files of weights; of Meta's pieces the first stands for all."""
    weights = [name for name in names if re.fullmatch(_WEIGHTS, name)]
    pieces = [name for name in weights if name.endswith(".pth")]
    firsts = {_label(name): name for name in sorted(pieces, reverse=True)}
    return [name for name in weights if name not in pieces or firsts[_label(name)] == name]


def _is_checkpoint(name: str) -> bool:
    return (
        name.endswith((".safetensors", ".gguf"))
        or re.fullmatch(_VARIANT, name) is not None
        or re.fullmatch(_WEIGHTS, name) is not None
    )


def _label(name: str) -> str:
    """One name for all parts of a checkpoint: `model-*-of-00003.safetensors`."""
    return re.sub(_NUMBER, "*", name)


def _grouped(names: Iterable[str]) -> list[str]:
    """Each checkpoint once, with the number of its parts."""
    counts: dict[str, list[str]] = {}
    for name in names:
        counts.setdefault(_label(name), []).append(name)
    return [
        parts[0] if len(parts) == 1 else f"{label} ({len(parts)} files)"
        for label, parts in counts.items()
    ]
