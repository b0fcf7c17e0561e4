"""One-hot vectors times a table, as a matrix product over every row."""

from collections.abc import Sequence

import numpy as np

from embtool.quant import F32
from embtool.search.blocks import Pass, joined, read
from embtool.search.threads import Part, each_part


def one_hot_product(work: Pass, ids: Sequence[int]) -> F32:
    """one_hot(ids) @ E, (len(ids), d_model) float32, in one pass over every row.

    Row t of one_hot(ids), (len(ids), rows), is zero but for a one in column ids[t]. Each block of
    E is multiplied with its columns, and the products are added up: nothing is looked up.
    1 · x and 0 · x are exact, so the result is E[ids], unless a row of E holds an infinity or NaN:
    0 · inf is NaN. A negative zero becomes a positive one, since -0 + 0 = 0.

    Leaves the norms in `work` where there were none.
    """
    wanted = np.asarray(ids, np.int64)
    fresh: list[tuple[int, F32]] = []

    def product(part: Part) -> F32 | None:
        total: F32 | None = None
        for rows in read(part, work, work.norms, fresh):
            one_hot = (wanted[:, None] == rows.ids).astype(np.float32)
            with np.errstate(all="ignore"):
                some = one_hot @ rows.values
                total = some if total is None else total + some
        return total

    products = [each for each in each_part(work.parts, product) if each is not None]
    if work.norms is None:
        work.norms = joined(fresh)
    with np.errstate(all="ignore"):
        whole: F32 = np.sum(products, axis=0, dtype=np.float32)
    return whole
