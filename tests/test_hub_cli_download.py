"""`download` and `cache` as people and pipelines see them: lines, bars, paths, and what is kept."""

import hashlib
import json
import os
import pty
import re
import select
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from builders import folder_model
from cli import run
from hub import Hub, in_process, settings
from hub import run as in_a_process
from hub.contents import header_of
from hub.models import INPUT, OUTPUT, SINGLE, Finite, config, put_single, words

from embtool.output import progress
from embtool.source import slices

MODEL = "org/model"


@pytest.fixture
def hub(tmp_path, monkeypatch):
    with Hub() as hub:
        in_process(hub, tmp_path / "home", monkeypatch)
        yield hub


def stored(done):
    """`download -f json` as role -> the file or tensor."""
    assert done.code == 0, done.err
    return {one["role"]: one for one in json.loads(done.out)["stored"]}


def put_both(hub):
    """A model with both tables in one file; the bytes of each."""
    tensors = {INPUT: ("BF16", (500, 64)), OUTPUT: ("BF16", (500, 64))}
    head, nbytes = header_of(tensors)
    content = Finite(head, len(head) + nbytes)
    files = {"config.json": config(500, 64, tie_word_embeddings=False), SINGLE: content}
    hub.put(MODEL, {**files, "tokenizer.json": words({"w1": 1})})
    at = len(head)
    return content[at : at + 64_000], content[at + 64_000 : at + 128_000]


def bytes_of(one):
    return Path(one["path"]).read_bytes()[one["start"] : one["start"] + one["nbytes"]]


def test_what_is_brought_is_told_in_lines(hub, capsys):
    content = put_single(hub)
    done = run(capsys, "download", MODEL)
    rest = len(content) - 128_000
    assert done.err.splitlines() == [
        f"note: fetching {INPUT} of {MODEL}: 128,000 bytes; "
        f"the other {rest:,} bytes of model.safetensors stay there",
        "0% of 128,000 bytes",
        "100% of 128,000 bytes",
    ]
    header, *rows = (line.split("\t") for line in done.out.splitlines())
    assert header == ["role", "name", "nbytes", "start", "path", "sha256"]
    assert [row[:2] for row in rows] == [
        ["config", "config.json"],
        ["tokenizer", "tokenizer.json"],
        ["input", INPUT],
    ]
    _, _, _, start, path, _ = rows[2]
    table = content[len(content) - 128_000 : len(content)]
    assert Path(path).read_bytes()[int(start) :] == table
    assert all(Path(row[4]).is_file() for row in rows)
    again = run(capsys, "download", MODEL)
    assert (again.out, again.err) == (done.out, "")


def test_quiet_is_quiet(hub, capsys):
    put_single(hub)
    assert run(capsys, "download", MODEL, "--shard", "-q").err == ""
    put_single(hub, "org/other")
    assert run(capsys, "neighbors", "w1", "-m", "org/other", "-q").err == ""


def test_either_table_or_both(hub, capsys):
    first, second = put_both(hub)
    found = stored(run(capsys, "download", MODEL, "--table", "output", "-f", "json"))
    assert set(found) == {"config", "tokenizer", "output"}
    assert (found["output"]["name"], bytes_of(found["output"])) == (OUTPUT, second)
    found = stored(run(capsys, "download", MODEL, "--table", "both", "-f", "json"))
    assert (bytes_of(found["input"]), bytes_of(found["output"])) == (first, second)
    found = stored(run(capsys, "download", MODEL, "--table", OUTPUT, "-f", "json"))
    assert bytes_of(found[OUTPUT]) == second
    done = run(capsys, "download", MODEL, "--table", "nope")
    assert (done.code, done.out) == (1, "")
    assert f"no nope table found in {SINGLE}; its matrices: {OUTPUT} [500, 64]" in done.err


def test_one_table_stands_for_both_where_they_are_tied(hub, capsys):
    put_single(hub)
    found = stored(run(capsys, "download", MODEL, "--table", "both", "-f", "json"))
    assert set(found) == {"config", "tokenizer", "input"}
    found = stored(run(capsys, "download", MODEL, "--table", "output", "-f", "json"))
    assert found["output"]["name"] == INPUT


