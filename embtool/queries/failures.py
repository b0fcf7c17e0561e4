"""What becomes of a question that cannot be answered."""

from typing import NamedTuple

from embtool.errors import TokenError
from embtool.model import Model
from embtool.vocab import Vocabulary


class Failure(NamedTuple):
    """One of several words, texts or models that could not be answered."""

    query: str
    error: str
    advice: str


def need_vocabulary(model: Model) -> Vocabulary:
    """The model's vocabulary, where a question cannot do without.

    Raises:
        TokenError: the model has no tokenizer that can be read.
    """
    if model.vocabulary.kind == "none":
        why = "there is no tokenizer with it, so words and texts have no ids"
        raise TokenError(
            f"{model.ref}: {model.vocabulary.refused or why}",
            "name one with --tokenizer FILE or MODEL, or ask for rows as id:NUMBER",
        )
    return model.vocabulary
