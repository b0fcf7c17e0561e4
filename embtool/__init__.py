"""Look inside the token-embedding tables of real language models.

from embtool import Model, neighbors
neighbors(Model.open("gemma-3-270m"), "国王")
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from embtool.api import (
        Candidates,
        Choices,
        Model,
        analogy,
        lookup,
        neighbors,
        similarity,
    )

__version__ = "0.1.0"
__all__ = [
    "Candidates",
    "Choices",
    "Model",
    "__version__",
    "analogy",
    "lookup",
    "neighbors",
    "similarity",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 -- the command line must not pay for numpy
    if name in __all__:
        from embtool import api

        return getattr(api, name)
    raise AttributeError(f"module 'embtool' has no attribute {name!r}")
