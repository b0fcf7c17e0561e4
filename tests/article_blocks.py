"""What docs/articles.md prints, block by block, and the figures that it is compared with."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENGLISH = (ROOT / "docs" / "articles.md").read_text(encoding="utf-8")
GOLDEN = json.loads((ROOT / "tests/golden/gemma-3-270m.json").read_text(encoding="utf-8"))
DEEPSEEK_ALONE = """embtool models -f tsv | awk -F '\\t' '$1 == "deepseek-ai/DeepSeek-V3" """
TEXT = "今天西安的天气怎么样"


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
