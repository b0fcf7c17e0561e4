"""What the Hub's API tells of a commit: the names of its files, and its parameters."""

from typing import Any

from embtool.errors import SourceError
from embtool.source.cache import Fact
from embtool.source.failures import About, endpoint, no_hub
from embtool.source.wire import Wire

_PAGES = 1000


def ask_description(wire: Wire, about: About, commit: str, *, patient: bool) -> dict[str, Any]:
    """`total_params` (None: the Hub does not count them) and `names`; one request.

    Nothing where the API tells nothing: a mirror may serve files alone.
    """
    url = f"{endpoint()}/api/models/{about.repo}/revision/{commit}"
    try:
        value, _ = wire.api(f"{url}?expand=safetensors&expand=siblings", about, patient=patient)
        total = (value.get("safetensors") or {}).get("total")
        names = sorted(str(each["rfilename"]) for each in value.get("siblings") or ())
    except (SourceError, AttributeError, KeyError, TypeError):
        return {}
    count = total if isinstance(total, int) and total > 0 else None
    return {"total_params": count} | ({"names": names} if names else {})


def ask_files(wire: Wire, about: About, commit: str) -> dict[str, Fact | None]:
    """Every file of a commit, with its size and published hash; a request for each page."""
    found: dict[str, Fact | None] = {}
    url: str | None = f"{endpoint()}/api/models/{about.repo}/tree/{commit}?recursive=true"
    for _ in range(_PAGES):
        if url is None:
            break
        page, url = wire.api(url, about)
        try:
            found.update(_listed(entry) for entry in page if entry["type"] == "file")
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise no_hub(about) from error
    return found


def _listed(entry: dict[str, Any]) -> tuple[str, Fact]:
    """A file of the Hub's list: a large one has its sha256 under `lfs`."""
    large = entry.get("lfs") or {}
    etag, nbytes = large.get("oid") or entry["oid"], large.get("size", entry["size"])
    return str(entry["path"]), Fact(str(etag), int(nbytes))
