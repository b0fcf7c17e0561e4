"""What embtool is measured against: each function is one whole process of the bench.

    python scripts/bench_peers.py NAME DATA [ARGUMENT...]

DATA is the folder that `scripts/bench` has filled. Peers print what they answer, so that a wrong
answer would be seen, and the last line of those that time themselves is a JSON object.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ANALOGY = ("国王", "男人", "女人")


def numpy_analogy(data: Path) -> None:
    """The script that most people write: tokenizer, whole matrix, one product."""
    import numpy as np
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(data / "gemma" / "tokenizer.json"))
    table = np.load(data / "gemma" / "table.npy")
    a, b, c = (tokenizer.encode(word, add_special_tokens=False).ids[0] for word in ANALOGY)
    norms = np.sqrt(np.einsum("ij,ij->i", table, table))
    query = table[a] / norms[a] - table[b] / norms[b] + table[c] / norms[c]
    scores = table @ query / norms
    scores[[a, b, c]] = -np.inf
    best = np.argsort(-scores)[:10]
    print([tokenizer.id_to_token(int(row)) for row in best])


def gensim_analogy(data: Path) -> None:
    """gensim on a table that was converted to its own format before, memory-mapped."""
    from gensim.models import KeyedVectors

    vectors = KeyedVectors.load(str(data / "gemma" / "table.kv"), mmap="r")
    a, b, c = ANALOGY
    print(vectors.most_similar(positive=[a, c], negative=[b], topn=10))


def gensim_neighbors(data: Path) -> None:
    """The same for the neighbours of one word."""
    from gensim.models import KeyedVectors

    vectors = KeyedVectors.load(str(data / "gemma" / "table.kv"), mmap="r")
    print(vectors.most_similar(ANALOGY[0], topn=10))


def transformers_analogy(data: Path) -> None:
    """torch's embedding with transformers for the tokenizer, as most would write it."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(data / "gemma")
    ids = [tokenizer.encode(word, add_special_tokens=False)[0] for word in ANALOGY]
    print(tokenizer.convert_ids_to_tokens(_torch_nearest(data, ids)))


def torch_analogy(data: Path) -> None:
    """torch's embedding with the tokenizers library alone."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(data / "gemma" / "tokenizer.json"))
    ids = [tokenizer.encode(word, add_special_tokens=False).ids[0] for word in ANALOGY]
    print([tokenizer.id_to_token(row) for row in _torch_nearest(data, ids)])


def _torch_nearest(data: Path, ids: list[int]) -> list[int]:
    import numpy as np
    import torch

    table = torch.from_numpy(np.load(data / "gemma" / "table.npy"))
    layer = torch.nn.Embedding.from_pretrained(table)
    units = torch.nn.functional.normalize(layer(torch.tensor(ids)))
    scores = torch.nn.functional.normalize(table) @ (units[0] - units[1] + units[2])
    scores[ids] = -torch.inf
    return scores.topk(10).indices.tolist()


def gensim_evaluate(data: Path) -> None:
    """gensim's accuracy on all 400,000 rows of GloVe."""
    from gensim.models import KeyedVectors

    vectors = KeyedVectors.load(str(data / "glove.kv"), mmap="r")
    file = str(data / "questions-words.txt")
    _, sections = vectors.evaluate_word_analogies(file, restrict_vocab=400_000)
    print(len(sections[-1]["correct"]))


def sum_bytes(data: Path) -> None:
    """numpy's sum of a table's bytes in two threads: what reading alone costs."""
    import numpy as np

    stored = np.load(data / "big" / "table.npy", mmap_mode="r")
    halves = np.array_split(stored, 2)

    def work(half: "np.ndarray") -> None:
        for first in range(0, len(half), 128):
            half[first : first + 128].view(np.uint64).sum()

    _report(_best(lambda: _together(work, halves)))


def usearch_scan(data: Path) -> None:
    """usearch's exact search of the same table."""
    import numpy as np
    from usearch.index import search

    stored = np.load(data / "big" / "table.npy", mmap_mode="r").view(np.uint16)
    query = stored[7].copy()[None]
    _report(_best(lambda: search(stored, query, 10, exact=True, dtype="bf16", threads=2)))


def embtool_scan(data: Path, count: str = "1", times: int = 1) -> None:
    """embtool's neighbours of `count` rows of the same table, one pass, in a warm process."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    from embtool.model import Model
    from embtool.queries.candidates import Candidates
    from embtool.queries.ground import Choices
    from embtool.queries.nearest import Nearest

    model = Model.open(str(data / "big"))
    words = [f"id:{row}" for row in range(int(count))]
    nearest = Nearest(model, Choices(), Candidates(), "cosine", 10)
    repeats = 5 if len(words) < 100 else 1
    _report(times * _best(lambda: list(nearest.words([words], alone=False)), repeats))


def embtool_singles(data: Path) -> None:
    """1,000 questions one after the other in a warm process, from the time of one."""
    embtool_scan(data, "1", times=1000)


def numpy_matmul(data: Path) -> None:
    """The same products as 1,000 queries of the big table: numpy's own rate."""
    import numpy as np

    rows = np.random.default_rng(1).standard_normal((4096, 7168), np.float32)
    queries = np.random.default_rng(2).standard_normal((1000, 7168), np.float32)
    seconds = _best(lambda: queries @ rows.T)
    _report(seconds * 129_280 / len(rows))


def gguf_package(data: Path) -> None:
    """The gguf package's own reader."""
    import gguf

    print(len(gguf.GGUFReader(sys.argv[3]).tensors))


def gguf_embtool(data: Path) -> None:
    """The same file by embtool."""
    import mmap

    from embtool.gguf import parse

    with Path(sys.argv[3]).open("rb") as file:
        buffer = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        print(len(parse(buffer, "model.gguf").tensors))


def decode(data: Path) -> None:
    """Each GGUF type: embtool's speed over that of the gguf package, on the same blocks."""
    import gguf
    import numpy as np

    from embtool import quant

    ratios = {}
    for name in sorted(quant.SCHEMES):
        elements, nbytes = quant.BLOCKS[name]
        blocks = np.random.default_rng(3).integers(0, 256, (1 << 20) // elements * nbytes, np.uint8)
        blocks = blocks.reshape(-1, nbytes)
        kind = gguf.GGMLQuantizationType[name]
        out = np.empty((len(blocks), elements), np.float32)
        with np.errstate(all="ignore"):
            theirs = _best(lambda b=blocks, k=kind: gguf.quants.dequantize(b, k))
            ours = _best(lambda n=name, b=blocks, o=out: quant.SCHEMES[n](b, o))
        ratios[name] = round(theirs / ours, 2)
    print(json.dumps(ratios))


def empty_typer(data: Path) -> None:
    """A typer program with one empty command."""
    import typer

    app = typer.Typer()
    app.command()(lambda: None)
    app(["--help"])


def _best(work: Callable[[], object], repeats: int = 5) -> float:
    """The shortest of some runs, in seconds, after one that is not counted."""
    seconds = []
    if repeats > 1:
        work()
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def _together(work: Callable[[Any], None], parts: Sequence[Any]) -> None:
    threads = [threading.Thread(target=work, args=(part,)) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _report(seconds: float) -> None:
    print(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    globals()[sys.argv[1]](
        Path(sys.argv[2]), *sys.argv[3:4] if sys.argv[1] == "embtool_scan" else ()
    )
