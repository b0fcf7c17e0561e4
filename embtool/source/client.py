"""What is used of huggingface_hub's client. It costs 0.2 s: import it where it is used."""

from huggingface_hub import constants, errors
from huggingface_hub.utils import (  # type: ignore[attr-defined]
    WeakFileLock,
    build_hf_headers,
    get_session,
    hf_raise_for_status,
    httpx,
    validate_repo_id,
)

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
