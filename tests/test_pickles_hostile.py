"""Hostile pickles run nothing: each plants a side effect, and none is found.

That a payload would do its work is checked with Python's own unpickler, in the same test.
"""

import contextlib
import copyreg
import os
import pickle
import struct

import pytest
from pickle_builders import (
    PLANTED,
    REBUILD,
    glob,
    legacy,
    number,
    opened,
    state,
    storage,
    tensor,
    text,
    tuple_of,
    watched,
    zipped,
)

from embtool.errors import EmbtoolError, UnsupportedError

nothing_planted = pytest.fixture(autouse=True)(watched)


class Loud:
    """What a pickle could build; building it plants the file."""

    def __init__(self, *_):
        os.mkdir(PLANTED)  # noqa: PTH102 -- as an attack would

    def __setstate__(self, _):
        Loud()

    def __setitem__(self, *_):
        Loud()

    def append(self, _):
        """What APPEND calls."""
        Loud()

    def extend(self, _):
        """What APPENDS calls."""
        Loud()


def short(value):
    return b"\x8c" + bytes([len(value)]) + value.encode()


LOUD = glob(f"{__name__}.Loud")
MKDIR = glob("os.mkdir")
NAME = text(PLANTED)
CALL = MKDIR + NAME + b"\x85R"
EVAL = glob("builtins.eval") + text(f"__import__('os').mkdir('{PLANTED}')") + b"\x85R"
IMPORTED = glob("builtins.__import__") + text("os") + b"\x85R"

# What a pickle does -> (its operations, what the refusal names). Each leaves one value.
RUNNING = {
    "os.mkdir": (CALL, "os.mkdir"),
    "os.system": (glob("os.system") + text(f"mkdir {PLANTED}") + b"\x85R", "os.system"),
    "posix.system": (glob("posix.system") + text(f"mkdir {PLANTED}") + b"\x85R", "posix.system"),
    "eval": (EVAL, "builtins.eval"),
    "exec": (
        glob("builtins.exec") + text(f"import os; os.mkdir('{PLANTED}')") + b"\x85R",
        "builtins.exec",
    ),
    "a call of what a call gave": (
        glob("builtins.getattr") + IMPORTED + text("mkdir") + b"\x86R" + NAME + b"\x85R",
        "builtins.getattr",
    ),
    "a call in the arguments of a call": (
        glob("builtins.list")
        + tuple_of(glob("builtins.map") + tuple_of(MKDIR, b"](" + NAME + b"e") + b"R")
        + b"R",
        "builtins.list",
    ),
    "a pickle in a pickle": (
        glob("pickle.loads") + b"C" + bytes([len(CALL) + 1]) + CALL + b"." + b"\x85R",
        "pickle.loads",
    ),
    "a global kept and fetched": (
        b"(" + MKDIR + b"q\x05" + NAME + b"1h\x05" + NAME + b"\x85R",
        "os.mkdir",
    ),
    "names from the memo": (
        short("mkdir") + b"\x94" + short("os") + b"\x94h\x01h\x00\x93" + NAME + b"\x85R\x87",
        "os.mkdir",
    ),
    "STACK_GLOBAL": (short("os") + short("mkdir") + b"\x93" + NAME + b"\x85R", "os.mkdir"),
    "a dotted name": (
        short("pathlib") + short("os.mkdir") + b"\x93" + NAME + b"\x85R",
        "pathlib.os.mkdir",
    ),
    "INST": (b"(" + NAME + b"ios\nmkdir\n", "os.mkdir"),
    "OBJ": (b"(" + LOUD + NAME + b"o", "Loud"),
    "NEWOBJ and BUILD": (LOUD + b")\x81Nb", "Loud"),
    "NEWOBJ_EX": (LOUD + b")}\x92Nb", "Loud"),
    "SETITEM": (LOUD + b")\x81" + NAME + b"Ns", "Loud"),
    "APPEND": (LOUD + b")\x81" + NAME + b"a", "Loud"),
    "APPENDS": (LOUD + b")\x81(" + NAME + b"e", "Loud"),
    "an extension": (b"\x82\xf0" + NAME + b"\x85R", "EXT1 240"),
    "a wider extension": (b"\x84\xf0\x00\x00\x00" + NAME + b"\x85R", "EXT4 240"),
    "an OrderedDict of a call": (
        glob("collections.OrderedDict") + tuple_of(b"](" + CALL + b"0e") + b"R",
        "os.mkdir",
    ),
    "a key of a dictionary": (b"}(" + CALL + b"Nu", "os.mkdir"),
    "behind a good call": (
        b"](" + glob("collections.OrderedDict") + b")R" + CALL + b"e",
        "os.mkdir",
    ),
    "functools.partial": (
        glob("functools.partial") + tuple_of(MKDIR, NAME) + b"R)R",
        "functools.partial",
    ),
    "operator.methodcaller": (
        glob("operator.methodcaller") + tuple_of(text("mkdir"), NAME) + b"R" + IMPORTED + b"\x85R",
        "operator.methodcaller",
    ),
}