def test_the_whole_shard_is_compared_with_what_is_published(hub, capsys, tmp_path):
    content = put_single(hub)
    done = run(capsys, "download", MODEL, "--shard", "-f", "json")
    found = stored(done)["input"]
    assert found["path"].startswith(str(tmp_path / "home/hub/models--org--model/snapshots"))
    assert Path(found["path"]).read_bytes() == content[0 : len(content)]
    assert bytes_of(found) == content[len(content) - 128_000 : len(content)]
    assert done.err.splitlines()[-1] == (
        f"note: comparing {SINGLE} with the sha256 that the Hub publishes for it"
    )


def test_verify_tells_the_sha256_of_the_table(hub, capsys):
    content = put_single(hub)
    right = hashlib.sha256(content[len(content) - 128_000 : len(content)]).hexdigest()
    run(capsys, "download", MODEL)
    found = stored(run(capsys, "download", MODEL, "--verify", "-f", "json"))
    assert (found["input"]["sha256"], found["config"]["sha256"]) == (right, None)
    (slice_,) = hub_home().rglob(f"{INPUT}.safetensors")
    slice_.write_bytes(slice_.read_bytes()[:-3] + b"rot")
    done = run(capsys, "download", MODEL, "--verify")
    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines()[-2:] == [
        f"error: {MODEL}: the slice {slice_} does not hold the bytes of {INPUT}",
        "  try: it is removed; run the command again",
    ]
    assert run(capsys, "download", MODEL, "--verify").code == 0


def hub_home():
    from embtool.source.derived import assets

    return assets()


def test_a_model_of_this_machine_has_its_paths_and_no_shard(hub, capsys, tmp_path):
    folder = folder_model(tmp_path / "m", np.ones((4, 2), np.float32), ["a", "b", "c", "d"])
    found = stored(run(capsys, "download", str(folder), "-f", "json"))
    assert found["input"]["path"] == str(folder / SINGLE)
    done = run(capsys, "download", str(folder), "--shard")
    assert (done.code, done.err.count("\n")) == (1, 2)
    assert hub.log == []


def test_what_is_kept_is_listed_and_removed(hub, capsys):
    put_single(hub)
    put_single(hub, "org/other", rows=500)
    run(capsys, "lookup", "w1", "-m", MODEL)
    run(capsys, "neighbors", "w1", "-m", "org/other")
    (_, *lines) = run(capsys, "cache").out.splitlines()
    kept = {tuple(line.split("\t")[i] for i in (0, 2, 3)) for line in lines}
    assert kept == {
        (MODEL, "rows", INPUT),
        (MODEL, "headers", ""),
        (MODEL, "derived", ""),
        ("org/other", "table", INPUT),
        ("org/other", "headers", ""),
        ("org/other", "derived", ""),
    }
    for line in lines:
        model, commit, kind, _, nbytes, used, path = line.split("\t")
        assert commit == ("" if kind == "derived" else hub.repos[model].refs["main"])
        assert int(nbytes) > 0
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", used)
        assert Path(path).exists()
    total = sum(int(line.split("\t")[4]) for line in lines)
    shown = run(capsys, "cache", "-f", "table").out
    assert shown.startswith(f"{total:,} bytes (")
    assert str(hub_home()) not in shown

    mine = sum(int(line.split("\t")[4]) for line in lines if line.startswith(MODEL))
    done = run(capsys, "cache", "rm", f"{MODEL}@main")
    assert (done.code, done.out) == (0, "")
    assert done.err == f"{MODEL}@main: {mine:,} bytes removed\n"
    (_, *lines) = run(capsys, "cache").out.splitlines()
    assert {line.split("\t")[0] for line in lines} == {"org/other"}
    done = run(capsys, "cache", "rm", MODEL)
    assert (done.code, done.err) == (
        1,
        f"error: {MODEL}: nothing is kept of it\n  try: see what is: embtool cache\n",
    )
    assert run(capsys, "cache", "path").out == f"{hub_home()}\n"
    assert run(capsys, "cache", "rm", "org/other", "-q").err == ""
    assert run(capsys, "cache", "-f", "json").out == '{"pieces": []}\n'


