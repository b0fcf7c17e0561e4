"""Questions about a text: its tokens, their rows; and about the vocabulary itself."""

from collections.abc import Sequence

import numpy as np

from embtool.errors import SourceError, TokenError
from embtool.model import Model
from embtool.queries.failures import need_vocabulary
from embtool.queries.records import Entry, Found, Lookup, Row, Token, Tokens
from embtool.vocab import Vocabulary


def tokens(model: Model, text: str, *, special: bool = False) -> Tokens:
    """The tokens of a text, as the model's tokenizer makes them; `special` with its own added."""
    ids = need_vocabulary(model).text_ids(text, special=special)
    return Tokens(model.ref, text, _tokens(model.vocabulary, ids))


def tokens_of_ids(model: Model, ids: Sequence[int]) -> Tokens:
    """The other way round: what ids stand for, and the text they spell.

    Raises:
        TokenError: an id that no token has.
    """
    vocabulary = need_vocabulary(model)
    pieces = [vocabulary.text(token_id) for token_id in ids]
    for token_id, piece in zip(ids, pieces, strict=True):
        if piece is None:
            raise TokenError(
                f"id {token_id} is no token of {model.ref}, which has {vocabulary.count} "
                f"ids below {vocabulary.size}",
                "give ids that the vocabulary has; `embtool find` lists them",
            )
    try:
        text = b"".join(piece or b"" for piece in pieces).decode()
    except UnicodeDecodeError:
        text = None
    return Tokens(model.ref, text, _tokens(vocabulary, ids))


def find(model: Model, pattern: str, *, regex: bool, ignore_case: bool) -> Found:
    """The tokens whose displayed form holds a text, or matches a regular expression."""
    vocabulary = need_vocabulary(model)
    ids = vocabulary.find(pattern, regex=regex, ignore_case=ignore_case)
    entries = tuple(Entry(i, vocabulary.token(i), vocabulary.raw(i)) for i in ids)
    return Found(model.ref, pattern, entries)


def lookup(
    model: Model, text: str, table_name: str, dims: int | None, *, scaled: bool = False
) -> Lookup:
    """The rows of a text's tokens; `dims` shortens the vectors shown, not the matrix.

    `scaled`: times the factor that the model puts on a row at run time.
    """
    table = model.table(table_name)
    vocabulary = model.vocabulary if text.startswith("id:") else need_vocabulary(model)
    ids = vocabulary.text_ids(text, rows=table.shape[0])
    matrix = table.rows(ids)
    scale = _scale(model) if scaled else None
    if scale is not None:
        matrix *= np.float32(scale)
    norms = np.sqrt(np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64))
    rows = tuple(
        Row(
            token.position,
            token.id,
            token.token,
            token.raw,
            float(norm),
            tuple(vector[:dims].tolist()),
        )
        for token, norm, vector in zip(_tokens(vocabulary, ids), norms, matrix, strict=True)
    )
    shape = (matrix.shape[0], matrix.shape[1])
    return Lookup(model.ref, table.tensor, text, shape, rows, scale, matrix)


def _scale(model: Model) -> float:
    """The factor; 1 for a model that has none.

    Raises:
        SourceError: there is no config to tell.
    """
    if model.config is None:
        raise SourceError(
            f"{model.ref}: there is no config that tells how the model scales its rows",
            "leave out --scaled, or name the folder that holds config.json too",
        )
    return 1.0 if model.config.scale is None else model.config.scale


def _tokens(vocabulary: Vocabulary, ids: Sequence[int]) -> tuple[Token, ...]:
    return tuple(
        Token(position, token_id, vocabulary.token(token_id), vocabulary.raw(token_id))
        for position, token_id in enumerate(ids)
    )
