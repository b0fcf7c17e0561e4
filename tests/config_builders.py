"""The real configs of facts/configs.jsonl, and a config made of claims."""

import json
from pathlib import Path

from embtool.config import read_config

FACTS = Path(__file__).parent / "facts" / "configs.jsonl"
REAL = [json.loads(line) for line in FACTS.read_text(encoding="utf-8").splitlines()]


def read(**claims):
    return read_config(claims, "config.json")
