"""Requests to the Hub over huggingface_hub's own session: patience, redirects and the token.

The session brings proxies, certificates and `HF_HUB_OFFLINE`. The token is sent to the endpoint
and to no other origin.
"""

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urljoin, urlsplit

from embtool import __version__
from embtool.errors import SourceError
from embtool.source.failures import (
    About,
    bad_proxy,
    endpoint,
    in_words,
    no_hub,
    unreachable,
)

if TYPE_CHECKING:
    from embtool.source.client import httpx

T = TypeVar("T")
Note = Callable[[str], None]

_TRIES = 5
_BUSY = frozenset({408, 429, 500, 502, 503, 504})
_REDIRECTS = 8
#: Seconds. A wait from which the user is told; a wait beyond the Hub's window of limits.
_LONG_WAIT, _TOO_LONG = 5, 600
#: Seconds to wait for a connection: a Hub that is there answers in a fraction of one.
_CONNECT = 5
_IN_LOCATION = re.compile(r"/api/resolve-cache/models/.+?/(?P<commit>[0-9a-f]{40})/")
_RATE_LIMIT = re.compile(r"r\s*=\s*0\s*;\s*t\s*=\s*(?P<seconds>\d+)")


class ShortBodyError(Exception):
    """Fewer bytes than were asked for arrived: worth another try."""


class HaltedError(Exception):
    """Another worker failed; this one need not go on."""


@dataclass(frozen=True, slots=True)
class Located:
    """A file as the Hub describes it: `etag` is its sha256 (git's sha1 for a small file)."""

    commit: str
    etag: str
    nbytes: int
    location: str


class Wire:
    """Requests for one model; `note` is told of waits that a person would wonder about."""

    def __init__(self, note: Note) -> None:
        self._note = note
        self._noted_wait = threading.Lock()

    def commit(self, url: str, about: About) -> str:
        """The commit behind a file's URL, from one HEAD where the redirect tells it.

        A connection that fails is not tried again, so that an absent network is soon known.
        """
        _, commit = self._resolve(url, about, commit_is_enough=True, patient=False)
        if commit is None:
            raise no_hub(about)
        return commit

    def locate(self, url: str, about: About, *, patient: bool = True) -> Located:
        """Size, ETag and location of a file; a large one's location is at another origin.

        Raises:
            MissingFileError: the commit has no such file.
            SourceError: everything else that `failures` has a sentence for.
        """
        answer, commit = self._resolve(url, about, commit_is_enough=False, patient=patient)
        headers = answer.headers
        etag = (headers.get("X-Linked-Etag") or headers.get("ETag") or "").removeprefix("W/")
        moved = answer.is_redirect
        nbytes = headers.get("X-Linked-Size") or (None if moved else headers.get("Content-Length"))
        if commit is None or not etag.strip('"') or nbytes is None or not nbytes.isdigit():
            raise no_hub(about)
        location = urljoin(str(answer.url), headers["Location"]) if moved else str(answer.url)
        return Located(commit, etag.strip('"'), int(nbytes), location)

    def api(self, url: str, about: About, *, patient: bool = True) -> tuple[Any, str | None]:
        """The JSON value of an API's answer, and the URL of its next page if it has one."""

        def take(answer: "httpx.Response") -> tuple[Any, str | None]:
            _raise_for_status(answer)
            answer.read()
            following = answer.links.get("next", {}).get("url")
            return answer.json(), urljoin(url, following) if following else None

        try:
            headers = self.headers(url)
            return self.exchange("GET", url, take, about, headers=headers, patient=patient)
        except ValueError as error:
            raise no_hub(about) from error

    def headers(self, url: str) -> dict[str, str]:
        """Who asks, and the token if `url` is at the endpoint."""
        from embtool.source.client import build_hf_headers

        known = build_hf_headers(library_name="embtool", library_version=__version__)
        if origin(url) != origin(endpoint()):
            known.pop("authorization", None)
        return {**known, "Accept-Encoding": "identity"}

    def exchange(
        self,
        method: str,
        url: str,
        take: Callable[["httpx.Response"], T],
        about: About,
        *,
        headers: dict[str, str],
        patient: bool = True,
        follow: bool = True,
        halted: threading.Event | None = None,
    ) -> T:
        """What `take` makes of the answer; busy servers and broken connections get new tries.

        `take` may read the body or leave it; an answer is closed either way. Redirects to
        another origin lose the token.
        """
        from embtool.source.client import httpx

        broken = (httpx.TimeoutException, httpx.NetworkError, httpx.RemoteProtocolError)
        with in_words(about):
            for attempt in range(1, _TRIES + 1):
                wait: float | None = None
                reason: Exception | str
                try:
                    with _session().stream(
                        method, url, headers=headers, timeout=_timeout(), follow_redirects=follow
                    ) as answer:
                        if answer.status_code not in _BUSY:
                            return take(answer)
                        reason = f"it answers {answer.status_code}"
                        wait = told_wait(answer.headers)
                except (*broken, ShortBodyError) as error:
                    reason = error
                    if not patient:
                        break
                if attempt < _TRIES:
                    self._pause(url, reason, wait, attempt, halted)
        raise _gave_up(url, reason, about) from (None if isinstance(reason, str) else reason)

    def _resolve(
        self, url: str, about: About, *, commit_is_enough: bool, patient: bool
    ) -> tuple["httpx.Response", str | None]:
        """Follow redirects by HEAD until the answer describes the file itself."""
        commit = None
        for _ in range(_REDIRECTS):
            answer = self.exchange(
                "HEAD",
                url,
                _checked,
                about,
                headers=self.headers(url),
                patient=patient,
                follow=False,
            )
            commit = commit or _commit_of(answer)
            described = "X-Linked-Etag" in answer.headers and "X-Linked-Size" in answer.headers
            if not answer.is_redirect or described or (commit and commit_is_enough):
                return answer, commit
            url = urljoin(url, answer.headers["Location"])
        raise no_hub(about)

    def _pause(
        self,
        url: str,
        reason: object,
        wait: float | None,
        attempt: int,
        halted: threading.Event | None,
    ) -> None:
        host = urlsplit(url).netloc
        seconds = min(2.0 ** (attempt - 1), 8.0) if wait is None else wait
        if seconds > _TOO_LONG:
            raise SourceError(
                f"{host} asks to wait {seconds:.0f} seconds ({reason})",
                "try again then; a token raises the limits: `hf auth login`",
            )
        # Eight workers that are told to wait say so once.
        if seconds >= _LONG_WAIT and self._noted_wait.acquire(blocking=False):
            try:
                self._note(f"waiting {seconds:.0f} s for {host}: {reason}")
                _sleep(seconds, halted)
            finally:
                self._noted_wait.release()
        else:
            _sleep(seconds, halted)


