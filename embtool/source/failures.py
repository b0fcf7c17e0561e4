"""What went wrong between this machine and the Hub, in sentences.

| raised by huggingface_hub or its client        | said                                        |
|------------------------------------------------|---------------------------------------------|
| GatedRepoError                                 | gated: how to ask for access and log in     |
| RepositoryNotFoundError                        | absent or private                           |
| RevisionNotFoundError, RemoteEntryNotFoundError| no such revision, no such file              |
| LocalEntryNotFoundError, OfflineModeIsEnabled  | not in the cache, and offline               |
| FileMetadataError                              | the endpoint is no Hub                      |
| HFValidationError                              | no valid id                                 |
| ImportError, ValueError of the client's making | a proxy that cannot be used                 |
| transport errors, statuses, OSError            | what failed, and its reason                 |
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from embtool.errors import SourceError

_LOG_IN = "log in with `hf auth login` (or set HF_TOKEN)"


class MissingFileError(SourceError):
    """The Hub says that this commit has no such file; `commit` is the commit, if it told."""

    commit: str | None = None


class UnreachableError(SourceError):
    """The Hub did not answer at all."""


@dataclass(frozen=True, slots=True)
class About:
    """What was asked for: `file` of model `repo` at `revision`."""

    repo: str
    revision: str
    file: str


@contextmanager
def in_words(about: About) -> Iterator[None]:
    """Turn what huggingface_hub and its client raise into a SourceError."""
    from embtool.source.client import errors, httpx

    try:
        yield
    except (httpx.HTTPError, httpx.InvalidURL, OSError, errors.HFValidationError) as error:
        raise _sentence(error, about) from error


def no_hub(about: About) -> SourceError:
    """The endpoint answered, but not as a Hub does."""
    return SourceError(
        f"{about.repo}: {endpoint()} does not answer like a Hub: no X-Repo-Commit, ETag and size "
        f"for {about.file}",
        "check HF_ENDPOINT, and that no proxy or login page stands in between",
    )


def not_cached(about: About, why: SourceError | None = None) -> SourceError:
    """Never answered before, and offline; `why`: the error that keeps this run from asking."""
    missing = f"{about.repo}: {about.file} is not in the cache, and"
    if why is not None:
        return SourceError(f"{missing} {why.message.removeprefix(f'{about.repo}: ')}", why.advice)
    return SourceError(
        f"{missing} this run is offline",
        "run the same command once without --offline and HF_HUB_OFFLINE",
    )


def not_writable(path: object, error: BaseException) -> SourceError:
    """A full disk or a read-only cache."""
    return SourceError(
        f"the cache {path} cannot be written: {getattr(error, 'strerror', None) or error}",
        "free some space, or point HF_HOME to a folder that can be written",
    )


def unreachable(host: str, error: BaseException, about: About) -> UnreachableError:
    """No answer, or one that broke off each time."""
    return UnreachableError(
        f"{about.repo}: {host} cannot be reached for {about.file}: {_reason(error)}",
        "check the network, HF_ENDPOINT and the proxy; what is cached is read with --offline",
    )


def bad_proxy(error: Exception) -> SourceError:
    """A proxy that the client cannot speak with."""
    return SourceError(
        f"the proxy that is set cannot be used: {_reason(error)}",
        'install what it needs (for SOCKS: pip install "httpx[socks]" socksio), or unset ALL_PROXY',
    )


def endpoint() -> str:
    """Where the Hub is: `HF_ENDPOINT`."""
    from huggingface_hub import constants

    return constants.ENDPOINT


def _sentence(error: BaseException, about: About) -> SourceError:
    """The first class in this order that fits: each is a part of the ones below it."""
    from huggingface_hub import errors

    sentences: tuple[tuple[type[BaseException], Callable[[], SourceError]], ...] = (
        (errors.HFValidationError, lambda: _bad_id(error, about)),
        (errors.GatedRepoError, lambda: _gated(error, about)),
        (errors.RepositoryNotFoundError, lambda: _absent(about)),
        (errors.RevisionNotFoundError, lambda: _no_revision(about)),
        (errors.LocalEntryNotFoundError, lambda: _not_here(error, about)),
        (errors.EntryNotFoundError, lambda: _missing(error, about)),
        (errors.OfflineModeIsEnabled, lambda: not_cached(about)),
        (errors.FileMetadataError, lambda: no_hub(about)),
        (errors.HfHubHTTPError, lambda: _status(error, about)),
        (OSError, lambda: not_writable(getattr(error, "filename", None) or "of the Hub", error)),
        (BaseException, lambda: unreachable(endpoint(), error, about)),
    )
    return next(say for kind, say in sentences if isinstance(error, kind))()


def _bad_id(error: BaseException, about: About) -> SourceError:
    return SourceError(
        f"{about.repo}: this is no id of a model: {_reason(error)}", "give it as owner/name"
    )


def _absent(about: About) -> SourceError:
    return SourceError(
        f"{about.repo}: there is no such model on {endpoint()}, or it is private",
        f"check the name; for a private model {_LOG_IN}",
    )


def _no_revision(about: About) -> SourceError:
    return SourceError(
        f"{about.repo}: it has no revision {about.revision!r}",
        f"see its branches and tags at {endpoint()}/{about.repo}",
    )


def _not_here(error: BaseException, about: About) -> SourceError:
    """`hf_hub_download` found nothing in its cache after the request in `__cause__` failed."""
    cause = error.__cause__
    return not_cached(about) if cause is None else _sentence(cause, about)


def _gated(error: BaseException, about: About) -> SourceError:
    status = getattr(getattr(error, "response", None), "status_code", 401)
    why = "this token's account has no access" if status == 403 else "no token was sent"
    return SourceError(
        f"{about.repo}: this model is gated, and {why}",
        f"ask for access at https://huggingface.co/{about.repo}, then {_LOG_IN}",
    )


def _missing(error: BaseException, about: About) -> SourceError:
    missing = MissingFileError(
        f"{about.repo}: it has no file {about.file} at revision {about.revision}",
        f"see its files at {endpoint()}/{about.repo}/tree/{about.revision}",
    )
    answer = getattr(error, "response", None)
    missing.commit = answer.headers.get("X-Repo-Commit") if answer is not None else None
    return missing


def _status(error: BaseException, about: About) -> SourceError:
    answer = getattr(error, "response", None)
    if answer is None:
        return no_hub(about)
    told = answer.headers.get("X-Error-Message")
    if answer.status_code == 401:
        return SourceError(
            f"{about.repo}: {endpoint()} refuses this token ({told or 'status 401'})",
            f"{_LOG_IN} again, or unset HF_TOKEN for a public model",
        )
    known = {"X-Repo-Commit", "X-Error-Code", "X-Error-Message", "X-Request-Id"}
    if answer.status_code < 500 and not any(name in answer.headers for name in known):
        return no_hub(about)
    return SourceError(
        f"{about.repo}: {endpoint()} answers {answer.status_code} for {about.file}"
        + (f" ({told})" if told else ""),
        "try again later; see https://status.huggingface.co",
    )


def _reason(error: BaseException) -> str:
    return str(error).strip().split("\n")[0] or type(error).__name__
