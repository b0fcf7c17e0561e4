"""The tables that `scripts/bench` reads, made once: Gemma's, a large random one, GloVe's."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers

ROWS, WIDTH = 129_280, 7_168
#: Types of tokens in a GGUF vocabulary: ordinary, control, user-defined.
NORMAL, CONTROL, USER = 1, 3, 4


def build_all(data: Path, root: Path) -> None:
    gemma(data / "gemma")
    big(data / "big")
    glove(data, root)


def gemma(folder: Path) -> None:
    """float32 rows as numpy and gensim keep them, and a tokenizer.json of the same vocabulary."""
    folder.mkdir(parents=True, exist_ok=True)
    named = {"tokenizer_class": "PreTrainedTokenizerFast"}  # what transformers asks for
    (folder / "tokenizer_config.json").write_text(json.dumps(named))
    if (folder / "done").exists():
        return
    from embtool.model import Model

    model = Model.open("gemma-3-270m")
    table = np.concatenate([block.copy() for _, block in model.table().blocks()])
    np.save(folder / "table.npy", table)
    metadata = model.checkpoint.metadata or {}
    pieces = [piece.decode() for piece in metadata["tokenizer.ggml.tokens"]]
    library(pieces, metadata).save(str(folder / "tokenizer.json"))
    if importlib.util.find_spec("gensim"):
        keyed(pieces, table, folder / "table.kv")
    (folder / "done").touch()


def library(pieces: list[str], metadata: object) -> Tokenizer:
    """The library's BPE: merges follow from the scores, the best piece first."""
    types = metadata["tokenizer.ggml.token_type"].tolist()  # type: ignore[index]
    scores = metadata["tokenizer.ggml.scores"].tolist()  # type: ignore[index]
    ordinary = {p: s for p, s, t in zip(pieces, scores, types, strict=True) if t == NORMAL}
    merges = [
        (-score, -cut, piece[:cut], piece[cut:])
        for piece, score in ordinary.items()
        for cut in range(1, len(piece))
        if piece[:cut] in ordinary and piece[cut:] in ordinary
    ]
    pairs = [(left, right) for _, _, left, right in sorted(merges)]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    model = models.BPE(vocabulary, pairs, unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback()])
    chosen = [(p, t) for p, t in zip(pieces, types, strict=True) if t in (CONTROL, USER)]
    tokenizer.add_tokens([AddedToken(p, normalized=False) for p, t in chosen if t == USER])
    tokenizer.add_special_tokens(
        [AddedToken(p, normalized=False) for p, t in chosen if t == CONTROL]
    )
    return tokenizer


def keyed(words: list[str], table: np.ndarray, path: Path) -> None:
    """gensim's own format, with its norms filled, so that it loads by memory map."""
    from gensim.models import KeyedVectors

    vectors = KeyedVectors(table.shape[1])
    vectors.add_vectors(words, table)
    vectors.fill_norms()
    vectors.save(str(path))


def big(folder: Path) -> None:
    """Random bfloat16 rows as large as DeepSeek-V3's table, and the same bytes for numpy."""
    if (folder / "done").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    stored = np.lib.format.open_memmap(
        folder / "table.npy", mode="w+", dtype=np.uint16, shape=(ROWS, WIDTH)
    )
    random = np.random.default_rng(7)
    for first in range(0, ROWS, 1024):
        rows = random.standard_normal((min(1024, ROWS - first), WIDTH), np.float32)
        stored[first : first + 1024] = rows.view(np.uint32) >> 16
    stored.flush()
    nbytes = ROWS * WIDTH * 2
    entry = {"dtype": "BF16", "shape": [ROWS, WIDTH], "data_offsets": [0, nbytes]}
    header = json.dumps({"model.embed_tokens.weight": entry}).encode()
    header += b" " * (-len(header) % 8)  # as safetensors itself aligns what follows
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        for first in range(0, ROWS, 1024):
            file.write(stored[first : first + 1024].tobytes())
    config = {"model_type": "llama", "vocab_size": ROWS, "hidden_size": WIDTH}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "done").touch()


def glove(data: Path, root: Path) -> None:
    """GloVe as a model folder and as gensim's file; the questions from gensim's own tests."""
    if (data / "glove" / "done").exists() or importlib.util.find_spec("gensim") is None:
        return
    import gensim

    subprocess.run([sys.executable, root / "scripts" / "glove", data / "glove"], check=True)
    questions = Path(gensim.__file__).parent / "test" / "test_data" / "questions-words.txt"
    (data / "questions-words.txt").write_bytes(questions.read_bytes())
    from embtool.model import Model

    model = Model.open(str(data / "glove"))
    table = np.concatenate([block.copy() for _, block in model.table().blocks()])
    keyed(model.vocabulary.displayed(), table, data / "glove.kv")
    (data / "glove" / "done").touch()