def test_what_was_computed_from_a_folder_is_kept_and_removed_too(hub, capsys, tmp_path):
    table = np.arange(1, 9, dtype=np.float32).reshape(4, 2)
    folder = str(folder_model(tmp_path / "m", table, ["a", "b", "c", "d"]))
    run(capsys, "neighbors", "a", "-m", folder)
    pieces = json.loads(run(capsys, "cache", "-f", "json").out)["pieces"]
    assert {(piece["model"], piece["kind"]) for piece in pieces} == {(None, "derived")}
    assert run(capsys, "cache", "rm", folder).code == 0
    assert json.loads(run(capsys, "cache", "-f", "json").out) == {"pieces": []}
    assert run(capsys, "neighbors", "a", "-m", folder).code == 0


def test_a_cache_that_cannot_be_written_refuses_a_table_and_loses_nothing(hub, capsys, tmp_path):
    put_single(hub)
    assert run(capsys, "lookup", "w1", "-m", MODEL).code == 0
    (blob,) = {path.parent for path in hub_home().rglob("*.rows")}
    (blob / f"{INPUT}.safetensors.part").mkdir()
    done = run(capsys, "download", MODEL, "-q")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"error: the cache {blob} cannot be written: ")
    assert done.err.endswith(
        "  try: free some space, or point HF_HOME to a folder that can be written\n"
    )
    hub.log.clear()
    assert run(capsys, "lookup", "w1", "-m", MODEL).code == 0
    assert hub.sent() == 0
    (blob / f"{INPUT}.safetensors.part").rmdir()
    assert run(capsys, "download", MODEL, "-q").code == 0


def on_a_terminal(hub, home, args):
    """What a terminal of 100 columns gets from a command, and its exit code."""
    code = "from embtool.cli import main; main()"
    terminal, side = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-c", code, *args],
        env=settings(hub, home, TERM="xterm-256color", COLUMNS="100"),
        stdin=side,
        stdout=side,
        stderr=side,
    )
    os.close(side)
    seen = b""
    while select.select([terminal], [], [], 60)[0]:
        try:
            seen += os.read(terminal, 1 << 16)
        except OSError:
            break
    os.close(terminal)
    return seen.decode(), child.wait(60)


def test_a_terminal_gets_a_bar_that_leaves_nothing_behind(tmp_path):
    with Hub() as hub:
        put_single(hub, rows=20_000, width=640)
        hub.rate = 10e6
        seen, code = on_a_terminal(hub, tmp_path, ["download", MODEL])
        assert code == 0
        assert re.search(r"\d+\.\d/25\.6 MB [\d.]+ MB/s \d:\d\d:\d\d", seen)
        # The cursor is back, and the last thing written over the bar is the answer.
        assert seen.rindex("\x1b[?25h") > seen.rindex("\x1b[?25l")
        answer = seen[seen.rindex("\x1b[?25h") :]
        assert f"{MODEL} at {hub.repos[MODEL].refs['main'][:8]}" in answer
        (path,) = tmp_path.rglob(f"{INPUT}.safetensors")
        assert f"{path}" in answer
        path.unlink()
        hub.rate = None
        hub.fault("416", SINGLE, after=1, times=99)
        seen, code = on_a_terminal(hub, tmp_path, ["download", MODEL])
        assert code == 1
        assert "answers a range of model.safetensors with 416" in seen
        assert seen.rindex("\x1b[?25h") > seen.rindex("\x1b[?25l")


def test_progress_counts_bytes_as_they_come(hub, capsys, monkeypatch):
    monkeypatch.setattr(slices, "STEP", 2 << 20)
    monkeypatch.setattr(progress, "_STEP", 5)
    put_single(hub, rows=20_000, width=100)
    hub.fault("short", SINGLE, after=1)
    done = run(capsys, "download", MODEL)
    percents = [int(line.split("%")[0]) for line in done.err.splitlines() if "%" in line]
    assert percents == sorted(set(percents))
    assert (percents[0], percents[-1]) == (0, 100)
    assert len(percents) > 8


@pytest.mark.slow
def test_two_commands_at_once_make_one_download(tmp_path):
    with Hub() as hub:
        put_single(hub, rows=20_000, width=640)
        hub.rate = 10e6
        answers = []

        def ask():
            answers.append(in_a_process(hub, tmp_path, ["neighbors", "w1", "-m", MODEL, "-k", "3"]))

        threads = [threading.Thread(target=ask) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {answer.returncode for answer in answers} == {0}
        assert answers[0].stdout == answers[1].stdout
        big = [asked for asked in hub.bodies() if asked.sent == slices.STEP]
        assert len(big) == len({asked.asked_range for asked in big}) == 3
