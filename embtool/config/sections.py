"""The objects of a config that speak of its text model, and values out of them."""

import re
from collections.abc import Iterator, Mapping, Sequence

Section = tuple[str, Mapping[str, object]]
"""A dotted path ("" for the top) and the object that stands there."""

VOCAB = ("vocab_size", "padded_vocab_size", "n_vocab", "src_vocab_size", "input_vocab_size")
WIDTH = ("hidden_size", "d_model", "n_embd", "n_embed", "dim", "embed_dim", "emb_dim")

TEXT = r"(^|_)(text|language|llm|thinker)"
OTHER = r"vision|visual|audio|image|speech|video|talker|codec|quant|rope|projector"
DEPTH = 4
LARGEST = 2**40


def text_sections(obj: Mapping[str, object]) -> list[Section]:
    """Where a claim may stand, the likeliest first: the text model's own object, then the top.

    Where none of these has a size, the first object of another name that has both comes first.
    """
    found = list(_sections("", obj, 0))
    if any(key in section for _, section in found for key in VOCAB + WIDTH):
        return found
    return _elsewhere(obj) + found


def _sections(path: str, obj: Mapping[str, object], depth: int) -> Iterator[Section]:
    """The text model's objects, the deepest first, then the object that holds them."""
    if depth < DEPTH:
        for key, child in obj.items():
            if isinstance(child, Mapping) and _is_text(key):
                yield from _sections(f"{path}.{key}" if path else key, child, depth + 1)
    yield path, obj


def _is_text(key: str) -> bool:
    """Whether a key names a text model's section; no key that could upset a line of output."""
    return key.isidentifier() and bool(re.search(TEXT, key)) and not re.search(OTHER, key)


def home(sections: Sequence[Section]) -> str:
    """The path of the first section that has one of the sizes."""
    for path, section in sections:
        if any(section.get(key) is not None for key in VOCAB + WIDTH):
            return path
    return ""


def _elsewhere(obj: Mapping[str, object]) -> list[Section]:
    """The first object below the top that has both sizes, under whatever name (Bark, Dia)."""
    for key, child in obj.items():
        if isinstance(child, Mapping) and not re.search(OTHER, key):
            for path, section in _sections(key, child, 1):
                if any(k in section for k in VOCAB) and any(k in section for k in WIDTH):
                    return [(path, section)]
    return []


def first(
    sections: Sequence[Section], keys: Sequence[str], notes: list[str], name: str, smallest: int = 1
) -> int | None:
    """The first of `keys`, in the order of the sections, that holds a usable integer."""
    for path, section in sections:
        for key in keys:
            value = section.get(key)
            if value is None:
                continue
            if type(value) is int and smallest <= value <= LARGEST:
                return value
            notes.append(f"{name}: {dotted(path, key)} is {shown(value)}, not a usable number")
    return None


def text(sections: Sequence[Section], keys: Sequence[str]) -> str | None:
    """The first of `keys`, in the order of the sections, that holds a text."""
    for _, section in sections:
        for key in keys:
            value = section.get(key)
            if isinstance(value, str) and value:
                return value
    return None


def dotted(path: str, key: str) -> str:
    """The path of a key for a message: `text_config.vocab_size`."""
    return f"{path}.{key}" if path else key


def shown(value: object) -> str:
    """A short form of a value for a message."""
    if isinstance(value, int) and abs(value) > LARGEST:
        return "past 2**40"
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    return repr(value[:40]) if isinstance(value, str) else repr(value)
