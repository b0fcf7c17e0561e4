"""The two origins of the loopback Hub: the endpoint, and the CDN that it redirects to."""

import gzip
import json
import re
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import parse_qs, quote, unquote, urlsplit

if TYPE_CHECKING:
    from hub import Hub, Repo
    from hub.contents import Content, File

_RESOLVE = re.compile(r"/(?P<repo>[^/]+(?:/[^/]+)?)/resolve/(?P<revision>[^/]+)/(?P<file>.+)")
_SMALL = re.compile(
    r"/api/resolve-cache/models/(?P<repo>.+)/(?P<revision>[0-9a-f]{40})/(?P<file>.+)"
)
_TREE = re.compile(r"/api/models/(?P<repo>[^/]+(?:/[^/]+)?)/tree/(?P<revision>[^/]+)")
_MODEL = re.compile(r"/api/models/(?P<repo>[^/]+(?:/[^/]+)?)(?:/revision/(?P<revision>[^/]+))?")
_RANGE = re.compile(r"bytes=(\d+)-(\d+)")
_CHUNK = 1 << 16


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, hub: "Hub", handler: type["_Handler"]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.hub = hub

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is no error of the server's."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server
    origin: ClassVar[str]

    def do_GET(self) -> None:
        hub = self.server.hub
        split = urlsplit(self.path)
        self.asked = hub.note(
            self.command,
            self.origin,
            split.path,
            asked_range=self.headers.get("Range"),
            token=self.headers.get("Authorization"),
        )
        self.close_connection = False
        if not self._broken(hub.due(self.asked)):
            self.respond(split.path, parse_qs(split.query, keep_blank_values=True))

    do_HEAD = do_GET

    def log_message(self, format: str, *args: object) -> None:
        pass

    def respond(self, path: str, query: dict[str, list[str]]) -> None:
        raise NotImplementedError

    def _broken(self, fault: dict | None) -> bool:
        """Make the faults that any origin can have; True if that was the answer."""
        self.fault = fault or {}
        kind = self.fault.get("kind")
        if kind in ("429", "503", "500", "416", "412", "403"):
            headers = {k: str(v) for k, v in self.fault.get("headers", {}).items()}
            self.send(int(kind), headers, b"")
            return True
        if kind == "hang":
            time.sleep(self.fault["seconds"])
            self.close_connection = True
            return True
        if kind == "page":
            self.send(200, {"Content-Type": "text/html"}, b"<html>log in first</html>")
            return True
        return False

    def send(self, status: int, headers: dict[str, str], body: "Content") -> None:
        headers = {"Content-Length": str(len(body)), **headers}
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.asked.status = status
        if self.command == "HEAD":
            return
        for at in range(0, len(body), _CHUNK):
            chunk = body[at : at + _CHUNK]
            self.asked.sent += len(chunk)
            try:
                self.wfile.write(chunk)
            except OSError:
                self.asked.sent -= len(chunk)
                self.close_connection = True
                return
            self.server.hub.throttle(len(chunk))

    def serve(self, content: "Content", etag: str, headers: dict[str, str]) -> None:
        """A body, or the range of it that was asked for, or what a fault makes of it."""
        kind = self.fault.get("kind")
        nbytes = len(content)
        wanted = _RANGE.fullmatch(self.headers.get("Range") or "")
        status, first, last = 200, 0, nbytes - 1
        if self.headers.get("If-Match", etag) != etag:
            self.send(412, {}, b"")
            return
        if wanted and kind != "ignore-range":
            status, first, last = 206, int(wanted[1]), min(int(wanted[2]), nbytes - 1)
            if first > last:
                self.send(416, {"Content-Range": f"bytes */{nbytes}"}, b"")
                return
        if kind == "wrong-range":
            first, last = first + 1, min(last + 1, nbytes - 1)
        total = nbytes + 1 if kind == "wrong-total" else nbytes
        headers = {**headers, "ETag": etag, "Accept-Ranges": "bytes"}
        if status == 206:
            headers["Content-Range"] = f"bytes {first}-{last}/{total}"
        self._damage(kind, headers, _Part(content, first, last + 1), status)

    def _damage(
        self, kind: str | None, headers: dict[str, str], body: "Content", status: int
    ) -> None:
        headers["Content-Length"] = str(len(body))
        if kind in ("gzip", "short", "long", "drop"):
            body = body[0 : len(body)]
        if kind == "gzip":
            body = gzip.compress(body)
            headers |= {"Content-Encoding": "gzip", "Content-Length": str(len(body))}
        elif kind == "short":
            body = body[: len(body) // 2]
            headers["Content-Length"] = str(len(body))
        elif kind == "long":
            body = body + b"x"
            headers["Content-Length"] = str(len(body))
        elif kind == "drop":
            body = body[: len(body) // 2]
            self.close_connection = True
        elif kind == "etag":
            headers["ETag"] = '"another"'
        self.send(status, headers, body)


class EndpointHandler(_Handler):
    origin = "hub"

    def respond(self, path: str, query: dict[str, list[str]]) -> None:
        for pattern, answer in (
            (_SMALL, self._small),
            (_RESOLVE, self._resolve),
            (_TREE, self._tree),
            (_MODEL, self._model),
        ):
            found = pattern.fullmatch(path)
            if found:
                parts = {k: v and unquote(v) for k, v in found.groupdict().items()}
                repo = self._allowed(parts["repo"])
                if repo is not None:
                    answer(repo, parts, query)
                return
        self.send(404, {}, b"")

    def _allowed(self, name: str) -> "Repo | None":
        """The repository, if whoever asks may see it."""
        hub = self.server.hub
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        repo = hub.repos.get(name)
        if token and token not in hub.tokens:
            message = "Invalid credentials in Authorization header"
            self.send(401, {"X-Error-Message": message}, b"")
        elif repo is None or (repo.private and name not in hub.tokens.get(token, ())):
            self._refuse(401, "RepoNotFound")
        elif repo.gated and name not in hub.tokens.get(token, ()):
            self._refuse(403 if token else 401, "GatedRepo")
        else:
            return repo
        return None

    def _refuse(self, status: int, code: str, **headers: str) -> None:
        told = {"X-Error-Code": code, "X-Error-Message": code}
        self.send(status, told | {k.replace("_", "-"): v for k, v in headers.items()}, b"")

    def _commit(self, repo: "Repo", revision: str) -> str | None:
        commit = revision if revision in repo.commits else repo.refs.get(revision)
        if commit is None:
            self._refuse(404, "RevisionNotFound")
        return commit

    def _resolve(self, repo: "Repo", parts: dict[str, str], query: object) -> None:
        hub = self.server.hub
        commit = self._commit(repo, parts["revision"])
        if commit is None:
            return
        if repo.renamed is not None:
            target = f"/{repo.renamed}/resolve/{quote(parts['revision'], safe='')}/{parts['file']}"
            self.send(307, {"Location": target}, b"")
            return
        file = repo.commits[commit].get(parts["file"])
        told = {"X-Repo-Commit": commit}
        if file is None:
            self._refuse(404, "EntryNotFound", X_Repo_Commit=commit)
        elif file.large:
            told |= {"X-Linked-Size": str(len(file.content)), "Accept-Ranges": "bytes"}
            told |= {"X-Linked-Etag": f'"{file.etag}"', "Location": hub.sign(file)}
            self.send(302, told, b"")
        else:
            target = f"/api/resolve-cache/models/{repo.name}/{commit}/{parts['file']}"
            self.send(307, {"Location": f"{target}?etag=%22{file.etag}%22"}, b"moved")

    def _small(self, repo: "Repo", parts: dict[str, str], query: object) -> None:
        file = repo.commits[parts["revision"]][parts["file"]]
        self.serve(file.content, f'"{file.etag}"', {"X-Repo-Commit": parts["revision"]})

    def _model(self, repo: "Repo", parts: dict[str, str], query: dict[str, list[str]]) -> None:
        commit = self._commit(repo, parts["revision"] or "main")
        if commit is None:
            return
        names = sorted(repo.commits[commit])
        told: dict[str, object] = {"id": repo.name, "sha": commit, "private": repo.private}
        told["siblings"] = [{"rfilename": name} for name in names]
        if repo.total_params is not None:
            told["safetensors"] = {"parameters": {"BF16": repo.total_params}}
            told["safetensors"]["total"] = repo.total_params  # type: ignore[index]
        if "expand" in query:
            told = {k: v for k, v in told.items() if k in ("id", *query["expand"])}
        self.send(200, {"Content-Type": "application/json"}, json.dumps(told).encode())

    def _tree(self, repo: "Repo", parts: dict[str, str], query: dict[str, list[str]]) -> None:
        commit = self._commit(repo, parts["revision"])
        if commit is None:
            return
        page = self.server.hub.page
        start = int(query.get("cursor", ["0"])[0])
        entries = [_entry(name, file) for name, file in sorted(repo.commits[commit].items())]
        headers = {"Content-Type": "application/json"}
        if start + page < len(entries):
            url = f"{self.server.hub.endpoint}/api/models/{repo.name}/tree/{commit}"
            headers["Link"] = f'<{url}?recursive=true&cursor={start + page}>; rel="next"'
        self.send(200, headers, json.dumps(entries[start : start + page]).encode())


class CdnHandler(_Handler):
    origin = "cdn"

    def respond(self, path: str, query: dict[str, list[str]]) -> None:
        hub = self.server.hub
        file = hub.blobs.get(path.rpartition("/")[2])
        if file is None:
            self.send(404, {}, b"")
        elif int(query["generation"][0]) < hub.generation:
            self.send(403, {}, b"<Error>expired</Error>")
        else:
            self.serve(file.content, f'"cdn-{file.etag[:12]}"', {})


class _Part:
    """A part of a content, cut out as it is sent."""

    def __init__(self, content: "Content", start: int, stop: int) -> None:
        self._content, self._start, self._stop = content, start, stop

    def __len__(self) -> int:
        return self._stop - self._start

    def __getitem__(self, part: slice) -> bytes:
        start, stop, _ = part.indices(len(self))
        return self._content[self._start + start : self._start + stop]


def _entry(name: str, file: "File") -> dict[str, object]:
    large, etag, nbytes = file.large, file.etag, len(file.content)
    entry = {"type": "file", "path": name, "size": nbytes, "oid": etag[:40]}
    if large:
        entry["lfs"] = {"oid": etag, "size": nbytes, "pointerSize": 134}
    return entry


def start(hub: "Hub") -> tuple[_Server, _Server]:
    """Both origins, not serving yet."""
    return _Server(hub, EndpointHandler), _Server(hub, CdnHandler)
