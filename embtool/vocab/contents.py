"""A whole vocabulary in memory, as it is read from its file and before it is kept."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from embtool.errors import FormatError
from embtool.vocab.display import escape, escape_all
from embtool.vocab.spelling import SPACE, Spelling

# What a token is: the numbers of GGUF's `tokenizer.ggml.token_type`, and 0 for an id without one.
HOLE, NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(7)
# Far more than any table has rows; a hostile id must not make us reserve memory for all below it.
MAX_IDS = 1 << 24
ADVICE = "fetch the file again, or name another tokenizer with --tokenizer"


class Contents(NamedTuple):
    """Ids 0 to size - 1.

    tokens, raws: what every id looks like, escaped, "" where no token has it; types: (size,)
    uint8; scores: (size,) float32 for a vocabulary that merges by them; rules: whatever else
    its tokenizer needs, as JSON.
    """

    kind: str
    tokens: list[str]
    raws: list[str]
    types: NDArray[np.uint8]
    unknown_id: int | None = None
    scores: NDArray[np.float32] | None = None
    rules: Mapping[str, Any] | None = None


def nothing(refused: str | None) -> Contents:
    """The vocabulary of a tokenizer that is not read, and why: only `id:N` names a row."""
    return Contents("none", [], [], np.zeros(0, np.uint8), rules={"refused": refused})


def shown(
    pieces: Sequence[bytes | None], types: NDArray[np.uint8], spelling: Spelling
) -> tuple[list[str], list[str]]:
    """What every id looks like decoded, and as the vocabulary spells it; both escaped.

    A token that stands for no text (control, unknown) is shown as itself, and so is an added one
    among bytes, since it is not written in their alphabet.
    """
    written = [piece or b"" for piece in pieces]
    raws = escape_all(written)
    if spelling.prefix or spelling.suffix or spelling.replaced != ((SPACE, b" "),):
        tokens = escape_all([spelling.decode(piece) for piece in written])
    else:
        # a space for U+2581 is the same before and after escaping, and all at once is quicker
        tokens = "\n".join(raws).replace(SPACE.decode(), " ").split("\n")
        lengths = np.fromiter(map(len, written), np.int64, len(written))
        for token_id in np.flatnonzero(lengths == len(b"<0xE4>")).tolist():
            if written[token_id].startswith(b"<0x"):
                tokens[token_id] = escape(spelling.decode(written[token_id]))
    literal = [HOLE, UNKNOWN, CONTROL]
    if spelling.kind == "bpe-bytes":
        literal.append(USER_DEFINED)
    for token_id in np.flatnonzero(np.isin(types, literal)).tolist():
        tokens[token_id] = raws[token_id]
    return tokens, raws


def size_of(ids: Iterable[int], file: str) -> int:
    """The largest id + 1; FormatError where an id is negative or past any table's rows."""
    ids = list(ids)
    wrong = [token_id for token_id in ids if not 0 <= token_id < MAX_IDS]
    if wrong:
        raise FormatError(f"{file}: the token id {wrong[0]} is not in 0 to {MAX_IDS - 1}", ADVICE)
    return max(ids, default=-1) + 1
