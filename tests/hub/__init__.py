"""A loopback Hub: two origins, a log of every request, and faults to order.

    with Hub() as hub:
        hub.put("org/model", {"config.json": b"{}", "model.safetensors": shard({...})})
        hub.fault("short", file="model.safetensors")
        answer = run(hub, home, ["params", "org/model"])
        assert hub.sent() < 70_000

It speaks as the real one does: a large file is a 302 to a signed URL at the other origin, a small
one a 307 within the endpoint; a missing, gated or private model answers with its error code.
"""

import hashlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hub.contents import Content, File, as_file
from hub.server import start

__all__ = ["Asked", "Hub", "Repo", "in_process", "run"]

_TOKENIZERS = ("tokenizer", "vocab", "merges", "special_tokens", "added_tokens")


@dataclass
class Asked:
    """One request: `sent` counts the bytes of its body."""

    method: str
    origin: str  # hub | cdn
    path: str
    asked_range: str | None
    token: str | None
    status: int = 0
    sent: int = 0


@dataclass
class Repo:
    name: str
    commits: dict[str, dict[str, File]] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    gated: bool = False
    private: bool = False
    renamed: str | None = None
    total_params: int | None = None


class Hub:
    """Serves repositories from threads of this process while it is entered."""

    def __init__(self) -> None:
        self.repos: dict[str, Repo] = {}
        self.blobs: dict[str, File] = {}
        self.tokens: dict[str, tuple[str, ...]] = {}  # token -> the gated models it may see
        self.log: list[Asked] = []
        self.page = 1000
        self.generation = 0
        self.rate: float | None = None  # bytes a second of each connection
        self._faults: list[dict] = []
        self._lock = threading.Lock()
        self._servers = start(self)
        self.endpoint = f"http://127.0.0.1:{self._servers[0].server_port}"
        self._cdn = f"http://localhost:{self._servers[1].server_port}"

    def __enter__(self) -> "Hub":
        for server in self._servers:
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def put(
        self,
        name: str,
        files: Mapping[str, bytes | Path | Content],
        *,
        revision: str = "main",
        **facts: object,
    ) -> str:
        """Commit the files to a revision of a model, and return the commit.

        `facts`: `gated`, `private`, `total_params`, or `renamed` to another model.
        """
        repo = self.repos.setdefault(name, Repo(name))
        for fact, value in facts.items():
            setattr(repo, fact, value)
        held = {file: as_file(file, content) for file, content in files.items()}
        told = repr((name, revision, len(repo.commits), sorted(held)))
        commit = hashlib.sha1(told.encode()).hexdigest()
        repo.commits[commit] = held
        repo.refs[revision] = commit
        self.blobs |= {file.etag: file for file in held.values() if file.large}
        return commit

    def fault(
        self, kind: str, file: str = "", *, times: int = 1, after: int = 0, **how: object
    ) -> None:
        """Break the next `times` bodies of `file` (`origin="hub"`: answers of the endpoint for it),
        after `after` good ones.

        Bodies: ignore-range, short, long, drop, wrong-range, wrong-total, gzip, etag.
        Answers: 403, 412, 416, 429, 500, 503 (`headers`), hang (`seconds`), page (a login page).
        `method="HEAD"|"GET"` narrows it down.
        """
        path = file
        if file:
            for repo in self.repos.values():
                for files in repo.commits.values():
                    if file in files and how.get("origin") != "hub" and files[file].large:
                        path = files[file].etag
        self._faults.append({"kind": kind, "path": path, "times": times, "after": after, **how})

    def expire(self) -> None:
        """No URL that was signed until now is taken any more."""
        self.generation += 1

    def requests(self) -> list[Asked]:
        """The requests that count: not telemetry's, and not for the tokenizer's files."""
        return [
            asked
            for asked in self.log
            if "/api/agent" not in asked.path
            and not asked.path.rpartition("/")[2].startswith(_TOKENIZERS)
        ]

    def sent(self) -> int:
        """The body bytes of those requests."""
        return sum(asked.sent for asked in self.requests())

    def bodies(self, origin: str = "cdn") -> list[Asked]:
        """The requests that moved a body from one origin."""
        return [asked for asked in self.log if asked.origin == origin and asked.sent]

    # For the two servers.

    def note(
        self, method: str, origin: str, path: str, *, asked_range: str | None, token: str | None
    ) -> Asked:
        asked = Asked(method, origin, path, asked_range, token)
        with self._lock:
            self.log.append(asked)
        return asked

    def due(self, asked: Asked) -> dict | None:
        with self._lock:
            for fault in self._faults:
                fits = asked.path.endswith(fault["path"]) and fault["times"] > 0
                same_origin = fault.get("origin", asked.origin) == asked.origin
                if fits and same_origin and fault.get("method", asked.method) == asked.method:
                    if fault["after"] > 0:
                        fault["after"] -= 1
                        continue
                    fault["times"] -= 1
                    return fault
        return None

    def sign(self, file: File) -> str:
        return f"{self._cdn}/repos/{file.etag}?generation={self.generation}&Signature=x"

    def throttle(self, nbytes: int) -> None:
        if self.rate is not None:
            time.sleep(nbytes / self.rate)


def settings(hub: Hub | None, home: Path, **env: str) -> dict[str, str]:
    """The environment of a process that knows no Hub but this one (None: a dead one)."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "EMBTOOL_"))}
    kept = {k: v for k, v in kept.items() if not k.lower().endswith("_proxy")}
    tests = Path(__file__).parents[1]
    return {
        **kept,
        "HF_ENDPOINT": hub.endpoint if hub is not None else "http://127.0.0.1:9",
        "HF_HOME": str(home),
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DOWNLOAD_TIMEOUT": "5",
        "PYTHONPATH": os.pathsep.join([str(tests.parent), str(tests)]),
        **env,
    }


def run(
    hub: Hub | None, home: Path, what: str | Sequence[str], **env: str
) -> subprocess.CompletedProcess[str]:
    """Run code, or embtool with arguments, in a process of its own.

    Settings of huggingface_hub are read when it is imported, so a test of one needs this.
    """
    command = ["-c", what] if isinstance(what, str) else ["-c", _CLI, *what]
    return subprocess.run(
        [sys.executable, *command],
        env=settings(hub, home, **env),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


_CLI = "from embtool.cli import main; main()"


def in_process(hub: Hub, home: Path, patch: pytest.MonkeyPatch) -> None:
    """Point this process's huggingface_hub to the Hub, where starting another would take long."""
    from huggingface_hub import close_session, constants

    close_session()
    for name, value in {
        "ENDPOINT": hub.endpoint,
        "HUGGINGFACE_CO_URL_TEMPLATE": hub.endpoint + "/{repo_id}/resolve/{revision}/{filename}",
        "HF_HUB_CACHE": str(home / "hub"),
        "HF_ASSETS_CACHE": str(home / "assets"),
        "HF_TOKEN_PATH": str(home / "token"),
        "HF_HUB_OFFLINE": False,
        "HF_HUB_DISABLE_TELEMETRY": True,
        "HF_HUB_DOWNLOAD_TIMEOUT": 5,
    }.items():
        patch.setattr(constants, name, value)
