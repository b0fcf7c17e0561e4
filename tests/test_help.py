"""Every command's help says what it does and ends with an example, and the examples run."""

import shlex

import pytest
import typer
from cli import run

from embtool.cli.app import app

# These need the Hub, or something that was fetched from it.
REMOTE = {"download", "diff", "cache rm"}


def commands(typer_app, prefix=""):
    group = typer.main.get_command(typer_app)
    context = typer.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if getattr(command, "commands", None):
            yield from ((f"{prefix}{name} {n}", c) for n, c in command.commands.items())
        else:
            yield f"{prefix}{name}", command


COMMANDS = dict(commands(app))


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_ends_with_an_example(name):
    text = (COMMANDS[name].help or "").strip()
    assert text.splitlines()[0].endswith("."), text
    assert text.splitlines()[-1].startswith(f"Example: embtool {name}"), text


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - REMOTE))
def test_the_example_runs(capsys, monkeypatch, tmp_path, gemma_path, name):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EMBTOOL_MODEL", "gemma-3-270m")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "questions-words.txt").write_text("king queen man woman\n")
    line = COMMANDS[name].help.strip().splitlines()[-1].removeprefix("Example: embtool ")
    done = run(capsys, *shlex.split(line.split(" | ")[0]))
    assert done.code == 0, done.err
    assert "error: " not in done.err


def test_no_argument_shows_the_commands(capsys):
    done = run(capsys)
    assert done.code in (0, 2)
    for name in COMMANDS:
        if " " not in name:
            assert name in done.out + done.err
