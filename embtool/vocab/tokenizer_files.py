"""The files that hold a tokenizer where there is no tokenizer.json, by their names."""

from collections.abc import Callable

#: Gives a file of the tokenizer's folder by its name, None where there is none.
Files = Callable[[str], bytes | None]

#: Files that hold a tokenizer, the first that is there wins; after them any `*.tiktoken`.
KINDS = (
    "tekken.json",
    "tokenizer.model",
    "spiece.model",
    "tiktoken.model",
    "vocab.json",
    "vocab.txt",
)
ENDING = ".tiktoken"
CONFIG, ADDED, NAMED = "tokenizer_config.json", "added_tokens.json", "special_tokens_map.json"
MODEL, MERGES = "config.json", "merges.txt"


def base_name(name: str) -> str:
    """The name without its folder."""
    return name.rpartition("/")[2]


def is_tokenizer(name: str) -> bool:
    """Whether a file of this name holds a tokenizer."""
    return base_name(name) in KINDS or name.endswith(ENDING)


def companions(name: str) -> tuple[str, ...]:
    """What is read beside the file of a tokenizer, where it is there."""
    beside = (CONFIG, ADDED, NAMED, MODEL)
    return (*beside, MERGES) if base_name(name) == "vocab.json" else beside
