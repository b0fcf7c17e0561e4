"""Files that torch wrote, and files made by hand after its formats; torch itself is not needed."""

import numpy as np
import pytest
from pickle_builders import (
    FILES,
    GOOD,
    glob,
    legacy,
    number,
    opened,
    state,
    storage,
    tensor,
    text,
    tuple_of,
    zipped,
)

from embtool.errors import UnsupportedError
from embtool.packed import join_split
from embtool.pickles import read_pickle

TABLE = np.arange(24, dtype=np.float32).reshape(6, 4)


def numbers(raw, info, dtype="<f4"):
    return np.frombuffer(raw[info.start : info.stop], dtype).reshape(info.shape)


@pytest.mark.format(
    "Other",
    kind="`pytorch_model.bin` and other files of `torch.save`",
    model="facebook/opt-350m",
    does="read without running anything of them",
)
@pytest.mark.parametrize("name", ["torch_zip.bin", "torch_legacy.bin"])
def test_what_torch_wrote(name):
    raw = (FILES / name).read_bytes()
    pickled = opened(raw, name)
    assert pickled.shapes == {
        "model.embed_tokens.weight": ("BF16", (6, 4)),
        "model.norm.weight": ("F32", (4,)),
        "lm_head.weight": ("F32", (6, 4)),
        "head.rows": ("F32", (3, 4)),
        "head.turned": ("F32", (4, 6)),
        "ids": ("I64", (3,)),
        "small": ("F8_E4M3", (2,)),
        "empty": ("F32", (0, 4)),
        "tied.weight": ("F32", (6, 4)),
    }
    assert pickled.left_out == {"head.turned": "[4, 6] is a view with strides [1, 4]"}
    header = pickled.header()
    assert header.nbytes == len(raw)
    assert header.tensors.keys() == pickled.shapes.keys() - {"head.turned"}
    bits = numbers(raw, header.tensors["model.embed_tokens.weight"], "<u2").astype(np.uint32)
    np.testing.assert_array_equal((bits << 16).view(np.float32), TABLE)
    np.testing.assert_array_equal(numbers(raw, header.tensors["lm_head.weight"]), TABLE)
    np.testing.assert_array_equal(numbers(raw, header.tensors["head.rows"]), TABLE[2:5])
    np.testing.assert_array_equal(numbers(raw, header.tensors["model.norm.weight"]), np.ones(4))
    np.testing.assert_array_equal(numbers(raw, header.tensors["ids"], "<i8"), [0, 1, 2])
    np.testing.assert_array_equal(numbers(raw, header.tensors["small"], np.uint8), [0x38, 0xC0])
    tied, head = header.tensors["tied.weight"], header.tensors["lm_head.weight"]
    assert (tied.start, tied.stop) == (head.start, head.stop)
    if name == "torch_zip.bin":
        assert all(
            info.start % 64 == 0 for info in header.tensors.values() if info.name != "head.rows"
        )


def test_only_what_is_needed_is_read():
    raw = (FILES / "torch_zip.bin").read_bytes()
    reads = []

    def read(start, stop):
        reads.append(stop - start)
        return raw[start:stop]

    pickled = read_pickle(read, len(raw), "x.bin")
    before = len(reads)
    header = pickled.header(["lm_head.weight", "tied.weight", "head.rows"])
    assert list(header.tensors) == ["lm_head.weight", "tied.weight", "head.rows"]
    assert len(reads) == before + 1  # one storage, one header of it
    assert reads[-1] == 30 + len("torch_zip/data/2")
    with pytest.raises(UnsupportedError, match=r"'head.turned' \[4, 6\] is a view with strides"):
        pickled.header(["head.turned"])


def test_a_checkpoint_s_state_dict_is_taken_without_its_optimizer():
    raw = (FILES / "torch_nested.pth").read_bytes()
    pickled = opened(raw)
    assert pickled.shapes == {"wte.weight": ("F32", (6, 4))}
    np.testing.assert_array_equal(numbers(raw, pickled.header().tensors["wte.weight"]), TABLE)


@pytest.mark.format(
    "Other",
    kind="originals split for tensor parallelism",
    model="meta-llama/Meta-Llama-3-70B (`consolidated.00.pth` to `.07.pth`)",
    does="the pieces are one table",
)
def test_pieces_of_tensor_parallel_originals():
    raws = [(FILES / f"consolidated.0{n}.pth").read_bytes() for n in range(2)]
    infos = [opened(raw).header().tensors["tok_embeddings.weight"] for raw in raws]
    table = join_split("tok_embeddings.weight", infos, 4, -1)
    where = dict(zip(map(id, infos), raws, strict=True))

    def fetch(info, ids, nbytes):
        stored = np.frombuffer(where[id(info)], np.uint8)[info.start : info.stop]
        return stored.reshape(-1, nbytes)[list(ids)]

    np.testing.assert_array_equal(table.rows(fetch, range(6)), TABLE)


@pytest.mark.parametrize("make", [zipped, legacy])
def test_made_by_hand(make):
    raw = make(GOOD)
    info = opened(raw).header().tensors["w"]
    assert (info.dtype, info.shape) == ("F32", (2, 3))
    np.testing.assert_array_equal(numbers(raw, info), [[0, 1, 2], [3, 4, 5]])


NESTED = {
    "a tensor alone": (b"\x80\x02" + tensor() + b".", ["tensor"]),
    "a list": (b"\x80\x02](" + tensor() + tensor() + b"e.", ["0", "1"]),
    "dots": (state("a", b"}(" + text("b") + tensor() + b"u"), ["a.b"]),
    "a number for a key": (state("a", b"}(" + number(7) + tensor() + b"u"), ["a.7"]),
    "another key": (state("a", b"}(N" + tensor() + b"u"), ["a.[0]"]),
    "a wrapper": (state("model", b"}(" + text("b") + tensor() + b"u"), ["b"]),
    "a wrapper beside a tensor": (
        state("model", b"}(" + text("b") + tensor() + b"u", "c", tensor()),
        ["c", "model.b"],
    ),
    "the last of a key": (state("w", b"N", "w", tensor()), ["w"]),
    "of Python 2": (
        b"\x80\x02" + glob("collections.OrderedDict") + b"(](](" + text("w") + tensor() + b"eetR.",
        ["w"],
    ),
    "itself": (b"\x80\x02}q\x00(" + text("w") + tensor() + text("me") + b"h\x00u.", ["w"]),
}


@pytest.mark.parametrize("name", NESTED)
def test_names(name):
    data, names = NESTED[name]
    assert list(opened(zipped(data)).shapes) == names


def test_a_parameter_and_a_tensor_of_a_type():
    rebuild = glob("torch._utils._rebuild_tensor_v2")
    arguments = tuple_of(
        storage(), number(0), tuple_of(number(6)), tuple_of(number(1)), b"\x89", b"N"
    )
    typed = tuple_of(rebuild, glob("torch.nn.parameter.Parameter"), arguments, b"}")
    parameter = glob("torch._utils._rebuild_parameter") + tuple_of(tensor(), b"\x88", b"N") + b"R"
    data = state("p", parameter, "t", glob("torch._tensor._rebuild_from_type_v2") + typed + b"R")
    assert opened(zipped(data)).shapes == {"p": ("F32", (2, 3)), "t": ("F32", (6,))}


def test_a_pickle_longer_than_the_first_window():
    names = [f"layer.{i}.weight" for i in range(900)]
    data = state(*[part for name in names for part in (name, tensor())])
    assert len(data) > 64 << 10
    assert list(opened(legacy(data)).shapes) == names
