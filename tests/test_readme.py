"""What README shows was printed by its code, and its links lead somewhere."""

import contextlib
import io
import re
from pathlib import Path

import pytest
from command_line import run

README = Path(__file__).resolve().parents[1] / "README.md"
TEXT = README.read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, flags=re.DOTALL | re.MULTILINE)


def in_words(text):
    """Lines are wrapped at the width of a terminal: only the words count."""
    return text.split()


def test_the_python_example_prints_what_is_shown():
    (code,), (shown,) = blocks("python"), blocks("text")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    assert in_words(printed.getvalue()) == in_words(shown)


def test_the_commands_print_what_is_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (session,) = blocks("console")
    for part in filter(None, session.split("$ ")):
        command, _, shown = part.partition("\n")
        program, *arguments = command.partition(" #")[0].split()
        assert program == ".venv/bin/bayes-gda"
        result = run(*arguments)
        assert in_words(result.stderr + result.stdout) == in_words(shown)


def test_it_is_one_page():
    assert len(TEXT.splitlines()) < 150


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\((?!https?:)([^)#]+)\)", TEXT))))
def test_links_lead_somewhere(link):
    assert (README.parent / link).exists()
