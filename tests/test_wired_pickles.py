"""PyTorch's files as checkpoints: found, read by place, joined from pieces, and never run."""

import json

import numpy as np
import pytest
from builders import word_tokenizer, write_safetensors
from cli import run
from pickle_builders import glob, legacy, state, tensor, text, tuple_of, zipped

from embtool import Model
from embtool.errors import FormatError, SourceError, UnsupportedError

EMBED, HEAD = "model.embed_tokens.weight", "lm_head.weight"
WORDS = ["king", "queen", "man", "woman"]
TABLE = np.arange(1, 13, dtype=np.float32).reshape(4, 3)


def matrix(table, key="0"):
    rows, width = table.shape
    return tensor(shape=(rows, width), strides=(width, 1), key=key, count=table.size)


def torch_file(tensors):
    """A zip file as torch writes it: name -> table, float32."""
    names = dict(zip(tensors, map(str, range(len(tensors)))))
    pairs = [part for name, key in names.items() for part in (name, matrix(tensors[name], key))]
    return zipped(state(*pairs), {key: tensors[name].tobytes() for name, key in names.items()})


def torch_older(tensors):
    names = dict(zip(tensors, map(str, range(len(tensors)))))
    pairs = [part for name, key in names.items() for part in (name, matrix(tensors[name], key))]
    stored = [(key, tensors[name].size, tensors[name].tobytes()) for name, key in names.items()]
    return legacy(state(*pairs), stored)


def folder(path, config=None):
    path.mkdir(parents=True, exist_ok=True)
    claims = {"model_type": "llama", "vocab_size": 4, "hidden_size": 3, **(config or {})}
    (path / "config.json").write_text(json.dumps(claims))
    (path / "tokenizer.json").write_text(word_tokenizer(WORDS))
    return path


def params(capsys, model):
    done = run(capsys, "params", str(model), "-f", "json")
    assert done.code == 0, done.err
    return json.loads(done.out)


@pytest.mark.parametrize("write", [torch_file, torch_older], ids=["zip", "older"])
@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "consolidated.00.pth"])
def test_a_single_file(capsys, tmp_path, name, write):
    norm = np.ones((1, 3), np.float32)
    tensors = {"model.norm.weight": norm, EMBED: TABLE, HEAD: TABLE * 2}
    (folder(tmp_path) / name).write_bytes(write(tensors))
    for ref in (str(tmp_path), f"{tmp_path}:{name}", str(tmp_path / name)):
        table = Model.open(ref).table()
        np.testing.assert_array_equal(table.rows([3, 0]), TABLE[[3, 0]])
        np.testing.assert_array_equal(Model.open(ref).table(HEAD).rows([1]), 2 * TABLE[[1]])
    record = params(capsys, tmp_path)
    assert (record["rows"], record["d_model"], record["tied"]) == (4, 3, False)
    assert record["total_params"] == 27
    facts = [(t["tensor"], t["file"], t["stored_bytes"]) for t in record["tables"]]
    assert facts == [(EMBED, name, 48), (HEAD, name, 48)]
    done = run(capsys, "neighbors", "king", "-k", "1", "-m", str(tmp_path))
    assert done.out.splitlines()[1].split("\t")[:3] == ["1", "1", "queen"]


