"""docs/json.md against what the commands write: the same fields, no more and no fewer."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from builders import folder_model, write_safetensors
from cli import run
from hub import Hub, in_process

PAGE = Path(__file__).parents[1] / "docs" / "json.md"
ROW = re.compile(r"\| `(?P<field>[^`]+)` \| (?P<what>.+) \|")
PART = re.compile(r"\[(?P<part>[A-Z]+)\]\(#[a-z]+\)")
#: Objects whose names are no fields: precisions, methods, percentiles.
NAMED = ("memory", "methods", "percentiles")


def documented():
    """Section -> its fields; a part that a row links to stands for the part's own fields."""
    sections = re.split(r"^#{2,3} (.+)\n", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    rows = {
        name: [(m["field"], m["what"]) for m in map(ROW.fullmatch, text.splitlines()) if m]
        for name, text in zip(sections[1::2], sections[2::2])
    }
    return {name: _expanded(fields, rows) for name, fields in rows.items()}


def _expanded(fields, rows):
    found = set()
    for field, what in fields:
        part = PART.fullmatch(what)
        inner = _expanded(rows[part["part"]], rows) if part else ()
        found |= {f"{field}.{each}" for each in inner} if part else {field}
    return found


def paths(value, path=""):
    """The fields of an answer: `tokens[].id`, `memory.*`."""
    if isinstance(value, dict):
        named = path.rpartition(".")[2] in NAMED
        for key, inner in value.items():
            yield from paths(inner, ".".join(filter(None, (path, "*" if named else key))))
    elif isinstance(value, list):
        yield from (each for inner in value for each in paths(inner, f"{path}[]"))
        if not value:
            yield f"{path}[]"
    else:
        yield path


WORDS = ["king", "queen", "man", "woman", "the", "猫", "狗", "twin", "same", "nothing", "broken"]


def table(seed):
    values = np.random.default_rng(seed).standard_normal((len(WORDS) + 1, 6)).astype(np.float32)
    values[7] = values[8]
    values[9] = 0
    values[10, 0] = np.nan
    values[5] = values[6] * 1.0001
    return values


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with two models of one tokenizer, one of another width, and question files."""
    folder = tmp_path_factory.mktemp("json")
    folder_model(folder / "m", table(1), WORDS)
    changed = table(1)
    changed[2] *= -1
    longer = np.concatenate([changed, changed[:2] + 1])
    folder_model(folder / "other", longer, [*WORDS[:4], "a", *WORDS[5:], "x", "y", "z"])
    folder_model(folder / "wide", np.eye(11, 7, dtype=np.float32), WORDS)
    write_safetensors(folder / "plain.safetensors", {"embedding.weight": table(2)})
    (folder / "questions.txt").write_text(": royal\nking man queen woman\nking man queen gone\n")
    (folder / "rows.txt").write_text("king\nqueen\n")
    return folder


#: Section -> commands whose answers together have all of its fields.
COMMANDS = {
    "params": ["params {m}"],
    "models": ["models"],
    "tokens": ["tokens king -m {m}"],
    "find": ["find king -m {m}"],
    "lookup": ["lookup king -m {m}"],
    "neighbors": ["neighbors king -m {m}"],
    "rank": ["rank king queen -m {m}"],
    "similarity": [
        "similarity king queen -m {m}",
        "similarity --rows {p}/rows.txt --cols {p}/rows.txt -m {m}",
    ],
    "analogy": ["analogy king man woman -m {m}"],
    "evaluate": ["evaluate {p}/questions.txt -m {m}"],
    "explain": ["explain 今天天气 -m gemma-3-270m --random"],
    "compare": ["compare king queen -m {m}", "compare king king -m {m}"],
    "dimensions": ["dimensions king -m {m}", "dimensions --index 3 -m {m}"],
    "stats": ["stats -m {m}"],
    "undertrained": ["undertrained -m {m}"],
    "diff": ["diff {m} {p}/other", "diff {p}/other {m}", "diff {m} {p}/wide"],
    "graph": ["graph --ids 0,1 -m {m}"],
    "plot": ["plot king queen man --neighbors 1 -m {m}", "plot --norms -m {m}"],
}


#: The same where a Hub is needed.
FAR = {"download": "download org/model", "cache": "cache"}


def test_every_section_is_compared():
    parts = {"Parts", "TOKEN", "WORD", "ROWS", "CHANCE"}
    assert documented().keys() - parts == COMMANDS.keys() | FAR.keys()


def compare(section, written):
    """What is empty or null in one answer has its fields in another."""
    whole = {
        field
        for field in written
        if not any(each.startswith((f"{field}.", f"{field}[")) for each in written)
    }
    page = documented()[section]
    assert (sorted(whole - page), sorted(page - whole)) == ([], [])


def answer(capsys, command):
    done = run(capsys, *command.split(), "-f", "json")
    assert done.out, done.err
    return set(paths(json.loads(done.out)))


@pytest.mark.parametrize("section", COMMANDS)
def test_the_page_lists_the_fields_that_the_commands_write(capsys, place, section):
    asked = [command.format(m=place / "m", p=place) for command in COMMANDS[section]]
    compare(section, set().union(*(answer(capsys, command) for command in asked)))


def test_the_same_of_what_is_fetched_and_kept(capsys, place, tmp_path, monkeypatch):
    with Hub() as hub:
        in_process(hub, tmp_path / "home", monkeypatch)
        hub.put("org/model", {path.name: path for path in (place / "m").iterdir()})
        for section, command in FAR.items():
            compare(section, answer(capsys, command))
