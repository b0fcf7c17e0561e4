"""Look inside the token-embedding tables of real language models.

    from embtool import Model
    Model.open("gemma-3-270m").table().rows([5237])
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from embtool.model import Model

__version__ = "0.1.0"
__all__ = ["Model", "__version__"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 -- the command line must not pay for numpy
    if name == "Model":
        from embtool.model import Model

        return Model
    raise AttributeError(f"module 'embtool' has no attribute {name!r}")
