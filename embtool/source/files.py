"""The files of one model of the Hub at one commit: what they are, and their bytes.

Looked for in this order: the whole file in huggingface_hub's cache, what is kept of it
(`cache`), and then the network. The commit is asked for once, from the first HEAD made.
"""

from contextlib import suppress
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from embtool.errors import SourceError
from embtool.source import Progress, cache
from embtool.source.cache import Fact, Shelf
from embtool.source.described import ask_description, ask_files
from embtool.source.failures import About, MissingFileError, endpoint, in_words, not_cached
from embtool.source.notes import note
from embtool.source.ranges import RangeIgnoredError, RemoteFile
from embtool.source.shards import download
from embtool.source.wire import Wire

_FIRST = "config.json"
#: Bytes of a file from which on a person is told that it is being fetched.
_LONG = 1 << 20


class HubFiles:
    """Files by name. `revision` is a branch, a tag or a commit; `offline` makes no request."""

    def __init__(self, repo: str, revision: str, *, offline: bool) -> None:
        self.repo = repo
        self.offline = offline
        self._revision = revision
        self._shelf = Shelf(repo)
        self._wire = Wire(note)
        self._remotes: dict[str, RemoteFile] = {}
        self._reached = False
        self._refused: SourceError | None = None
        self._why: SourceError | None = None
        self._has_first = False
        self._undescribed = False

    @cached_property
    def commit(self) -> str:
        """The commit. One request for a branch or a tag; none for a commit, or offline.

        Where the Hub does not tell it (out of reach, gated since, gone), the commit that was last
        seen serves, with a note.
        """
        wanted = self._revision
        if cache.is_commit(wanted):
            return wanted
        if self._refused is not None:
            raise self._refused
        remembered = self._shelf.commit(wanted) or cache.hub_commit(self.repo, wanted)
        if not self.offline:
            try:
                return self._ask_commit(wanted)
            except SourceError as error:
                if remembered is None:
                    self._refused = error
                    raise
                note(f"{error.message}; answering from the cache, commit {remembered[:8]}")
                self.offline, self._why = True, error
        if remembered is None:
            raise self.not_cached("the model")
        return remembered

    def names(self) -> list[str]:
        """Every file; one request the first time, and offline those that are known."""
        told = self._shelf.told(self.commit).get("names")
        if isinstance(told, list):
            return [str(name) for name in told]
        if self.offline:
            folder = cache.hub_folder(self.repo) / "snapshots" / self.commit
            here = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
            return sorted(here | {name for name, fact in self._facts.items() if fact})
        found = ask_files(self._wire, self._about("the list of its files"), self.commit)
        self._keep(found)
        self._shelf.keep_told(self.commit, {"names": sorted(found)})
        return sorted(found)

    def has(self, name: str) -> bool:
        """Whether the commit has the file; two requests at most, and one for all further names."""
        if self.path(name) is not None or (name == _FIRST and self._has_first):
            return True
        if name not in self._facts:
            listed = self._shelf.told(self.commit).get("names") or self._described().get("names")
            if isinstance(listed, list):
                return name in listed
            if self.offline:
                return False
            try:
                self.remote(name)
            except MissingFileError:
                return False
        return self._facts.get(name) is not None

    def fact(self, name: str) -> Fact:
        """Size and published hash of a file.

        Raises:
            MissingFileError: there is none.
        """
        path = self.path(name)
        if path is not None and self._facts.get(name) is None:
            known = cache.hub_fact(path)
            if known is not None:
                self._keep({name: known})
            else:
                # Without links a file's place is its identity: a commit's file never changes.
                place = f"{self.commit}/{name}"
                self._facts[name] = Fact(place, path.stat().st_size)
        if name not in self._facts:
            self.remote(name)
        fact = self._facts[name]
        if fact is None:
            raise MissingFileError(
                f"{self.repo}: it has no file {name} at commit {self.commit}",
                f"see its files at {endpoint()}/{self.repo}/tree/{self.commit}",
            )
        return fact

    def blob(self, name: str) -> Path:
        """The folder for what is kept of a file's content."""
        return self._shelf.blob(self.fact(name).etag, self.commit, name)

    def path(self, name: str) -> Path | None:
        """The whole file in huggingface_hub's cache, or None."""
        self._check(name)
        return cache.hub_path(self.repo, self.commit, name, self._facts.get(name))

    def read(self, name: str) -> bytes:
        """A small file, whole, through huggingface_hub's cache."""
        return (self.path(name) or self.download(name)).read_bytes()

    def bytes(self, name: str, start: int, stop: int) -> bytes:
        """Bytes [start, stop) of a file, fewer only where it ends; they are kept."""
        path = self.path(name)
        if path is not None:
            with path.open("rb") as file:
                file.seek(start)
                return file.read(stop - start)
        stop = min(stop, self.fact(name).size)
        if start >= stop:
            return b""
        blob = self.blob(name)
        piece = cache.read_piece(blob, start, stop)
        if piece is None:
            try:
                piece = self.remote(name).read(start, stop)
            except RangeIgnoredError:
                # A small file is at the endpoint itself, and may as well be read whole.
                if cache.key_of(blob).startswith("sha256-"):
                    raise
                return self.read(name)[start:stop]
            cache.keep_piece(blob, start, piece)
        return piece

    def remote(self, name: str) -> RemoteFile:
        """A file to read ranges of; one HEAD the first time (two for a small file).

        Raises:
            MissingFileError: there is none.
        """
        if name not in self._remotes:
            about, url = self._about(name), self._url(name, self.commit)
            if self.offline:
                raise self.not_cached(name)
            try:
                located = self._wire.locate(url, about, patient=self._reached)
            except MissingFileError:
                self._keep({name: None})
                raise
            self._reached = True
            fact = Fact(located.etag, located.nbytes)
            if self._facts.get(name) not in (None, fact):
                raise SourceError(
                    f"{self.repo}: {name} at commit {self.commit} has changed: it was "
                    f"{self._facts[name]} and is {fact}",
                    "the endpoint cannot be trusted; check HF_ENDPOINT",
                )
            self._keep({name: fact})
            self._remotes[name] = RemoteFile(self._wire, url, about, located)
        return self._remotes[name]

    def download(self, name: str, progress: Progress | None = None) -> Path:
        """A whole file, into huggingface_hub's cache; a long one is told."""
        if self.offline:
            raise self.not_cached(name)
        if not self._reached:
            # hf_hub_download tries a dead connection for 23 s; a HEAD knows at once.
            self.remote(name)
        fact = self._facts.get(name)
        if fact is not None and fact.size >= _LONG:
            note(f"fetching {name} of {self.repo}, all of its {fact.size:,} bytes")
        with in_words(self._about(name)):
            return download(self.repo, name, self.commit, progress)

    def total_params(self) -> int | None:
        """Parameters as the Hub counts them; None: it does not count, or cannot be asked."""
        total = self._described().get("total_params")
        return total if isinstance(total, int) else None

    def _described(self) -> dict[str, Any]:
        """`total_params` and `names` of the commit as the Hub's API tells them, asked once.

        Nothing where it tells nothing: a mirror may serve files alone.
        """
        told = self._shelf.told(self.commit)
        if "total_params" in told or self.offline or self._undescribed:
            return told
        about = self._about("its description")
        told = ask_description(self._wire, about, self.commit, patient=self._reached)
        self._undescribed = not told
        if told:
            self._shelf.keep_told(self.commit, told)
        return told

    def not_cached(self, what: str) -> SourceError:
        """The error for what is not here where no request is made, with the reason for that."""
        return not_cached(self._about(what), self._why)

    @cached_property
    def _facts(self) -> dict[str, Fact | None]:
        return self._shelf.facts(self.commit)

    def _keep(self, facts: dict[str, Fact | None]) -> None:
        fresh = {name: fact for name, fact in facts.items() if self._facts.get(name, 0) != fact}
        self._facts.update(fresh)
        if fresh:
            self._shelf.keep_facts(self.commit, fresh)

    def _ask_commit(self, wanted: str) -> str:
        about = self._about(_FIRST)
        absent = False
        try:
            commit = self._wire.commit(self._url(_FIRST, wanted), about)
        except MissingFileError as error:
            absent, told = True, error.commit
            if told is None:
                url = f"{endpoint()}/api/models/{self.repo}/revision/{quote(wanted, safe='')}"
                told = str(self._wire.api(f"{url}?expand=sha", about)[0].get("sha"))
            commit = told
        if not cache.is_commit(commit):
            raise SourceError(
                f"{self.repo}: {endpoint()} names {commit!r} as a commit", "check HF_ENDPOINT"
            )
        self._reached, self._has_first = True, not absent
        if self._shelf.commit(wanted) not in (None, commit):
            self._follow(commit)
        self._shelf.keep_commit(wanted, commit)
        if absent:
            self._shelf.keep_facts(commit, {_FIRST: None})
        return commit

    def _follow(self, commit: str) -> None:
        """Learn at once what the files of a newer commit are.

        What is kept of the same content then serves that commit too, also offline.
        """
        if self._shelf.facts(commit):
            return
        with suppress(SourceError):
            found = ask_files(self._wire, self._about("the list of its files"), commit)
            self._shelf.keep_facts(commit, found)
            self._shelf.keep_told(commit, {"names": sorted(found)})

    def _about(self, name: str) -> About:
        return About(self.repo, self._revision, name)

    def _url(self, name: str, revision: str) -> str:
        return f"{endpoint()}/{self.repo}/resolve/{quote(revision, safe='')}/{quote(name)}"

    def _check(self, name: str) -> None:
        parts = PurePosixPath(name).parts
        if not parts or name.startswith("/") or ".." in parts or "\\" in name or ":" in name:
            raise SourceError(
                f"{self.repo}: the file name {name!r} leaves the model's folder",
                "do not trust this model; its index was made by hand",
            )
