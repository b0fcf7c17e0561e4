"""Downloads cut short by errors, kills and full disks: resumed, and nothing is fetched twice."""

import hashlib
import json
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from download_builders import (
    FILE,
    INPUT,
    ROW,
    ROWS,
    finish,
    hub_without_waits,
    open_,
    put,
    silent,
    stored,
    tensor_of,
)
from hub import Hub, run, settings

from embtool.errors import SourceError
from embtool.source import held
from embtool.source import ranges as source_ranges
from embtool.source.ranges import STEP

hub = pytest.fixture(hub_without_waits)


def ranges(hub):
    return [asked.asked_range for asked in hub.log if asked.origin == "cdn"]


def interrupted(hub, keep=2):
    """A part whose first `keep` ranges are whole."""
    content = put(hub)
    source = open_()
    tensor = tensor_of(source)
    hub.fault("416", FILE, after=keep, times=99)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SourceError, match="416"):
        patch.setattr(source_ranges, "WORKERS", 1)
        source.fetch(FILE, tensor, silent)
    hub._faults.clear()
    hub.log.clear()
    part = source._slice(FILE, tensor).with_suffix(".safetensors.part")
    log = part.with_name(part.name + ".log")
    assert _whole(log) == set(range(keep))
    return content, tensor, part, log


def test_an_error_loses_nothing_that_had_arrived(hub):
    content, tensor, _, _ = interrupted(hub, keep=3)
    seen = []
    path, start = open_().fetch(FILE, tensor, lambda done, total: seen.append(done))
    assert stored(path, start, tensor) == content[tensor.start : tensor.stop]
    assert len(ranges(hub)) == 2
    # The first of the missing ranges comes alone, to see that it is of the same object.
    assert (seen[0], seen[-1]) == (4 * STEP, 5 * STEP)
    assert seen == sorted(seen)


def test_a_range_that_rotted_in_the_part_is_fetched_again(hub):
    content, tensor, part, log = interrupted(hub)
    index = int(log.read_text().splitlines()[-1].split()[0])
    start = json.loads(log.read_text().splitlines()[0])["start"]
    with part.open("r+b") as file:
        file.seek(start + index * STEP + 5)
        file.write(bytes(100))
    finish(content, tensor)
    first = tensor.start + index * STEP
    assert f"bytes={first}-{first + STEP - 1}" in ranges(hub)


def test_a_log_cut_short_costs_one_range(hub):
    content, tensor, _, log = interrupted(hub)
    log.write_bytes(log.read_bytes()[:-3])
    finish(content, tensor)
    assert len(ranges(hub)) == 5 - 2 + 1


@pytest.mark.parametrize("what", ["part", "log", "plan"])
def test_half_of_a_part_is_as_good_as_none(hub, what):
    content, tensor, part, log = interrupted(hub)
    if what == "plan":
        log.write_text(log.read_text().replace(INPUT, "another"))
    else:
        (part if what == "part" else log).unlink()
    finish(content, tensor)
    assert len(ranges(hub)) == 5


def test_a_part_of_another_object_at_the_cdn_is_begun_again(hub):
    content, tensor, _, log = interrupted(hub)
    log.write_text(log.read_text().replace("cdn-", "old-"))
    finish(content, tensor)
    assert len(set(ranges(hub))) == 5


_FETCH = """
import sys
from embtool.header import read_header
from embtool.errors import SourceError
from embtool.source.hub import open_hub
source = open_hub("org/model", "org/model")
read = lambda a, b: source.bytes("model.safetensors", a, b)
header = read_header(read, source.size("model.safetensors"), "model.safetensors")
tensor = header.tensors["model.embed_tokens.weight"]
try:
    path, start = source.fetch("model.safetensors", tensor, lambda done, total: None)
except SourceError as error:
    sys.exit(f"{error.message} | {error.advice}")
import hashlib
print(hashlib.sha256(path.read_bytes()[start:]).hexdigest())
"""


def sha256_of_table(content):
    return hashlib.sha256(content[len(content) - ROWS * ROW :]).hexdigest()


