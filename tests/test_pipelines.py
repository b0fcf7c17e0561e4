"""embtool as a process of its own: pipes, files, notes, exit codes, and its private memory."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from builders import folder_model, write_safetensors
from cli import run

from embtool.cli.stdin import batches

EMBTOOL = [sys.executable, "-c", "from embtool.cli import main; main()"]


@pytest.fixture(scope="module")
def shell(gemma_path, tmp_path_factory):
    """Run a line of bash in which `embtool` is this package, and return the finished process."""
    binary = tmp_path_factory.mktemp("bin")
    (binary / "embtool").write_text(
        f'#!/bin/sh\nexec "{sys.executable}" -c "from embtool.cli import main; main()" "$@"\n'
    )
    (binary / "embtool").chmod(0o755)
    environment = os.environ | {"PATH": f"{binary}{os.pathsep}{os.environ['PATH']}"}

    def run(line, **more):
        return subprocess.run(
            ["bash", "-o", "pipefail", "-c", line],
            capture_output=True,
            encoding="utf-8",
            env=environment | more,
            timeout=120,
        )

    return run


def test_the_first_tokens_of_a_pipe(shell):
    done = shell("embtool neighbors 国王 | cut -f3 | head -3")
    assert done.stdout == "token\n короля\n король\n"
    assert done.stderr == "model: gemma-3-270m\n"


def test_a_closed_pipe_ends_quietly(shell):
    done = shell("embtool find '' -q | head -1")
    assert (done.stdout, done.stderr, done.returncode) == ("id\ttoken\traw\n", "", 0)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
@pytest.mark.parametrize(
    "line",
    [
        *(f"tokens 猫 -q -f {format_}" for format_ in ("tsv", "json", "jsonl", "table")),
        *("lookup 猫 -q -f npy", "plot 猫 狗 鸟 -q", "cache path"),
    ],
)
def test_a_full_disk_is_said_in_two_lines(shell, line):
    done = shell(f"embtool {line} > /dev/full")
    error, advice = done.stderr.splitlines()
    assert error == "error: standard output cannot be written: No space left on device"
    assert advice.startswith("  try: make room")
    assert done.returncode == 1


@pytest.mark.parametrize("more", ["", "-o {folder}/found.json"])
def test_what_the_system_refuses_an_answer_is_not_said_of_the_output(tmp_path, capsys, more):
    """A table that cannot be mapped: an OSError while the first record is made."""
    folder = folder_model(tmp_path / "model", np.eye(8, dtype=np.float32))
    refuse = "import numpy as np, errno, os; from embtool.table import Table\n"
    refuse += "def stored(table): raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))\n"
    refuse += "Table.stored = property(stored)\nfrom embtool.cli import main; main()"
    asked = ["neighbors", "id:1", "id:2", "-m", str(folder), "-f", "json", "-q"]
    command = [sys.executable, "-c", refuse, *asked, *more.format(folder=tmp_path).split()]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    error, advice = done.stderr.splitlines()
    assert error == "error: Cannot allocate memory"
    assert advice.startswith("  try: make room")
    assert done.returncode == 1


@pytest.mark.parametrize(("line", "code"), [("tokens 猫", 0), ("lookup id:999999", 1), ("no", 2)])
def test_the_process_ends_as_python_would_end_it(line, code):
    """Leaving at once loses no output, no exit code, and nothing that was to be done at the end."""
    start = "import atexit, tempfile; d = tempfile.TemporaryDirectory(); "
    start += "atexit.register(print, 'at the end'); print(d.name); "
    results = []
    for end in ("main as run", "run"):
        command = [sys.executable, "-c", f"{start}from embtool.cli import {end}; run()"]
        done = subprocess.run([*command, *line.split(), "-q"], capture_output=True, check=False)
        folder, rest = done.stdout.decode().split("\n", 1)
        assert rest.endswith("at the end\n")
        assert not Path(folder).exists()
        results.append((rest, done.stderr, done.returncode))
    assert results[0] == results[1]
    assert results[0][2] == code


def test_words_from_standard_input_as_json_lines(shell):
    done = shell(r"printf '猫\n\n king\r\nid:9886\n' | embtool neighbors - -k 2 -f jsonl -q")
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert [record["query"]["ids"] for record in records] == [[239959], [9615], [9886]]
    assert [record["query"]["form"] for record in records] == ["bare", "spaced", "id"]
    assert records[0]["neighbors"][0]["id"] == 242279
    assert all(len(record["neighbors"]) == 2 for record in records)
    assert (done.stderr, done.returncode) == ("", 0)


def test_json_is_a_list_for_standard_input_even_of_one_line(shell):
    done = shell("echo 猫 | embtool neighbors - -k 1 -f json -q")
    assert [record["query"]["text"] for record in json.loads(done.stdout)] == ["猫"]
    done = shell("embtool neighbors - -f json -q < /dev/null")
    assert json.loads(done.stdout) == []


def test_a_line_is_answered_while_the_next_is_not_there_yet(gemma_path):
    command = [*EMBTOOL, "neighbors", "-", "-k", "1", "-f", "jsonl", "-q"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        for word, best in (("猫", 242279), ("数据库", 23260)):
            process.stdin.write(f"{word}\n".encode())
            process.stdin.flush()
            record = json.loads(process.stdout.readline())
            assert record["neighbors"][0]["id"] == best
        process.stdin.close()
        assert process.wait(60) == 0


def test_many_lines_are_answered_in_order_by_bounded_batches_and_few_at_first(
    tmp_path, monkeypatch
):
    file = tmp_path / "words"
    file.write_text("".join(f"id:{n % 50}\n" for n in range(3000)))
    with file.open() as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        found = list(batches(["-"]))
    assert [line for batch in found for line in batch] == file.read_text().split()
    assert len(found[0]) <= 8
    assert max(map(len, found)) <= 512
    model = folder_model(tmp_path / "model", np.eye(50, dtype=np.float32))
    with file.open() as stream:
        asked = [*EMBTOOL, "neighbors", "-", "-m", str(model), "-k", "1", "-q", "--no-header"]
        done = subprocess.run(asked, stdin=stream, capture_output=True, encoding="utf-8")
    assert [line.split("\t")[-2] for line in done.stdout.splitlines()] == file.read_text().split()


def test_a_lookup_in_a_file(shell, tmp_path):
    path = tmp_path / "x.npy"
    done = shell(f"embtool lookup 今天西安的天气怎么样 -o {path} -q")
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
    assert np.load(path).shape == (5, 640)
    done = shell("embtool lookup id:5 -f npy -q | wc -c")
    assert done.stdout.strip() == str(128 + 640 * 4)


def test_a_text_from_standard_input_is_taken_whole(shell):
    done = shell(r"printf '今天\n' | embtool tokens - -q --no-header")
    assert done.stdout == "0\t22601\t今天\t今天\n1\t107\t\\n\t\\n\n"


def test_the_saved_model_is_taken_until_the_environment_names_one(shell, tmp_path):
    folder = folder_model(tmp_path / "m", np.eye(2, dtype=np.float32), ["a", "b"])
    home = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    assert shell(f"cd {tmp_path} && embtool use m -q", **home).returncode == 0
    done = shell("embtool neighbors a --no-header", **home)
    assert done.stderr == f"model: {folder}\n"
    assert done.stdout.split("\t")[1] == "1"
    done = shell("embtool neighbors 猫 -k 1 | tail -1", EMBTOOL_MODEL="gemma-3-270m", **home)
    assert done.stderr == "model: gemma-3-270m\n"
    assert shell("embtool use /nowhere", **home).returncode == 1


def test_an_interrupt_is_exit_code_130(gemma_path):
    command = [*EMBTOOL, "neighbors", "-", "-q", "-f", "jsonl"]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    # A shell starts what runs in its background with the signal ignored, and children inherit that.
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen(command, **pipes)
    signal.signal(signal.SIGINT, before)
    with process:
        process.stdin.write("猫\n".encode())
        process.stdin.flush()
        assert process.stdout.readline().startswith(b'{"model"')
        time.sleep(1)  # until it waits for the next line: Python drops a signal while it cleans up
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stderr.read() == b""


@pytest.mark.parametrize(("option", "said"), [("--help", "analogy"), ("--version", "embtool 0.")])
def test_help_and_version_import_no_library_that_they_do_not_use(option, said):
    code = (
        "import sys; from embtool.cli.app import app\n"
        f"try: app(['{option}'])\nexcept SystemExit: pass\n"
        "heavy = {'numpy', 'tokenizers', 'huggingface_hub', 'httpx2', 'httpx', 'safetensors'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8")
    assert done.stderr == "[]\n"
    assert said in done.stdout


def test_a_warm_answer_imports_only_what_it_uses(gemma_path):
    command = ["lookup", "国王", "-m", "gemma-3-270m", "-q"]
    code = (
        "import sys; from embtool.cli.app import app\n"
        f"try: app({command})\nexcept SystemExit as ended: assert not ended.code\n"
        "print(*sorted(sys.modules), sep='\\n', file=sys.stderr)"
    )
    for _ in range(2):  # the first one may have to make the index
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8")
    modules = set(done.stderr.splitlines())
    others = {f"embtool.cli.{name}" for name in ("count", "nearest", "analogies", "hub", "plot")}
    unused = {"tokenizers", "safetensors", "rich", "concurrent.futures", "embtool.search.scan"}
    assert not modules & (unused | others | {"embtool.queries.ranked", "numpy.ma"})
    # hashlib loads OpenSSL; tokenizers and other answers' views are not for this question
    assert not modules & {"hashlib", "embtool.vocab.tokenizer", "embtool.output.rankings"}
    assert "embtool.cli.texts" in modules


def test_a_slip_in_a_commands_name_is_answered_with_the_nearest(capsys):
    done = run(capsys, "neighbours", "国王")
    assert done.code == 2
    assert "No such command 'neighbours'. Did you mean 'neighbors'?" in done.err


@pytest.mark.parametrize("words", [["analogy", "国王", "男人", "女人"], ["neighbors", "国王"]])
def test_a_second_question_takes_little_private_memory(capsys, gemma_path, words):
    question = [*words, "-m", "gemma-3-270m", "-q"]
    first = run(capsys, *question)
    peak, done = _peak_private([*EMBTOOL, *question])
    assert done.stdout.decode() == first.out
    assert 5e6 < peak < 150e6


@pytest.mark.slow
def test_private_memory_does_not_grow_with_the_table(tmp_path):
    words = [f"word{i}" for i in range(32_000)]
    folder = folder_model(tmp_path / "m", np.zeros((2, 2), np.float32), words)
    rows = np.random.default_rng(3).standard_normal((32_000, 16_384), np.float32)
    bits = (rows.view(np.uint32) >> 16).astype(np.uint16)
    write_safetensors(
        folder / "model.safetensors",
        {
            "model.embed_tokens.weight": ("BF16", bits),
            "rest": ("BF16", np.concatenate([bits[:29_000]])),
        },
    )
    config = {"model_type": "llama", "vocab_size": 32_000, "hidden_size": 16_384}
    (folder / "config.json").write_text(json.dumps(config))
    del rows, bits
    assert (folder / "model.safetensors").stat().st_size > 1.9e9
    peak, done = _peak_private([*EMBTOOL, "neighbors", "word7", "-k", "3", "-m", str(folder)])
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 4
    assert peak < 300e6


def _peak_private(command):
    """The most anonymous memory that a command held at once, in bytes, and the command."""
    peak = 0
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def watch():
        nonlocal peak
        while process.poll() is None:
            try:
                text = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
            except OSError:  # it has just ended
                return
            fields = dict(line.split(":", 1) for line in text.splitlines())
            anonymous = fields.get("RssAnon", "0 kB").split()[0]
            peak = max(peak, int(anonymous) * 1024)
            time.sleep(0.005)

    thread = threading.Thread(target=watch)
    thread.start()
    out, err = process.communicate()
    thread.join()
    return peak, subprocess.CompletedProcess(command, process.returncode, out, err)