def told_wait(headers: "httpx.Headers") -> float | None:
    """Seconds that a server asks to wait (`RateLimit`, `Retry-After`), or None."""
    limited = _RATE_LIMIT.search(headers.get("RateLimit", ""))
    if limited:
        return float(limited["seconds"])
    asked = headers.get("Retry-After", "").strip()
    if asked.isdigit():
        return float(asked)
    try:
        return max(0.0, parsedate_to_datetime(asked).timestamp() - time.time())
    except ValueError:
        return None


def origin(url: str) -> tuple[str, str, int]:
    """Scheme, host and port: what a token must not leave."""
    parts = urlsplit(url)
    usual = {"http": 80, "https": 443}.get(parts.scheme, 0)
    return parts.scheme, (parts.hostname or "").lower(), parts.port or usual


def _session() -> "httpx.Client":
    from embtool.source.client import get_session

    try:
        return get_session()
    except (ImportError, ValueError) as error:
        raise bad_proxy(error) from error


def _timeout() -> "httpx.Timeout":
    from embtool.source.client import constants, httpx

    read = constants.HF_HUB_DOWNLOAD_TIMEOUT
    return httpx.Timeout(read, connect=min(_CONNECT, read), pool=None)


def _raise_for_status(answer: "httpx.Response") -> None:
    from embtool.source.client import hf_raise_for_status

    if answer.is_error:
        answer.read()
    hf_raise_for_status(answer)


def _checked(answer: "httpx.Response") -> "httpx.Response":
    _raise_for_status(answer)
    return answer


def _commit_of(answer: "httpx.Response") -> str | None:
    """A small file's redirect names the commit in its target, whether or not in a header."""
    told = answer.headers.get("X-Repo-Commit")
    if told is None and answer.is_redirect:
        target = _IN_LOCATION.search(answer.headers["Location"])
        told = target["commit"] if target else None
    return told


def _sleep(seconds: float, halted: threading.Event | None) -> None:
    if halted is None:
        time.sleep(seconds)
    elif halted.wait(seconds):
        raise HaltedError


def _gave_up(url: str, reason: Exception | str, about: About) -> SourceError:
    host = urlsplit(url).netloc
    if isinstance(reason, str):
        return SourceError(
            f"{about.repo}: {host} has no answer for {about.file}: {reason}, {_TRIES} times",
            "try again later; see https://status.huggingface.co",
        )
    return unreachable(host, reason, about)