def test_two_processes_make_one_download(tmp_path):
    with Hub() as hub:
        content = put(hub)
        hub.rate = 20e6
        answers = [None, None]

        def one(at):
            answers[at] = run(hub, tmp_path, _FETCH)

        threads = [threading.Thread(target=one, args=(at,)) for at in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        expected = sha256_of_table(content)
        assert [answer.stdout for answer in answers] == [expected + "\n"] * 2
        big = [asked for asked in ranges(hub) if asked != "bytes=0-65535"]
        assert len(big) == len(set(big)) == 5


@pytest.mark.slow
def test_killed_20_times_at_any_moment_it_ends_identical(tmp_path):
    """No range that was whole in the part is asked for again, whenever the kill came."""
    steps = 25
    random = np.random.default_rng()
    with Hub() as hub:
        content = put(hub, {INPUT: ("BF16", (steps * STEP // ROW, 1280))})
        start = len(content) - steps * STEP
        expected = hashlib.sha256(content[start:]).hexdigest() + "\n"
        hub.rate = 15e6
        log, kills, resumed = None, 0, 0
        while kills < 20:
            whole = _whole(log)
            hub.log.clear()
            child = subprocess.Popen(
                [sys.executable, "-c", _FETCH],
                env=settings(hub, tmp_path),
                stdout=subprocess.PIPE,
                text=True,
            )
            while child.poll() is None and not hub.log:
                time.sleep(0.01)
            try:
                answer, _ = child.communicate(timeout=1.2 * random.random())
            except subprocess.TimeoutExpired:
                child.kill()
                child.communicate()
                kills += 1
            else:
                assert answer == expected
                next(tmp_path.rglob(f"{INPUT}.safetensors")).unlink()
            assert not whole & {(first - start) // STEP for first in _firsts(hub)}
            resumed += bool(whole)
            log = next(tmp_path.rglob("*.part.log"), None)
        assert resumed > 5
        hub.rate = None
        assert run(hub, tmp_path, _FETCH).stdout == expected


def _firsts(hub):
    """Where each range of the table began that was asked for."""
    return [int(asked.removeprefix("bytes=").split("-")[0]) for asked in _big(hub.log)]


def _big(log):
    return [a.asked_range for a in log if a.origin == "cdn" and a.asked_range != "bytes=0-65535"]


def _whole(log):
    if not log or not log.exists():
        return set()
    lines = log.read_text().split("\n")[1:-1]
    return {int(line.split()[0]) for line in lines if line}


def test_a_full_disk_is_a_clear_error_that_loses_nothing(tmp_path):
    """The limit on a file's size stands in for a full disk."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (20_000_000, 20_000_000))"
    with Hub() as hub:
        content = put(hub)
        answer = run(hub, tmp_path, limit + _FETCH)
        assert answer.returncode == 1
        assert answer.stderr.endswith(
            " cannot be written: File too large | free some space, "
            "or point HF_HOME to a folder that can be written\n"
        )
        assert _big(hub.log) == []
        assert not list(tmp_path.rglob("*.part"))
        expected = sha256_of_table(content)
        assert run(hub, tmp_path, _FETCH).stdout == expected + "\n"


def test_a_disk_that_fills_later_keeps_the_part(hub, monkeypatch):
    _, tensor, part, log = interrupted(hub)
    before = _whole(log)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(SourceError, match="cannot be written: No space left on device"):
        open_().fetch(FILE, tensor, silent)
    monkeypatch.undo()
    assert _whole(log) == before
    assert part.is_file()


def test_an_interrupted_table_is_listed_as_a_part(hub):
    _, tensor, part, _ = interrupted(hub)
    listed = {one.kind: one for one in held.held()}
    assert listed["part"].tensor == INPUT
    assert listed["part"].nbytes == part.stat().st_size
    with open_()._files._shelf.folder.joinpath("x").open("w"):
        pass
    from huggingface_hub.utils import WeakFileLock

    with WeakFileLock(part.with_suffix(".lock")), pytest.raises(SourceError, match="right now"):
        held.remove("org/model")
    assert part.is_file()
    assert held.remove("org/model") >= tensor.stop - tensor.start
    assert held.held() == []
