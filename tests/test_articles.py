"""docs/articles.md: what it prints is what the commands print, and what others compute."""

import json
import re
import tomllib
from collections import Counter
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import numpy as np
import pytest
from builders import byte_alphabet
from explain_builders import cosine, q8_0
from scipy.stats import spearmanr
from tokenizers import Tokenizer

import embtool
from embtool.model import Model

ROOT = Path(__file__).resolve().parent.parent
ENGLISH = (ROOT / "docs" / "articles.md").read_text(encoding="utf-8")
CHINESE = (ROOT / "docs" / "articles.zh-CN.md").read_text(encoding="utf-8")
GOLDEN = json.loads((ROOT / "tests/golden/gemma-3-270m.json").read_text(encoding="utf-8"))
CATALOGUE = tomllib.loads(
    (Path(embtool.__file__).parent / "catalogue.toml").read_text(encoding="utf-8")
)["model"]
DEEPSEEK = next(entry for entry in CATALOGUE if entry["name"] == "deepseek-ai/DeepSeek-V3")
DEEPSEEK_ALONE = """embtool models -f tsv | awk -F '\\t' '$1 == "deepseek-ai/DeepSeek-V3" """
VERDICTS = {"holds": "成立", "holds roughly": "大致成立", "does not hold": "不成立"}
TEXT = "今天西安的天气怎么样"


def script():
    loader = SourceFileLoader("readme", str(ROOT / "scripts" / "readme"))
    module = module_from_spec(spec_from_loader("readme", loader))
    loader.exec_module(module)
    return module


def blocks(page):
    return re.findall(r"```console\n(.*?)```", page, re.DOTALL)


def printed(start):
    """What the page says that the command prints which starts so."""
    for block in blocks(ENGLISH):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            if command.startswith(start):
                return output.splitlines()
    raise AssertionError(start)


def cells(line):
    return [cell.strip() for cell in re.split(r" {3,}", line.strip())]


@pytest.fixture(scope="module")
def stored(gemma_path):
    return Model.open("gemma-3-270m").table().stored


@pytest.fixture(scope="module")
def nearest(stored):
    """The k rows nearest to a vector by a scan of its own: decoded here, scored in float64."""

    def nearest(vector, k):
        scores = np.empty(len(stored))
        for start in range(0, len(stored), 8192):
            rows = q8_0(stored[start : start + 8192])
            scores[start : start + 8192] = rows @ vector / np.linalg.norm(rows, axis=1)
        ids = np.argsort(-scores)[:k]
        return list(zip(ids.tolist(), (scores[ids] / np.linalg.norm(vector)).tolist()))

    return nearest


@pytest.mark.slow
def test_the_page_is_as_made(gemma_path, monkeypatch):
    monkeypatch.delenv("DEEPSEEK_TOKENIZER", raising=False)
    readme = script()
    for block in blocks(ENGLISH):
        assert readme.remake(block) == block


def test_both_languages_show_the_same():
    assert blocks(CHINESE) == blocks(ENGLISH)
    verdicts = re.findall(r"^Verdict: \*\*(.*)\*\*$", ENGLISH, re.MULTILINE)
    assert [VERDICTS[verdict] for verdict in verdicts] == re.findall(
        r"^结论：\*\*(.*)\*\*$", CHINESE, re.MULTILINE
    )
    for page, words in ((ENGLISH, VERDICTS.keys()), (CHINESE, VERDICTS.values())):
        claims = re.findall(r"^### (\d+)\. (.*)$", page, re.MULTILINE)
        listed = re.findall(r"^\| (\d+) \| (.*) \| (.*) \|$", page, re.MULTILINE)
        assert [row[:2] for row in listed] == claims
        order = dict(zip(VERDICTS, words))
        assert [row[2] for row in listed] == [order[verdict] for verdict in verdicts]
    assert len(verdicts) == 21


