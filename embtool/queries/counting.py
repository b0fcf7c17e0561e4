"""`params`: of models, or of a table that exists nowhere yet."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from embtool.errors import EmbtoolError
from embtool.model import Model
from embtool.model.counting import model_params
from embtool.params import Params, hypothetical
from embtool.queries.records import Failure


@dataclass(frozen=True, slots=True)
class Growth:
    """Tokens to add, and the multiple that the rows are then padded to."""

    add_tokens: int = 0
    pad_to: int | None = None


def given(
    vocab_size: int,
    d_model: int,
    total_params: int | None,
    growth: Growth,
    precisions: Sequence[str],
) -> Params:
    """The count of a table that exists nowhere yet."""
    return hypothetical(
        vocab_size,
        d_model,
        total_params=total_params,
        add_tokens=growth.add_tokens,
        pad_to=growth.pad_to,
        precisions=precisions,
    )


def params(
    refs: Sequence[str],
    open_model: Callable[[str], Model],
    growth: Growth,
    precisions: Sequence[str],
) -> Iterator[Params | Failure]:
    """The counts of models, one after the other; one that fails does not stop the rest."""
    for ref in refs:
        try:
            record = model_params(open_model(ref), precisions)
            yield _grown(record, growth, precisions) if growth != Growth() else record
        except EmbtoolError as error:
            if len(refs) == 1:
                raise
            yield Failure(ref, error.message, error.advice)


def _grown(record: Params, growth: Growth, precisions: Sequence[str]) -> Params:
    """The same model after tokens are added to its table."""
    if record.rows is None or record.d_model is None:
        return record
    grown = hypothetical(
        record.rows,
        record.d_model,
        total_params=record.total_params,
        add_tokens=growth.add_tokens,
        pad_to=growth.pad_to,
        tied=record.tied,
        precisions=precisions,
    )
    return replace(grown, model=record.model, model_type=record.model_type)
