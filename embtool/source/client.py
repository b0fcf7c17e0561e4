"""What is used of huggingface_hub's client. It costs 0.2 s: import it where it is used."""

from huggingface_hub import constants, errors
from huggingface_hub.utils import (  # type: ignore[attr-defined]
    WeakFileLock,
    build_hf_headers,
    get_session,
    hf_raise_for_status,
    validate_repo_id,
)

try:
    from huggingface_hub.utils import httpx  # type: ignore[attr-defined]
except ImportError:  # huggingface_hub 1.x spoke through httpx by its own name.
    import httpx  # type: ignore[import-not-found,no-redef]

__all__ = [
    "WeakFileLock",
    "build_hf_headers",
    "constants",
    "errors",
    "get_session",
    "hf_raise_for_status",
    "httpx",
    "validate_repo_id",
]