def test_both_readmes_show_the_same():
    pages = [(ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.zh-CN.md")]
    commands = [re.findall(r"^\$ .*", "".join(blocks(page)), re.MULTILINE) for page in pages]
    assert commands[0] == commands[1]
    assert blocks(pages[0]) == blocks(pages[1])
    other = [re.findall(r"```(?!console).*?```", page, re.DOTALL) for page in pages]
    assert len(other[0]) == len(other[1])
    assert [page.count("\n## ") for page in pages] == [pages[0].count("\n## ")] * 2


def test_ids_and_tokens_by_the_tokenizers_themselves(deepseek_tokenizer):
    raw = json.loads(deepseek_tokenizer.read_text(encoding="utf-8"))["model"]["vocab"]
    spelled = {token_id: token for token, token_id in raw.items()}
    to_byte = {letter: byte for byte, letter in byte_alphabet().items()}

    def row(position, token_id):
        text = bytes(to_byte[letter] for letter in spelled[token_id]).decode()
        return f"{position}\t{token_id}\t{text}\t{spelled[token_id]}"

    beside = printed("embtool tokens --ids 5236,5237,5238")
    assert beside[1:] == [row(i, 5236 + i) for i in range(3)]
    assert [line.split("\t")[2] for line in beside[1:]] == ["责任", "今天", " output"]
    ids = Tokenizer.from_file(str(deepseek_tokenizer)).encode(f"{TEXT}？").ids
    lines = printed(f"embtool tokens {TEXT}？ --tokenizer")
    assert lines[1:] == [row(i, token_id) for i, token_id in enumerate(ids)]
    golden = next(case["ids"] for case in GOLDEN["texts"] if case["text"] == f"{TEXT}？")
    lines = printed(f"embtool tokens {TEXT}？ -f tsv")
    assert [int(line.split("\t")[1]) for line in lines[1:]] == golden


def test_widths_over_the_catalogue():
    widths = Counter(entry["width"] for entry in CATALOGUE)
    lines = [line.split() for line in printed("embtool models -f tsv --no-header | cut -f 3 ")]
    assert [(int(width), int(count)) for count, width in lines] == sorted(widths.items())
    (width, count), *_ = widths.most_common()
    assert width == 4096
    assert count < len(CATALOGUE) / 2


def test_the_shape_of_deepseek_and_its_share():
    sizes = DEEPSEEK["vocab_size"], DEEPSEEK["width"]
    assert sizes == (129_280, 7_168)
    shape = printed("embtool models -f tsv | grep -E '^(name|deepseek-ai")
    assert shape[1].split("\t") == ["deepseek-ai/DeepSeek-V3", *map(str, sizes)]
    facts = dict(map(cells, printed("embtool params --vocab-size 129280 --d-model 4096")[2:]))
    assert facts["parameters"] == f"{129_280 * 4_096:,}" == "529,530,880"
    assert facts["share of the model"] == f"{129_280 * 4_096 / 8e9:.1%}" == "6.6%"
    table = 129_280 * 7_168
    share = 2 * table / DEEPSEEK["total_params"]
    assert printed(DEEPSEEK_ALONE + '{printf "%d') == [
        f"{table} parameters, with the output table {share:.2%}"
    ]
    assert printed(DEEPSEEK_ALONE + "{print $2") == [
        f"{DEEPSEEK['vocab_size']} rows, {DEEPSEEK['tokens']} tokens"
    ]
    gemma = printed("embtool params gemma-3-270m -q -f tsv")[1].split("\t")
    assert gemma[:4] == ["", "262144", "640", str(262_144 * 640)]
    assert float(gemma[5]) == 262_144 * 640 / int(gemma[4])


def test_tied_over_the_catalogue():
    tied = Counter(entry.get("tied") for entry in CATALOGUE)
    lines = [line.split() for line in printed("embtool models -f tsv --no-header | cut -f 5 ")]
    names = {"true": True, "false": False}
    assert {names.get(line[1]) if line[1:] else None: int(line[0]) for line in lines} == tied


def test_one_hot_vectors(stored):
    assert printed(DEEPSEEK_ALONE + '{printf "%.4f') == [f"{np.mean(np.eye(1, 129_280) == 0):.4%}"]
    zeros = dict(map(cells, printed(f"embtool explain {TEXT} | grep -E '^ (length")))["zeros"]
    assert zeros == f"{np.mean(np.eye(1, 262_144) == 0):.4%}"
    (apart,) = printed(f"embtool explain {TEXT} | grep -E '^ any two")
    eye = np.eye(5)
    assert f"{np.linalg.norm(eye[0] - eye[3]):.4f}" in apart
    ids = next(case["ids"] for case in GOLDEN["texts"] if case["text"] == TEXT)
    product = np.zeros((5, 640))
    for start in range(0, len(stored), 8192):
        numbers = np.arange(start, min(start + 8192, len(stored)))
        one_hot = np.equal.outer(ids, numbers).astype(np.float64)
        product += one_hot @ q8_0(stored[numbers[0] : numbers[-1] + 1])
    assert np.array_equal(product, q8_0(stored[ids]))
    (said,) = printed(f"embtool explain {TEXT} | grep -E '^ one-hot")
    assert said.endswith("all 262,144 rows, it is the 5 rows of E that a lookup reads, bit for bit")
    (read,) = printed(f"embtool explain {TEXT} | grep -E '^Read")
    share = len(ids) / 262_144
    assert read == f"Read for it: 5 of 262,144 rows, 3,400 bytes, {share:.4%} of the table."


def test_the_matrix_and_the_rows_beside_its_own(stored):
    ids = next(case["ids"] for case in GOLDEN["texts"] if case["text"] == TEXT)
    lines = [line.split() for line in printed(f"embtool lookup {TEXT} --dims 4")[4:9]]
    for line, row in zip(lines, q8_0(stored[ids])):
        assert line[-5:] == [f"{number:.4f}" for number in (np.linalg.norm(row), *row[:4])]
    beside = [line.split() for line in printed(f"embtool explain {TEXT} | grep -A 9")[4:]]
    for line, token_id in zip(beside, ids):
        before, row, after = q8_0(stored[token_id - 1 : token_id + 2])
        assert line[0] == str(token_id)
        assert line[3] == f"{cosine(row, before):.4f}"
        assert line[-1] == f"{cosine(row, after):.4f}"


def sample(stored):
    """The pairs that `explain` draws, and their cosines: computed here."""
    generator = np.random.default_rng(0)
    first = generator.integers(262_144, size=4_096)
    second = generator.integers(262_143, size=4_096)
    second += second >= first
    unit = [q8_0(stored[ids]) for ids in (first, second)]
    unit = [rows / np.linalg.norm(rows, axis=1)[:, None] for rows in unit]
    return np.abs(first - second), (unit[0] * unit[1]).sum(axis=1)


def test_chance_and_the_rank_of_ids(stored):
    apart, cosines = sample(stored)
    correlation = spearmanr(apart, cosines).statistic
    lines = printed(f"embtool explain {TEXT} | grep -A 1 '^Over")
    assert lines[1].startswith(f"is {correlation:.4f}: ")
    assert abs(correlation) == pytest.approx(4 / np.sqrt(4_096), rel=0.15)
    low, high = np.percentile(cosines, [1, 99])
    chance = printed("embtool similarity 猫")[-3:-1]
    assert chance[0].endswith(f" have the mean {cosines.mean():.4f}")
    assert chance[1] == (
        f"and the deviation {cosines.std():.4f}; 98 of 100 lie between {low:.4f} and {high:.4f}"
    )
    assert np.mean(cosines < 0.6455) > 0.99
    assert np.mean(cosines < 0.4362) == pytest.approx(0.97, abs=0.005)
    assert np.mean(cosines >= 0.5) == pytest.approx(1 / 50, abs=0.002)
    assert printed(f"embtool explain {TEXT} --random | grep")[-1] == (
        f"in the trained table 0.5 is {(0.5 - cosines.mean()) / cosines.std():.1f} deviations"
    )
    assert 0.5 * np.sqrt(640) > 12


def test_cosines(stored):
    words, matrix = GOLDEN["similarity"]["words"], GOLDEN["similarity"]["matrix"]
    lines = [cells(line) for line in printed("embtool similarity 猫")[2:8]]
    names = lines[0][1:]
    for line in lines[2:]:
        for name, shown in zip(names, line[1:]):
            expected = matrix[words.index(line[0])][words.index(name)]
            assert float(shown) == pytest.approx(expected, abs=6e-5)
    rows = q8_0(stored[[3425, 7445, 6962]])  # " hot", " cold", " warm"
    lines = [cells(line) for line in printed("embtool similarity hot cold warm")[4:7]]
    for line, row in zip(lines, rows):
        assert line[1:] == [f"{cosine(row, other):.4f}" for other in rows]
    assert cosine(rows[0], rows[1]) > cosine(rows[0], rows[2])


@pytest.mark.parametrize(
    ("words", "ids", "golden"),
    [
        ("king man woman", (9615, 880, 3875), [" king", " man", " woman"]),
        ("国王 男人 女人", (146935, 62626, 56891), ["国王", "男人", "女人"]),
    ],
)
def test_analogies_with_words_left_out_and_not(stored, nearest, words, ids, golden):
    case = next(case for case in GOLDEN["analogies"] if case["terms"] == golden)
    lines = [cells(line) for line in printed(f"embtool analogy {words} -k 3")[4:7]]
    assert [int(line[1]) for line in lines] == [answer["id"] for answer in case["top"][:3]]
    scores = [answer["score"] for answer in case["top"][:3]]
    assert [float(line[-1]) for line in lines] == pytest.approx(scores, abs=6e-5)
    a, b, c = q8_0(stored[list(ids)])
    lines = [cells(line) for line in printed(f"for word in {words};")[4:7]]
    expected = [(str(row), f"{score:.4f}") for row, score in nearest(a - b + c, 3)]
    assert [(line[1], line[-1]) for line in lines] == expected


def test_dimensions(stored):
    (king,) = q8_0(stored[[9615]])
    order = np.argsort(-np.abs(king), kind="stable")[:3]
    lines = [cells(line) for line in printed("embtool dimensions king")[4:7]]
    for line, dimension in zip(lines, order):
        share = king[dimension] ** 2 / (king @ king)
        assert line[1:4] == [str(dimension), f"{king[dimension]:.4f}", f"{share:.4f}"]
    # Dimension 583 is byte 7 of block 18 of each row.
    scales = stored[:, 18 * 34 : 18 * 34 + 2].copy().view(np.float16)[:, 0].astype(np.float64)
    column = scales * stored[:, 18 * 34 + 2 + 7].view(np.int8)
    lines = [line.split() for line in printed("embtool dimensions --index 583")[4:14]]
    ids = np.arange(len(column))
    ends = [np.lexsort((ids, -column))[:5], np.lexsort((ids, column))[:5]]
    expected = [(str(row), f"{column[row]:.4f}") for row in np.concatenate(ends)]
    assert [(line[2], line[-1]) for line in lines] == expected
    rows = f"over 262,144 rows its mean is {column.mean():.4f}, its deviation {column.std():.4f}"
    assert printed("embtool dimensions --index 583")[-2] == rows


def test_order_and_context(stored):
    ids = [237169, 238606, 68004]
    golden = {case["text"]: case["ids"] for case in GOLDEN["texts"]}
    assert (golden["我吃苹果"], golden["苹果吃我"]) == (ids, ids[::-1])
    assert sorted(golden["狗咬人"]) == sorted(golden["人咬狗"])
    lines = printed("embtool compare 我吃苹果 苹果吃我")
    assert lines[-2:] == [
        "B is A's rows in another order: 2 1 0",
        "Their mean rows are identical, bit for bit: no order is in the rows.",
    ]
    texts = [[68004, 34079, 237089, 237365, 24103], [237169, 238606, 42607, 68004]]
    means = [q8_0(stored[ids]).mean(axis=0) for ids in texts]
    lines = printed("embtool compare 苹果发布了新设备 我吃了一个苹果")
    shown = [line.split() for line in lines[4:9]]
    assert [int(line[1]) for line in shown] == texts[0]
    assert [int(line[3]) for line in shown[:4]] == texts[1]
    assert lines[-1] == f"Their mean rows have the cosine {cosine(*means):.4f}."


def test_what_a_new_token_costs():
    assert printed("embtool params gemma-3-270m --add-tokens 1 -f") == [
        f"1 more row of 640: {1 * 640} parameters, once, as the tables are tied"
    ]
    assert printed("embtool params --vocab-size 129280 --d-model 7168 --add-tokens 1") == [
        f"1 more row of 7,168: {7_168:,} parameters where the tables are tied, "
        f"{2 * 7_168:,} where they are not"
    ]
    padded = -(-262_145 // 64) * 64
    assert printed("embtool params gemma-3-270m --add-tokens 1 --pad-to 64") == [
        f"{padded - 262_145} rows without a token: {padded:,} rows, 262,145 tokens",
        f"{padded - 262_144} more rows of 640: {(padded - 262_144) * 640:,} parameters, once, as "
        "the tables are tied",
    ]
