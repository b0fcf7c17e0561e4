"""docs/formats.md is what the marks of the tests make of it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "formats.md"


@pytest.mark.slow
def test_the_page_is_as_made():
    command = [sys.executable, "scripts/formats", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "formats.md is as made\n"), done.stderr


def test_every_line_names_a_model_and_tests_that_exist():
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    rows = [re.split(r" (?<!\\)\| ", line.strip("| ")) for line in lines if line.startswith("| ")]
    rows = [row for row in rows if row[0] != "kind"]
    assert len(rows) > 50
    for kind, model, does, proofs in rows:
        assert kind and model and does
        for file, test in re.findall(r"`(test_\w+\.py): (\w+)`", proofs):
            assert f"\ndef {test}(" in (ROOT / "tests" / file).read_text(encoding="utf-8"), proofs
