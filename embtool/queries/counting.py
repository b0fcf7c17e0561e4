"""`params`: of models, or of a table that exists nowhere yet."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from embtool.catalogue import entry_params, lookup
from embtool.errors import EmbtoolError, SourceError
from embtool.model import Model
from embtool.model.counting import model_params
from embtool.params import Params, hypothetical
from embtool.queries.failures import Failure


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
            record = _params(ref, open_model, precisions)
            yield _grown(record, growth, precisions) if growth != Growth() else record
        except EmbtoolError as error:
            if len(refs) == 1:
                raise
            yield Failure(ref, error.message, error.advice)


def _params(ref: str, open_model: Callable[[str], Model], precisions: Sequence[str]) -> Params:
    """A model's own figures; the catalogue's where the Hub does not give them, and it says so."""
    try:
        return model_params(open_model(ref), precisions)
    except SourceError as error:
        entry = lookup(ref)
        if entry is None:
            raise
        record = entry_params(ref, entry, precisions)
        return replace(record, notes=(*record.notes, error.message.removeprefix(f"{ref}: ")))


def ordered(records: Iterable[Params | Failure], column: str | None) -> Iterable[Params | Failure]:
    """Records as they come, or by a column: numbers from the largest, names from A.

    What is not known comes last.
    """
    if column is None:
        return records
    known = list(records)
    if column == "model":
        return sorted(known, key=lambda r: r.query if isinstance(r, Failure) else r.model or "")
    values = [None if isinstance(record, Failure) else getattr(record, column) for record in known]
    order = sorted(range(len(known)), key=lambda i: (values[i] is None, -(values[i] or 0)))
    return [known[i] for i in order]


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
