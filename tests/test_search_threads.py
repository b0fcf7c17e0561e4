"""Parts are worked on at once; whatever ends one of them ends all."""

import signal
import threading
from itertools import count

import pytest
from cli import run

from embtool.search.threads import each_part, threads


def test_every_part_has_a_thread_of_its_own():
    together = threading.Barrier(3, timeout=20)

    def work(part):
        together.wait()
        return sum(part)

    assert each_part([[1, 2], [3], [4, 5]], work) == [3, 3, 9]
    assert each_part([[1, 2]], sum) == [3]
    assert each_part([], sum) == []


@pytest.mark.parametrize("endless", [0, 1])
def test_an_error_in_one_part_ends_the_others(endless):
    def failing():
        yield 1
        raise OSError("the file is gone")

    parts = [failing(), failing()]
    parts[endless] = count()
    with pytest.raises(OSError, match="the file is gone"):
        each_part(parts, sum)


def test_an_interrupt_ends_all_parts():
    def interrupting():
        yield 0
        # A signal, as Ctrl-C sends one: it wakes the thread that waits for the parts.
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        yield from count()

    # A shell starts what runs in its background with the signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            each_part([interrupting(), count()], sum)
    finally:
        signal.signal(signal.SIGINT, before)


def test_where_a_system_cannot_tell_its_processors_all_are_used(capsys, gemma_path, monkeypatch):
    question = ("neighbors", "国王", "-k", "2", "-m", "gemma-3-270m", "-q")
    expected = run(capsys, *question)
    monkeypatch.delattr("os.sched_getaffinity", raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    assert threads() == 3
    assert run(capsys, *question) == expected
    monkeypatch.setattr("os.cpu_count", lambda: None)
    assert threads() == 1