@pytest.mark.format(
    "Layouts",
    kind="`pytorch_model.bin.index.json` and its shards",
    model="facebook/opt-6.7b",
    does="reads the shards that hold a table",
)
def test_shards_with_an_index(tmp_path):
    folder(tmp_path)
    names = [f"pytorch_model-0000{n}-of-00002.bin" for n in (1, 2)]
    (tmp_path / names[0]).write_bytes(torch_file({EMBED: TABLE}))
    (tmp_path / names[1]).write_bytes(torch_file({HEAD: TABLE * 3}))
    with pytest.raises(SourceError, match="are the parts of a checkpoint without an index"):
        Model.open(str(tmp_path)).table()
    index = {"weight_map": {EMBED: names[0], HEAD: names[1]}, "metadata": {"total_size": 96}}
    (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    model = Model.open(str(tmp_path))
    np.testing.assert_array_equal(model.table().rows([2]), TABLE[[2]])
    np.testing.assert_array_equal(model.table("output").rows([2]), 3 * TABLE[[2]])


@pytest.mark.format(
    "Layouts",
    kind="`.safetensors` beside PyTorch's own files",
    model="openai-community/gpt2",
    does="the .safetensors file is read",
)
def test_safetensors_come_first(tmp_path):
    (folder(tmp_path) / "pytorch_model.bin").write_bytes(torch_file({EMBED: TABLE}))
    write_safetensors(tmp_path / "odd-name.safetensors", {EMBED: TABLE + 1})
    np.testing.assert_array_equal(Model.open(str(tmp_path)).table().rows([0]), TABLE[:1] + 1)


def test_what_training_leaves_beside_is_no_checkpoint(tmp_path):
    for name in ("training_args.bin", "optimizer.pt"):
        (folder(tmp_path) / name).write_bytes(torch_file({EMBED: TABLE}))
    with pytest.raises(SourceError) as caught:
        Model.open(str(tmp_path)).table()
    assert caught.value.message == (
        f"{tmp_path}: there is no checkpoint in it (.safetensors, .gguf or .bin)"
    )
    assert caught.value.advice == f"name the file if it is one: {tmp_path}:optimizer.pt"
    assert Model.open(f"{tmp_path}:optimizer.pt").table().shape == (4, 3)


def test_a_table_that_is_a_view_is_refused_by_its_name(tmp_path):
    turned = state(EMBED, tensor(shape=(4, 3), strides=(1, 4), count=12))
    (folder(tmp_path) / "pytorch_model.bin").write_bytes(zipped(turned, {"0": TABLE.tobytes()}))
    with pytest.raises(UnsupportedError, match=f"{EMBED}.* is a view with strides"):
        Model.open(str(tmp_path)).table()


def test_a_truncated_file(capsys, tmp_path):
    path = folder(tmp_path) / "pytorch_model.bin"
    path.write_bytes(torch_file({EMBED: TABLE})[:-40])
    done = run(capsys, "lookup", "king", "-m", str(tmp_path), "-q")
    first, second = done.err.splitlines()
    assert (done.code, done.out, first.startswith("error: pytorch_model.bin")) == (1, "", True)
    assert second.startswith("  try: ")


# --- pieces of tensor-parallel originals -----------------------------------------------------


@pytest.mark.parametrize("rows", [4, -1])
def test_pieces_of_columns_and_of_rows(capsys, tmp_path, rows):
    """Llama 2 split the input table by columns and the output table by rows."""
    table, head = np.arange(16, dtype=np.float32).reshape(4, 4), np.eye(4, dtype=np.float32)
    layers = np.ones((2, 2), np.float32)
    for place in (0, 1):
        half = slice(2 * place, 2 * place + 2)
        pieces = {"tok_embeddings.weight": np.ascontiguousarray(table[:, half])}
        pieces |= {"output.weight": head[half], "layers.0.attention.wq.weight": layers}
        (tmp_path / f"consolidated.0{place}.pth").write_bytes(torch_file(pieces))
    said = {"dim": 4, "n_layers": 1, "vocab_size": rows}
    (tmp_path / "params.json").write_text(json.dumps(said))
    for ref in (str(tmp_path), str(tmp_path / "consolidated.01.pth")):
        model = Model.open(ref)
        np.testing.assert_array_equal(model.table().rows([3, 0, 1]), table[[3, 0, 1]])
        blocks = np.concatenate([b.copy() for part in model.table().parts(2) for _, b in part])
        np.testing.assert_array_equal(blocks, table)
        np.testing.assert_array_equal(model.table("output").rows([2, 1]), head[[2, 1]])
    record = params(capsys, tmp_path)
    assert (record["rows"], record["d_model"], record["tied"]) == (4, 4, False)
    assert record["total_params"] is None
    assert [t["stored_bytes"] for t in record["tables"]] == [64, 64]


def test_pieces_of_which_one_is_missing(tmp_path):
    piece = {"tok_embeddings.weight": TABLE, "output.weight": TABLE}
    (tmp_path / "consolidated.01.pth").write_bytes(torch_file({"output.weight": TABLE}))
    (tmp_path / "params.json").write_text(json.dumps({"dim": 3, "vocab_size": 8}))
    with pytest.raises(SourceError, match=r"consolidated\.00\.pth is not there"):
        Model.open(str(tmp_path / "consolidated.01.pth")).table()
    (tmp_path / "consolidated.00.pth").write_bytes(torch_file(piece))
    with pytest.raises(FormatError, match=r"consolidated\.01\.pth has no piece of tok_emb"):
        Model.open(str(tmp_path)).table()


# --- hostile files ---------------------------------------------------------------------------


def call(name, *arguments):
    return glob(name) + tuple_of(*map(text, arguments)) + b"R"


HOSTILE = {
    "os.system": lambda mark: call("os.system", f"touch {mark}"),
    "posix.system": lambda mark: call("posix.system", f"touch {mark}"),
    "builtins.eval": lambda mark: call("builtins.eval", f"open({str(mark)!r}, 'w')"),
    "builtins.exec": lambda mark: call("builtins.exec", f"open({str(mark)!r}, 'w')"),
    "subprocess.check_output": lambda mark: call("subprocess.check_output", f"touch {mark}"),
    "torch.load": lambda mark: call("torch.load", str(mark)),
}


@pytest.mark.parametrize("wrap", [zipped, legacy], ids=["zip", "older"])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_by_the_name_it_asks_for(capsys, tmp_path, name, wrap):
    mark = tmp_path / "it-ran"
    root = state("w", tensor(), "evil", HOSTILE[name](mark))
    path = tmp_path / "m" / "pytorch_model.bin"
    path.parent.mkdir()
    path.write_bytes(wrap(root))
    for args in (["lookup", "id:0", "-m"], ["neighbors", "id:0", "-m"], ["params"]):
        for ref in (path.parent, path):
            done = run(capsys, *args, str(ref), "-q")
            assert (done.code, done.out) == (1, ""), args
            first, second = done.err.splitlines()
            assert first.startswith("error: pytorch_model.bin")
            assert name.rpartition(".")[2] in first
            assert second.startswith("  try: ")
    assert not mark.exists()


def test_a_bare_pickle_is_not_even_parsed(capsys, tmp_path):
    mark = tmp_path / "it-ran"
    path = tmp_path / "weights.bin"
    path.write_bytes(b"cos\nsystem\n(S'touch " + str(mark).encode() + b"'\ntR.")
    done = run(capsys, "lookup", "id:0", "-m", str(path), "-q")
    assert done.err.splitlines()[0].startswith("error: weights.bin is no file that torch saved")
    assert (done.code, mark.exists()) == (1, False)
