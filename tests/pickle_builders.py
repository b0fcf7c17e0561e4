"""Pickles and torch files made by hand, operation by operation, and how they are opened."""

import io
import pickle
import struct
import zipfile
from pathlib import Path

from embtool.pickles import read_pickle

FILES = Path(__file__).parent / "files"
PLANTED = "planted-by-a-pickle"


def opened(raw, file="x.bin"):
    return read_pickle(lambda start, stop: raw[start:stop], len(raw), file)


def watched(tmp_path, monkeypatch):
    """A fixture's function: what a payload would plant, which must not be there in the end."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path / PLANTED
    assert not (tmp_path / PLANTED).exists()


def text(value):
    raw = value.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


def glob(name):
    module, _, attribute = name.rpartition(".")
    return b"c" + module.encode() + b"\n" + attribute.encode() + b"\n"


def number(value):
    return b"J" + struct.pack("<i", value)


def tuple_of(*parts):
    return b"(" + b"".join(parts) + b"t"


def storage(key="0", count=6, kind="torch.FloatStorage"):
    return tuple_of(text("storage"), glob(kind), text(key), text("cpu"), number(count)) + b"Q"


REBUILD = glob("torch._utils._rebuild_tensor_v2")


def tensor(shape=(2, 3), strides=(3, 1), first=0, **where):
    """A call of _rebuild_tensor_v2, as torch writes it."""
    sides = tuple_of(*map(number, shape))
    steps = tuple_of(*map(number, strides))
    hooks = glob("collections.OrderedDict") + b")R"
    parts = tuple_of(storage(**where), number(first), sides, steps, b"\x89", hooks)
    return REBUILD + parts + b"R"


def state(*pairs):
    """A whole pickle of a dictionary; names and the pickles of their values by turns."""
    items = b"".join(text(p) if isinstance(p, str) else p for p in pairs)
    return b"\x80\x02}(" + items + b"u."


GOOD = state("w", tensor())


def zipped(data=GOOD, storages=None, *, folder="archive", more=None, method=zipfile.ZIP_STORED):
    """A zip file as torch lays it out."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        archive.writestr(f"{folder}/data.pkl", data)
        for key, raw in (storages or {"0": struct.pack("<6f", *range(6))}).items():
            archive.writestr(f"{folder}/data/{key}", raw)
        for name, raw in (more or {}).items():
            archive.writestr(name, raw)
    return made.getvalue()


STORED = (("0", 6, struct.pack("<6f", *range(6))),)


def legacy(root=GOOD, storages=STORED, **changed):
    """The older format: five pickles, then count and bytes of each storage."""
    pickles = {
        "magic": pickle.dumps(0x1950_A86A_20F9_469C_FC6C, 2),
        "protocol": pickle.dumps(1001, 2),
        "machine": pickle.dumps({"little_endian": True}, 2),
        "root": root,
        "keys": pickle.dumps([key for key, _, _ in storages], 2),
    }
    tail = [struct.pack("<q", count) + raw for _, count, raw in storages]
    return b"".join((pickles | changed).values()) + b"".join(tail)
