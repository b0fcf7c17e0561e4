"""`graph` of WordLlama's table against numpy's own blocked product with argpartition.

Run as `OPENBLAS_NUM_THREADS=1 python scripts/bench_graph.py [ROUNDS]`, as the command sets it;
numpy's own product may then use one thread, and gets another figure with
OPENBLAS_NUM_THREADS=2. Both are timed in turns, by the clock and by processor time.
"""

import importlib.util
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from embtool.model import Model
from embtool.queries.graph import graph_cost, write_graph

K, ROWS = 10, 512


def numpy_neighbors(units: NDArray[np.float32]) -> NDArray[np.int64]:
    found = np.empty((len(units), K), np.int64)
    for first in range(0, len(units), ROWS):
        scores = units[first : first + ROWS] @ units.T
        here = np.arange(len(scores))
        scores[here, first + here] = -2
        best = np.argpartition(scores, -K, axis=1)[:, -K:]
        order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1)
        found[first : first + ROWS] = np.take_along_axis(best, order, axis=1)
    return found


def timed(work: Callable[[], object]) -> tuple[float, float]:
    clock, processor = time.perf_counter(), sum(os.times()[:2])
    work()
    return time.perf_counter() - clock, sum(os.times()[:2]) - processor


def main(rounds: int) -> None:
    spec = importlib.util.find_spec("wordllama")
    assert spec is not None and spec.submodule_search_locations is not None
    folder = Path(spec.submodule_search_locations[0])
    model = Model.open(str(folder / "weights/l2_supercat_256.safetensors"))
    rows = np.concatenate([block.copy() for _, block in model.table().blocks()])
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    print(graph_cost(model))
    with tempfile.TemporaryDirectory() as into:
        for _ in range(rounds):
            numpy_clock, numpy_processor = timed(lambda: numpy_neighbors(units))
            clock, processor = timed(lambda: write_graph(model, Path(into) / "graph.tsv"))
            print(
                f"numpy {numpy_clock:.1f} s ({numpy_processor:.1f} s of processor time), "
                f"graph {clock:.1f} s ({processor:.1f} s): "
                f"{clock / numpy_clock:.2f} and {processor / numpy_processor:.2f} times"
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
