"""Headers and configs of real models, and headers made of names and shapes."""

import json
from pathlib import Path

from embtool.config import read_config
from embtool.header import TensorInfo

FACTS = Path(__file__).parent / "facts"


def lines(name):
    return (FACTS / name).read_text(encoding="utf-8").splitlines()


HEADERS = [json.loads(line) for line in lines("headers.jsonl")]
CONFIGS = {
    fact["model"]: read_config(fact["config"], fact["file"])
    for fact in map(json.loads, lines("configs.jsonl"))
    if fact["file"] == "config.json"
}


def info(name, *shape, dtype="BF16"):
    return TensorInfo(name, dtype, shape, 0, 0)


def header(**shapes):
    return {name: info(name, *shape) for name, shape in shapes.items()}