# What would need torch to run, and is refused all the same.
ASKING = {
    "torch.load": glob("torch.load") + NAME + b"\x85R",
    "torch.hub.load": glob("torch.hub.load") + NAME + b"\x85R",
    "torch.jit.load": glob("torch.jit.load") + NAME + b"\x85R",
    "torch._utils._rebuild_sparse_tensor": glob("torch._utils._rebuild_sparse_tensor") + b")R",
    "torch._utils._rebuild_qtensor": glob("torch._utils._rebuild_qtensor") + b")R",
    "torch.nn.modules.linear.Linear": glob("torch.nn.modules.linear.Linear") + b")\x81",
    "__torch__.model.Net": glob("__torch__.model.Net") + b")\x81",
    "numpy.core.multiarray._reconstruct": glob("numpy.core.multiarray._reconstruct") + b")R",
    "_codecs.encode": glob("_codecs.encode") + tuple_of(text("x"), text("latin1")) + b"R",
    "collections.OrderedDict.fromkeys": short("collections")
    + short("OrderedDict.fromkeys")
    + b"\x93",
    "collections.Counter": glob("collections.Counter") + b")R",
    "argparse.Namespace": glob("argparse.Namespace") + b")\x81}b",
    "transformers.training_args.TrainingArguments": glob(
        "transformers.training_args.TrainingArguments"
    )
    + b")\x81",
}


def pickled(value):
    return b"\x80\x04" + value + b"."


def refused(raw, what):
    with pytest.raises(UnsupportedError, match=r"nothing was run|which no tensor needs") as caught:
        opened(raw)
    assert what in caught.value.message


@pytest.mark.format(
    "Other",
    kind="a pickle that runs something",
    model="malicious checkpoints",
    does="refused; nothing of it runs",
)
@pytest.mark.parametrize("name", RUNNING)
def test_nothing_runs(name, nothing_planted):
    value, what = RUNNING[name]
    refused(zipped(pickled(value)), what)
    refused(zipped(state("w", tensor(), "x", value)), what)
    refused(zipped(state("x", value, "w", tensor())), what)
    for place in ("magic", "protocol", "machine", "root", "keys"):
        if place == "magic":  # its first bytes are what tells the format
            continue
        refused(legacy(**{place: pickled(value)}), what)
    assert not nothing_planted.exists()
    copyreg.add_extension("os", "mkdir", 240)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.stderr", None)
            refused(zipped(pickled(value)), what)
            with contextlib.suppress(pickle.UnpicklingError, TypeError, AttributeError, KeyError):
                pickle.loads(pickled(value))
    finally:
        copyreg.remove_extension("os", "mkdir", 240)
    assert nothing_planted.exists(), "the payload is no danger, so that its refusal shows nothing"
    nothing_planted.rmdir()


@pytest.mark.parametrize("name", ASKING)
def test_what_is_asked_for_is_named(name):
    refused(zipped(pickled(ASKING[name])), name)


SIZES = number(0) + tuple_of(number(6)) + tuple_of(number(1)) + b"\x89"
TRICKS = {
    "hooks that are a call": REBUILD + b"(" + storage() + SIZES + CALL + b"tR",
    "a storage's class that is a function": REBUILD
    + b"("
    + storage(kind="os.mkdir")
    + SIZES
    + b"NtR",
    "a storage that is a function": REBUILD + b"(" + MKDIR + SIZES + b"NtR",
    "a type that is a function": glob("torch._tensor._rebuild_from_type_v2")
    + tuple_of(MKDIR, glob("torch.Tensor"), tuple_of(NAME), b"N")
    + b"R",
    "a function that is a type": glob("torch._tensor._rebuild_from_type_v2")
    + tuple_of(REBUILD, MKDIR, b")", b"N")
    + b"R",
    "a parameter of a call": glob("torch._utils._rebuild_parameter") + tuple_of(CALL) + b"R",
    "a state of a dictionary that is a call": glob("collections.OrderedDict") + b")R" + CALL + b"b",
}


@pytest.mark.parametrize("name", TRICKS)
def test_calls_hidden_in_a_tensor(name):
    refused(zipped(state("w", TRICKS[name])), "os.mkdir")


# --- zip files within zip files ------------------------------------------------------------


def test_a_zip_inside_is_never_opened():
    inner = zipped(pickled(CALL))
    raw = zipped(
        state("w", tensor((len(inner),), (1,), count=len(inner), kind="torch.ByteStorage")),
        {"0": inner},
    )
    [info] = opened(raw).header().tensors.values()
    assert raw[info.start : info.stop] == inner


def test_a_zip_behind_a_zip():
    for raw in (zipped() + zipped(pickled(CALL)), zipped(pickled(CALL)) + zipped()):
        with pytest.raises(EmbtoolError):
            opened(raw)


def test_a_zip_in_the_comment_of_a_zip():
    good, bad = zipped(), zipped(pickled(CALL))
    raw = bytearray(good + bad)
    struct.pack_into("<H", raw, len(good) - 2, len(bad))
    with pytest.raises(EmbtoolError):
        opened(bytes(raw))


@pytest.mark.parametrize("place", ["archive/x/data.pkl", "data.pkl", "archive/code/x.py"])
def test_other_members_are_never_opened(place):
    raw = zipped(more={place: pickled(CALL)})
    assert list(opened(raw).shapes) == ["w"]
