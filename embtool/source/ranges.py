"""Byte ranges of one file of the Hub, each checked before its bytes are believed.

A range is right when the status is 206, `Content-Range` is the range asked for out of the size
that the Hub published, nothing encodes the body, its length is exact, and the ETag is the one
that the file's other ranges had. That ETag is the CDN's own and is never compared with the
Hub's. A short body or a broken connection is tried again; whatever else is wrong is an error.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING, TypeVar

from embtool.errors import SourceError
from embtool.source.failures import About, endpoint
from embtool.source.wire import HaltedError, Located, ShortBodyError, Wire, origin

if TYPE_CHECKING:
    from embtool.source.client import httpx

T = TypeVar("T")
Span = tuple[int, int]

#: Measured at 20 MB/s a connection: 335 MB take 16.2 s with 1 worker, 2.7 with 8, 2.9 with 16.
WORKERS = 8
STEP = 8 << 20
_GAP = 4 << 10
_CHUNK = 1 << 16
#: Bytes between two words on how far a range has come.
_TELL = 1 << 18
_AGAIN = "run the command again; if it stays so, the mirror or proxy in between is at fault"


class RangeIgnoredError(SourceError):
    """The server sends whole files only."""


class _ExpiredError(Exception):
    """The CDN no longer takes the signed URL."""


class RemoteFile:
    """One file at one commit. `etag` and `nbytes` are the Hub's word on it; `read` checks."""

    def __init__(self, wire: Wire, url: str, about: About, located: Located) -> None:
        self.nbytes = located.nbytes
        self.etag = located.etag
        self.cdn_etag: str | None = None
        self._answered = False
        self._wire = wire
        self._url = url
        self._about = about
        self._location = located.location
        self._generation = 0
        self._lock = threading.Lock()

    def read(
        self,
        start: int,
        stop: int,
        halted: threading.Event | None = None,
        arrived: Callable[[int], None] | None = None,
    ) -> bytes:
        """Bytes [start, stop) of the file, exactly as many.

        `arrived` is told how many have come, from time to time; another try begins at none.

        Raises:
            RangeIgnoredError: the server does not do ranges.
            SourceError: an answer that is not the range asked for, or no answer.
        """

        def take(answer: "httpx.Response") -> bytes:
            self._check(answer, start, stop)
            return self._body(answer, stop - start, halted, arrived)

        for _ in range(2):
            generation, location = self._generation, self._location
            headers = self._wire.headers(location)
            headers["Range"] = f"bytes={start}-{stop - 1}"
            try:
                return self._wire.exchange(
                    "GET", location, take, self._about, headers=headers, halted=halted
                )
            except _ExpiredError:
                self._locate_again(generation)
        raise self._wrong("403, with a URL that was signed a moment ago")

    def _locate_again(self, generation: int) -> None:
        """A new signed URL; the first worker that needs it asks for all of them."""
        with self._lock:
            if self._generation != generation:
                return
            located = self._wire.locate(self._url, self._about)
            if (located.etag, located.nbytes) != (self.etag, self.nbytes):
                raise self._wrong(
                    f"a file of {located.nbytes} bytes with ETag {located.etag}, "
                    f"after one of {self.nbytes} bytes with ETag {self.etag}"
                )
            self._location = located.location
            self._generation += 1

    def _body(
        self,
        answer: "httpx.Response",
        nbytes: int,
        halted: threading.Event | None,
        arrived: Callable[[int], None] | None,
    ) -> bytes:
        body, told = bytearray(), 0
        for chunk in answer.iter_raw(_CHUNK):
            if halted is not None and halted.is_set():
                raise HaltedError
            body += chunk
            if len(body) > nbytes:
                raise self._wrong(f"more than the {nbytes} bytes asked for")
            if arrived is not None and (len(body) - told >= _TELL or len(body) == nbytes):
                told = len(body)
                arrived(told)
        if len(body) < nbytes:
            raise ShortBodyError(f"{len(body)} of {nbytes} bytes arrived")
        return bytes(body)

    def _check(self, answer: "httpx.Response", start: int, stop: int) -> None:
        """Whether it is the range that was asked for, before any of its body is read."""
        if answer.status_code == 403:
            raise _ExpiredError
        if answer.status_code == 200:
            raise RangeIgnoredError(
                f"{self._about.repo}: the server ignores ranges: it answers "
                f"{stop - start} bytes of {self._about.file} with the whole file",
                "use another HF_ENDPOINT, or take the whole file: embtool download --shard",
            )
        if answer.status_code != 206:
            raise self._wrong(str(answer.status_code))
        expected = f"bytes {start}-{stop - 1}/{self.nbytes}"
        headers = answer.headers
        if headers.get("Content-Range") != expected:
            raise self._wrong(f"Content-Range {headers.get('Content-Range')!r}, not {expected!r}")
        if headers.get("Content-Encoding", "identity") != "identity":
            raise self._wrong(f"a body encoded as {headers['Content-Encoding']}")
        etag = headers.get("ETag")
        with self._lock:
            if self._answered and etag != self.cdn_etag:
                raise self._wrong(f"ETag {etag} after {self.cdn_etag}: the file has changed")
            self.cdn_etag, self._answered = etag, True
            # A Hub that redirects each range to its CDN is asked once.
            if answer.history and origin(str(answer.url)) != origin(endpoint()):
                self._location = str(answer.url)

    def _wrong(self, answered: str) -> SourceError:
        host = origin(self._location)[1]
        return SourceError(
            f"{self._about.repo}: {host} answers a range of {self._about.file} with {answered}",
            _AGAIN,
        )


def near(spans: Sequence[Span]) -> list[Span]:
    """Merge sorted spans whose gaps cost at most 4 KiB each, up to one step of bytes.

    >>> near([(0, 10), (20, 30), (9000, 9010)])
    [(0, 30), (9000, 9010)]
    """
    merged: list[Span] = []
    for start, stop in spans:
        if merged and start - merged[-1][1] <= _GAP and stop - merged[-1][0] <= STEP:
            merged[-1] = (merged[-1][0], stop)
        else:
            merged.append((start, stop))
    return merged


def side_by_side(
    work: Callable[[Span, threading.Event], T], spans: Sequence[Span]
) -> Iterator[tuple[Span, T]]:
    """Yield (span, `work(span, halted)`) as they finish; the first error halts the others."""
    halted = threading.Event()
    with ThreadPoolExecutor(min(WORKERS, max(1, len(spans)))) as pool:
        running = {pool.submit(work, span, halted): span for span in spans}
        try:
            for future in as_completed(running):
                yield running[future], future.result()
        finally:
            halted.set()
            pool.shutdown(wait=False, cancel_futures=True)
