"""docs/articles.md: what it prints is what the commands print, and what others compute."""

import json
import re
import tomllib
from collections import Counter
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest
from article_blocks import DEEPSEEK_ALONE, ENGLISH, GOLDEN, ROOT, TEXT, blocks, cells, printed
from builders import byte_alphabet
from tokenizers import Tokenizer

import embtool

CHINESE = (ROOT / "docs" / "articles.zh-CN.md").read_text(encoding="utf-8")
CATALOGUE = tomllib.loads(
    (Path(embtool.__file__).parent / "catalogue.toml").read_text(encoding="utf-8")
)["model"]
DEEPSEEK = next(entry for entry in CATALOGUE if entry["name"] == "deepseek-ai/DeepSeek-V3")
VERDICTS = {"holds": "成立", "holds roughly": "大致成立", "does not hold": "不成立"}


def script():
    loader = SourceFileLoader("readme", str(ROOT / "scripts" / "readme"))
    module = module_from_spec(spec_from_loader("readme", loader))
    loader.exec_module(module)
    return module


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
