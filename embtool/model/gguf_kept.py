"""A GGUF header without its vocabulary, kept in the cache: the tensors and the short values.

Finding one table takes a walk over every token's length otherwise, a third of a short answer.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from embtool.header import TensorInfo
from embtool.source import Source
from embtool.source.derived import derived, write_atomic

if TYPE_CHECKING:
    from embtool.gguf import Gguf

_NAME = "gguf-header-1.json"


class _Metadata(Mapping[str, Any]):
    """Short values at hand; the first look at an array parses the file."""

    def __init__(
        self, short: dict[str, Any], names: list[str], parse: "Callable[[], Gguf]"
    ) -> None:
        self._short = short
        self._names = dict.fromkeys(names)
        self._parse = parse
        self._whole: Mapping[str, Any] | None = None

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 -- whatever a file says
        if name in self._short:
            return self._short[name]
        if name not in self._names:
            raise KeyError(name)
        if self._whole is None:
            self._whole = self._parse().metadata
        return self._whole[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def kept_header(source: Source, file: str, parse: "Callable[[], Gguf]") -> "Gguf":
    """What `parse` gives, from the cache where it has been parsed before."""
    from embtool.gguf import Gguf

    path = derived(source.key(file), _NAME)
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        tensors = {name: TensorInfo(name, dtype, tuple(shape), start, stop)
                   for name, dtype, shape, start, stop in kept["tensors"]}  # fmt: skip
        metadata = _Metadata(kept["short"], kept["names"], parse)
        return Gguf(kept["version"], metadata, tensors, kept["nbytes"])
    except (OSError, ValueError, KeyError, TypeError):
        gguf = parse()
    scalars = (bool, int, float, str)
    kept = {
        "version": gguf.version,
        "short": {k: v for k, v in gguf.metadata.items() if isinstance(v, scalars)},
        "names": list(gguf.metadata),
        "tensors": [(t.name, t.dtype, t.shape, t.start, t.stop) for t in gguf.tensors.values()],
        "nbytes": gguf.nbytes,
    }
    raw = json.dumps(kept, ensure_ascii=False).encode("utf-8", "surrogatepass")
    write_atomic(path, lambda stream: stream.writelines([raw]))
    return gguf
